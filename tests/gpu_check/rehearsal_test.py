"""`gpu-check.sh first` as it goes to another machine, unpacked where there is nothing but a C library, python3 and a shell:
without a driver, with one that hangs, one that fails, and one that lies. Needs a built tree (TUTTI_BUILD) and a C compiler.
As root it runs in a root folder of its own; else in a bare folder with a bare environment."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import fake_driver

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "scripts" / "gpu_check"))
import pack  # noqa: E402
from pieces import FIRST  # noqa: E402

SMI = {"hang": "exec sleep 999", "error": "echo 'NVIDIA-SMI has failed' >&2; exit 9", "lie": "echo '| a GPU that lies |'"}
ENTER = 'mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" && root=$1 && shift && exec chroot "$root" "$@"'
UNSHARE = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]


def libraries_of(binaries):
    done = subprocess.run(["ldd", *binaries], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return set(re.findall(r"(/\S+) \(0x", done.stdout))


def libraries_of_loader(name):
    done = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True, check=False)
    return [line for line in done.stdout.splitlines() if line.strip().startswith(name + " ")]


class Machine:
    """A folder that plays a machine."""

    def __init__(self, root):
        self.root = root
        self.rooted = (
            os.geteuid() == 0 and subprocess.run([*UNSHARE, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        )
        (root / "tmp").mkdir()
        if self.rooted:
            self.fill()

    def fill(self):
        """python3, sh and what they are linked with; nothing else."""
        stdlib, real = pathlib.Path(os.__file__).parent, pathlib.Path(sys.executable).resolve()
        skipped = shutil.ignore_patterns(
            "site-packages", "dist-packages", "test", "tests", "idlelib", "ensurepip", "__pycache__", "config-*", "*.a"
        )
        shutil.copytree(stdlib, self.at(stdlib), ignore=skipped)
        programs = [shutil.which(name) for name in ("sh", "dirname", "sleep")]
        for path in [str(real), *programs, *libraries_of([str(real), *programs, *map(str, (stdlib / "lib-dynload").glob("*.so"))])]:
            if not self.at(path).exists():
                self.at(path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, self.at(path))
        if not self.at("/bin").exists():
            os.symlink("usr/bin", self.at("/bin"))  # for #!/bin/sh
        for folder in ("dev", "proc", "usr/bin", "etc"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        os.symlink(str(real), self.root / "usr/bin/python3")

    def at(self, path):
        """Where an absolute path of the machine lies here."""
        return self.root / str(path).lstrip("/")

    def seen(self, path):
        return "/" + str(path.relative_to(self.root)) if self.rooted else str(path)

    def run(self, command, env, seconds):
        path = [env.pop("PATH", ""), "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        env = {"PATH": ":".join(filter(None, path)), "TMPDIR": self.seen(self.root / "tmp"), **env}
        if not self.rooted:
            env["PATH"] += ":" + os.path.dirname(sys.executable)
        words = [*UNSHARE, "sh", "-c", ENTER, "sh", str(self.root)] if self.rooted else []
        env = [f"{k}={v}" for k, v in env.items()]
        inside = ["/usr/bin/env", "-i", *env] if not self.rooted else []
        done = subprocess.run(
            words + inside + command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
            env=dict(e.split("=", 1) for e in env) if self.rooted else None,
        )
        return done.returncode, done.stdout


class Rehearsal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="gpu-check-rehearsal-")
        cls.addClassCleanup(cls.folder.cleanup)
        root = pathlib.Path(cls.folder.name)
        cls.machine = Machine(root)
        pack.pack(str(SOURCE), os.environ["TUTTI_BUILD"], str(root / "gpu"), preset=0, data="")
        (root / "fake/bin").mkdir(parents=True)
        (root / "fake/driver.c").write_text(fake_driver.source())
        for name in ("libcuda.so.1", "libnvrtc.so.13"):
            subprocess.run(
                [os.environ.get("CC", "cc"), "-w", "-shared", "-fPIC", "-o", root / "fake" / name, root / "fake/driver.c"],
                check=True,
            )
        print(
            f"rehearsal: {'in a root folder of its own' if cls.machine.rooted else 'in a bare folder (a root folder of its own needs root)'}",
            file=sys.stderr,
        )

    def first(self, driver, scale):
        """Runs the part; (exit code, output, document, names in the archive)."""
        root, env = self.machine.root, {}
        if driver:
            (root / "fake/bin/nvidia-smi").write_text(f"#!/bin/sh\n{SMI[driver]}\n")
            (root / "fake/bin/nvidia-smi").chmod(0o755)
            env = {
                "FAKE_CUDA": driver,
                "LD_LIBRARY_PATH": self.machine.seen(root / "fake"),
                "PATH": self.machine.seen(root / "fake/bin"),
            }
        out = root / f"out-{driver}"
        allowed = sum(stage.budget for stage in FIRST) * scale + 30
        begun = time.monotonic()
        shell = shutil.which("sh")
        code, text = self.machine.run(
            [shell, self.machine.seen(root / "gpu/gpu-check.sh"), "first", "--scale", str(scale), "--out", self.machine.seen(out)],
            env,
            allowed + 30,
        )
        self.assertLess(time.monotonic() - begun, allowed, text[-3000:])
        self.assertTrue(out.is_dir(), text)
        self.assertEqual(sorted(os.listdir(out)), ["gpu-check-first.json", "gpu-check-first.tar.gz"], text[-3000:])
        document = json.loads((out / "gpu-check-first.json").read_text())
        with tarfile.open(out / "gpu-check-first.tar.gz") as tar:
            self.assertIn("summary.txt", tar.getnames())
        self.assertEqual(document["exit"], code, text[-3000:])
        self.assertEqual({p["stage"] for p in document["pieces"]}, {stage.name for stage in FIRST}, "every stage says something")
        self.assertNotIn("gpu-check itself", json.dumps(document))
        self.assertEqual(os.listdir(root / "tmp"), [], "nothing is left behind")
        return code, text, document, {f"{p['stage']}/{p['name']}": p for p in document["pieces"]}

    def test_without_a_driver(self):
        if not self.machine.rooted and libraries_of_loader("libcuda.so.1"):
            self.skipTest("this machine has a driver")
        code, text, document, pieces = self.first("", 0.05)
        self.assertEqual(code, 2)
        self.assertIn("no NVIDIA driver", pieces["parity/parity-cuda"]["why"])
        self.assertIn("GPUs: none", text)
        if self.machine.rooted:
            self.assertIn("libstdc++.so.6", document["machine"]["spare_libraries_used"])
            self.assertIn("libfmt.so.9", document["machine"]["spare_libraries_used"])

    def test_with_a_driver_that_hangs(self):
        code, text, _, pieces = self.first("hang", 0.05)
        self.assertEqual(code, 1)
        self.assertIn("ended after", pieces["cuda/devices-cuda"]["why"])
        self.assertIn("ended after", pieces["machine/nvidia-smi"]["why"])
        self.assertIn("tutti devices: ended after", pieces["rates/rates-f32"]["why"])
        self.assertIn("FAILED cuda/devices-cuda", text)

    def test_with_a_driver_that_fails(self):
        code, _, _, pieces = self.first("error", 0.05)
        self.assertEqual(code, 2)
        self.assertEqual(pieces["machine/nvidia-smi"]["why"], "NVIDIA-SMI has failed")
        self.assertIn("as the rehearsal wants", pieces["training/cold-mlp"]["why"])

    def test_with_a_driver_that_lies(self):
        code, text, document, pieces = self.first("lie", 0.06)
        self.assertEqual(code, 1)
        self.assertIn("cuda:0", document["summary"][-1])
        failed = [p for p in document["pieces"] if p["status"] == "failed"]
        self.assertGreater(len(failed), 20)
        if self.machine.rooted:  # else the plugin may find this machine's libraries, which take their time over such a driver
            parity = [p["why"] for p in failed if p["name"].startswith("parity-cuda")]
            self.assertTrue(any("CUDA_ERROR_LAUNCH_FAILED" in why for why in parity), parity)
        self.assertFalse(
            [name for name, p in pieces.items() if name.startswith(("parity/", "training/cold")) and p["status"] == "ok"]
        )
        self.assertTrue(any("again" in p for p in failed), "the libraries' logs of some")
        self.assertIn("FAILED", text)


if __name__ == "__main__":
    unittest.main()
