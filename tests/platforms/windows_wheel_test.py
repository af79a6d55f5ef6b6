"""The wheels for Windows: `windows_wheel_test.py FOLDER` (scripts/wheel.sh --platform win_amd64 --test) reads them, installs each with pip in a
Python for Windows under Wine, and trains with it."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

FOLDER = pathlib.Path(sys.argv.pop())
ROOT = pathlib.Path(__file__).resolve().parents[2]
AMD64 = 0x8664  # IMAGE_FILE_MACHINE_AMD64 of the PE format
# Of a bare Windows 10 with Python: its own libraries, and those of Python. A wheel brings all others.
SYSTEM = re.compile(r"(kernel32|advapi32|msvcrt|psapi|ws2_32|shell32|ole32|user32|ntdll|api-ms-win-core-.*|opencl|python3|python311|tutti)\.dll", re.I)


def machine(data):
    """The machine of a PE file."""
    at = struct.unpack_from("<I", data, 60)[0]
    return struct.unpack_from("<H", data, at + 4)[0] if data[at:at + 4] == b"PE\0\0" else None


def imported(data):
    """The names of the libraries that a PE file needs."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        shown = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", file.name], capture_output=True, text=True, check=True).stdout
    return re.findall(r"DLL Name: (\S+)", shown)


class Wheels(unittest.TestCase):
    def setUp(self):
        self.wheels = {f: zipfile.ZipFile(f) for f in sorted(FOLDER.glob("*-win_amd64.whl"))}
        self.assertTrue(self.wheels)
        for wheel in self.wheels.values():
            self.addCleanup(wheel.close)

    def test_binaries(self):
        for wheel in self.wheels.values():
            binaries = {n: wheel.read(n) for n in wheel.namelist() if n.endswith((".dll", ".exe", ".pyd", ".so"))}
            names = {"tutti/bin/tutti.exe", "tutti/bin/tutti.dll", "tutti/lib/tutti/tutti-probe.exe", "tutti/_core.pyd"}
            plugins = {f"tutti/lib/tutti/plugins/tutti_{p}.dll" for p in ("cpu", "reference", "opencl", "vulkan")}
            self.assertEqual({re.sub(r"_core\..*\.pyd", "_core.pyd", n) for n in binaries}, names | plugins)
            self.assertLessEqual({n.replace("tutti_", "").replace(".dll", ".json") for n in plugins}, set(wheel.namelist()))
            for name, data in binaries.items():
                self.assertEqual(machine(data), AMD64, name)
                self.assertEqual([n for n in imported(data) if not SYSTEM.fullmatch(n)], [], name)

    def test_tags_types_and_licences(self):
        for file, wheel in self.wheels.items():
            names = wheel.namelist()
            info = next(n for n in names if n.endswith(".dist-info/WHEEL")).split("/")[0]
            tag = "-".join(file.stem.split("-")[-3:])
            self.assertIn(tag, ("cp311-cp311-win_amd64", "cp312-abi3-win_amd64"))
            self.assertIn(f"Tag: {tag}\n", wheel.read(info + "/WHEEL").decode())
            self.assertIn("tutti/_core.pyd" if "abi3" in tag else "tutti/_core.cp311-win_amd64.pyd", names)
            self.assertLessEqual({"tutti/_core.pyi", "tutti/ops.pyi", "tutti/py.typed", info + "/sboms/tuttiml.cdx.json",
                                  info + "/licenses/python/THIRD_PARTY.md"}, set(names))
            components = json.loads(wheel.read(info + "/sboms/tuttiml.cdx.json"))["components"]
            self.assertEqual({c["name"] for c in components if c["version"]},
                             {"fmt", "PCRE2", "zlib", "GCC runtime", "MinGW-w64 runtime", "Boost", "nlohmann-json", "CLI11",
                              "nanobind with robin-map", "glslang"})
            texts = {n.split("/")[-1] for n in names if "/licenses/third_party/" in n and n.endswith(".txt")}
            self.assertEqual(texts, {c["purl"].split("/")[-1].split("@")[0] + ".txt" for c in components if "purl" in c})

    def test_installed_and_used(self):  # not in /tmp, where others may change a plugin
        for file in self.wheels:
            with self.subTest(wheel=file.name), tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
                self.use(file, pathlib.Path(folder))

    def use(self, wheel, folder):
        version = "3.12" if "abi3" in wheel.name else "3.11"
        python, wheels = folder / "Python mit Umlaut ä", folder / "wheels"
        shutil.copytree(ROOT / ".deps/python-windows" / version, python)
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
                 "-d", wheels]
        # Wine 8 has no crealf, which later versions of NumPy need.
        subprocess.run([*fetch, "--platform", "win_amd64", "--python-version", version, "--implementation", "cp", "numpy<2.1"], check=True)
        subprocess.run([*fetch, "pip"], check=True)
        shutil.copy(wheel, wheels)
        environment = {**{k: v for k, v in os.environ.items() if not k.startswith(("TUTTI_", "PYTHON"))}, "PYTHONUTF8": "1"}

        def run(program, *words):
            done = subprocess.run(["wine", str(program), *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                  encoding="utf-8", errors="replace", timeout=900)
            self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}\n{done.stderr[-4000:]}")
            return done.stdout

        pip = next(wheels.glob("pip-*.whl")) / "pip"
        run(python / "python.exe", str(pip), "install", "-q", "--no-warn-script-location", "--no-index", "--find-links", "wheels", "tuttiml")
        tutti = python / "Scripts/tutti.exe"
        devices = run(tutti, "devices")
        for device in ("cpu:0", "reference:0", "opencl:0", "vulkan:0"):
            self.assertIn(device, devices)
        run(tutti, "train", "mlp", "--data", "synthetic:1x28x28:10", "--steps", "50", "--checkpoint", "mlp.safetensors")
        run(tutti, "eval", "mlp.safetensors", "--data", "synthetic:1x28x28:10", "--device", "reference")
        self.assertIn("accuracy", run(python / "python.exe", str(ROOT / "scripts/packages/use-wheel.py")))


if __name__ == "__main__":
    unittest.main()
