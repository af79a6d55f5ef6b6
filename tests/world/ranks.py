"""Runs `tutti train` as several ranks under mpiexec, for the scripts beside this file."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import harness

# Open MPI as root, with more ranks than cores, in containers.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
MLP = ["mlp", "--data", "synthetic:32:4:512:200", "--layers", "32,64,4", "--batch", "16", "--dropout", "0.2"]


def tensor(path, name):
    """The numbers of an f32 tensor of a safetensors file."""
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:8 + size])[name]
    assert entry["dtype"] == "F32", entry
    begin, end = (8 + size + x for x in entry["data_offsets"])
    return [x for x, in struct.iter_unpack("<f", data[begin:end])]


class Case(harness.Case):
    MPIEXEC = "MPIEXEC"  # the variable that names the launcher

    def setUp(self):
        super().setUp()
        self.assertTrue(os.environ.get(self.MPIEXEC), "no mpiexec: scripts/deps.sh --mpi")

    def start(self, *programs, env=None, command=(harness.BINARY, "train"), options=()):
        """Starts mpiexec with these options; `programs`: (ranks, options of the command) each."""
        words = [os.environ[self.MPIEXEC], *options]
        for number, (ranks, *args) in enumerate(programs):
            words += [":"] * (number > 0) + ["-n", str(ranks), *map(str, (*command, *args))]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                 stdin=subprocess.DEVNULL, start_new_session=True,
                                 env=harness.environment(**OPEN_MPI, **(env or {})))
        self.addCleanup(self.end, child)
        return child

    def end(self, child):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()

    def ranks_of(self, child, count):
        """The process ids of the ranks, by rank, once all are there."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = {}
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    if os.readlink(f"/proc/{pid}/exe") != str(harness.BINARY):
                        continue
                    environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                    parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                except OSError:
                    continue
                rank = [e for e in environ if e.startswith(b"OMPI_COMM_WORLD_RANK=")]
                if parent == child.pid and rank:
                    found[int(rank[0].split(b"=")[1])] = int(pid)
            if len(found) == count:
                return [found[r] for r in range(count)]
            time.sleep(0.02)
        self.fail(f"{count} ranks did not start")

    def finished(self, child, seconds=100):
        """Exit code, stdout and stderr."""
        out, err = child.communicate(timeout=seconds)
        return child.returncode, out, err

    def trained(self, ranks, *args, env=None):
        """The document of a run with so many ranks, which must succeed."""
        if ranks == 1:
            return self.train(*args)
        code, out, err = self.finished(self.start((ranks, *args, "--json", "--quiet"), env=env))
        self.assertEqual(code, 0, f"{args}\n{out}\n{err}")
        return json.loads(out)

    def refused(self, parts, *programs, code=2, **how):
        """The run must end with one message that has each of those parts."""
        got, out, err = self.finished(self.start(*programs, **how))
        self.assertEqual(got, code, f"{out}\n{err}")
        self.assertEqual(out, "")
        messages = [line for line in err.splitlines() if line.startswith("tutti: ")]
        self.assertEqual(len(messages), 1, err)
        for part in parts:
            self.assertIn(part, err)
        return err
