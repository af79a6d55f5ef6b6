"""What is said where this process may have less memory than the machine has: control groups, ulimit -v."""
import contextlib
import pathlib
import json
import re
import resource
import subprocess
import unittest

import harness

# A model of some 500 MiB in training, on little data.
LARGE = ["mlp", "--layers", "784,4000,6000,10", "--data", "synthetic:784:10:64:16", "--batch", "8", "--steps", "1", "--no-eval"]
MIB = 1 << 20


@contextlib.contextmanager
def memory_group(limit):
    """The folder of a new control group with so much memory, of version 1 or 2; None where none can be made."""
    made = None
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        words = line.split()
        kind, options = words[words.index("-") + 1], words[-1].split(",")
        if kind not in ("cgroup", "cgroup2") or (kind == "cgroup" and "memory" not in options):
            continue
        folder = pathlib.Path(words[4]) / f"tutti-test-{id(words)}"
        try:
            folder.mkdir()
            (folder / ("memory.max" if kind == "cgroup2" else "memory.limit_in_bytes")).write_text(str(limit), encoding="utf-8")
            if (swap := folder / ("memory.swap.max" if kind == "cgroup2" else "memory.memsw.limit_in_bytes")).exists():
                swap.write_text("0" if kind == "cgroup2" else str(limit), encoding="utf-8")
            made = folder
            break
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
    try:
        yield made
    finally:
        if made:
            made.rmdir()


class Limits(harness.Case):
    def in_group(self, group, *args):
        """`tutti` with these arguments as a process of that group."""
        script = f'echo $$ > "{group}/cgroup.procs" && exec "$@"'
        return subprocess.run(["sh", "-c", script, "sh", str(harness.BINARY), *args], capture_output=True, text=True, timeout=240,
                              env=harness.environment(), stdin=subprocess.DEVNULL, check=False)

    def test_a_control_group(self):
        with memory_group(300 * MIB) as group:
            if not group:
                self.skipTest("no memory control group can be made here (it takes root)")
            kinds = {d["id"]: d["kind"] for d in self.json("devices")["devices"]}
            for device in (d for d in harness.usable_devices() if kinds[d] in ("cpu", "software")):  # in the host's memory
                result = self.in_group(group, "train", *LARGE, "--device", device)
                self.assertEqual(result.returncode, 2, f"{device}\n{result.stdout}{result.stderr}")
                self.assertRegex(result.stderr, r"this program needs \d+ bytes: .*\n(.*\n)*\d+ bytes are free", device)
                free = int(re.search(r"(\d+) bytes are free", result.stderr)[1])
                self.assertLess(free, 300 * MIB)
            listed = self.in_group(group, "devices", "--json").stdout
            for device in json.loads(listed)["devices"]:
                if device["usable"] and device["kind"] in ("cpu", "software"):
                    self.assertLessEqual(device["memory_total"], 300 * MIB, device["id"])
                    self.assertLessEqual(device["memory_free"], device["memory_total"], device["id"])
            self.assertIn("300.0 MiB of memory", self.in_group(group, "doctor", "--no-steps").stdout)

    def limited(self, bytes_, *args):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_))  # noqa: E731
        return harness.tutti(*args, preexec_fn=limit)

    def test_a_limit_of_address_space(self):
        """A run that fits, or one message and exit code 2: for every limit, down to where the program itself does not start."""
        for device in ("onednn", "reference"):
            said = set()
            for mib in (700, 600, *range(500, 110, -15)):
                result = self.limited(mib * MIB, "train", *LARGE, "--device", device, "--quiet")
                where = f"{device} with {mib} MiB:\n{result.stdout}{result.stderr}"
                if mib > 507 and result.returncode == 0:  # how much a process takes beside its plan differs between machines
                    continue
                self.assertEqual(result.returncode, 2, where)
                errors = [line for line in result.stderr.splitlines() if line.startswith("tutti: ")]
                self.assertEqual(len(errors), 1, where)
                said.add(next((w for w in ("this program needs", "out of host memory") if w in result.stderr), where))
            self.assertIn("this program needs", said)


if __name__ == "__main__":
    unittest.main()
