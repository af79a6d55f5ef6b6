"""The wheels that scripts/wheel.sh builds, each in an empty virtual environment: what they hold, the command, a training run of
an MLP, and the tests of the package with NumPy alone: wheel_test.py [BUILD], the tree in which it is built."""
import email
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import commands  # noqa: E402

BUILD = sys.argv.pop() if len(sys.argv) > 1 else None
TESTS = ("package_test.py", "arrays_test.py")
TRAIN = """
import numpy as np, tutti
from tutti import nn
rng = np.random.default_rng(0)
x = rng.normal(size=(4096, 784)).astype(np.float32)
y = (x @ rng.normal(size=(784, 10))).argmax(1)
mlp = nn.Sequential(nn.Linear(512), nn.ReLU(), nn.Linear(10))
t = tutti.Trainer(tutti.classification(mlp), batch=64)
t.fit({"input": x, "label": y}, epochs=5, progress=False)
score = t.evaluate({"input": x, "label": y})
assert score.metrics["accuracy"] > 0.9, score
print(tutti.__file__)
"""


def bare():
    """The environment without what would lead to the build tree or to other packages."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_", "VIRTUAL_ENV"))}
    return {k: v for k, v in kept.items() if not k.startswith("TUTTI_") or k == "TUTTI_REQUIRE"}


def run(*command, **options):
    return commands.run(*command, env=bare(), **options)


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        run(ROOT / "scripts/wheel.sh", "--output", cls.folder.name, *(["--build-dir", BUILD] if BUILD else []))
        cls.wheels = sorted(pathlib.Path(cls.folder.name).glob("*.whl"))

    def each(self):
        """Each wheel, and a Python for it."""
        for wheel in self.wheels:
            version = re.search("-cp3([0-9]+)-", wheel.name)[1]
            newest = [f"python3.{n}" for n in (14, 13, 12)] if "abi3" in wheel.name else [f"python3.{version}"]
            for python in [*newest, sys.executable]:
                try:
                    run(python, "-c", "import venv, ensurepip")
                except (AssertionError, OSError):
                    continue
                with self.subTest(wheel=wheel.name, python=python):
                    yield wheel, python
                break

    def test_what_they_hold(self):
        self.assertTrue(self.wheels)
        for wheel, _ in self.each():
            self.assertLess(wheel.stat().st_size, 60e6)
            self.assertRegex(wheel.name, "manylinux_2_36_x86_64.whl$")
            with zipfile.ZipFile(wheel) as z:
                names = z.namelist()
                info = next(n for n in names if n.endswith(".dist-info/METADATA")).split("/")[0]
                metadata = email.message_from_bytes(z.read(info + "/METADATA"))
                listed = z.read(info + "/licenses/python/THIRD_PARTY.md").decode()
                bom = json.loads(z.read(info + "/sboms/tuttiml.cdx.json"))
            self.assertEqual(metadata["License-Expression"], "Apache-2.0")
            plugins = {n.split("/")[-1] for n in names if "/plugins/" in n and n.endswith(".so")}
            required = set(os.environ.get("TUTTI_REQUIRE", "onednn").split(",")) | {"reference"}
            self.assertLessEqual({f"libtutti_{p}.so" for p in required - {"cpu"}}, plugins)
            self.assertNotIn("libtutti_cpu.so", plugins)  # onednn is in it
            self.assertIn("tutti/ops.pyi", names)
            self.assertIn("tutti/_core.pyi", names)
            self.assertIn("tutti/share/doc/onednn/LICENSE", names)
            libraries = {n.split("/")[-1].split("-")[0] for n in names if n.startswith("tuttiml.libs/") and not n.endswith("/")}
            self.assertLessEqual({"libfmt", "libicuuc"}, libraries)
            for library in libraries:
                self.assertIn(library, listed)  # what came along stands in the list
            self.assertEqual((bom["bomFormat"], bom["metadata"]["component"]["version"]), ("CycloneDX", metadata["Version"]))
            components = {c["name"]: c["version"] for c in bom["components"]}
            self.assertRegex(components["oneDNN"], r"^3\.")
            self.assertLessEqual({"fmt", "PCRE2", "ICU", "nanobind with robin-map"}, set(components))
            self.assertTrue(all(components.values()))
            self.assertNotIn("zlib", components)  # of Windows' wheels, even where mingw's zlib is installed

    def test_in_minimal_systems(self):
        if os.getuid() != 0 or not shutil.which("mmdebstrap"):
            self.skipTest("needs root and mmdebstrap (scripts/deps.sh --packages)")
        print(run(ROOT / "scripts/wheel.sh", "--no-build", "--test", "--output", self.folder.name))

    def test_in_an_empty_environment(self):
        for wheel, python in self.each():
            with tempfile.TemporaryDirectory() as folder:
                start = time.monotonic()
                run(python, "-m", "venv", folder + "/env")
                bin = pathlib.Path(folder, "env/bin")
                run(bin / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
                self.assertIn(folder, run(bin / "python", "-c", TRAIN, cwd=folder))
                print(f"{wheel.name}: from an empty environment to a trained MLP in {time.monotonic() - start:.0f} s")
                devices = json.loads(run(bin / "tutti", "devices", "--json", cwd=folder))
                self.assertIn("onednn:0", json.dumps(devices))
                for test in TESTS:
                    run(bin / "python", ROOT / "tests/python" / test, cwd=folder)


if __name__ == "__main__":
    unittest.main()
