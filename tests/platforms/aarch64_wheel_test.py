"""What the wheels for Linux on ARM hold: `aarch64_wheel_test.py FOLDER` (scripts/wheel.sh --platform aarch64 --test, which then installs
them under qemu-user)."""
import json
import pathlib
import struct
import sys
import unittest
import zipfile

FOLDER = pathlib.Path(sys.argv.pop())
AARCH64 = 183  # EM_AARCH64 of elf.h


class Wheels(unittest.TestCase):
    def setUp(self):
        self.wheels = [zipfile.ZipFile(f) for f in sorted(FOLDER.glob("*_aarch64.whl"))]
        self.assertTrue(self.wheels)
        for wheel in self.wheels:
            self.addCleanup(wheel.close)

    def test_every_binary_is_for_the_platform(self):
        for wheel in self.wheels:
            binaries = {n: wheel.read(n)[:20] for n in wheel.namelist() if not n.endswith("/")}
            binaries = {n: head for n, head in binaries.items() if head[:4] == b"\x7fELF"}
            self.assertIn("tutti/lib/libtutti.so.0.2", binaries)
            self.assertEqual({n for n, head in binaries.items() if struct.unpack("<H", head[18:20]) != (AARCH64,)}, set())

    def test_plugins(self):
        for wheel in self.wheels:
            plugins = {n.split("/")[-1] for n in wheel.namelist() if "/tutti/plugins/" in n and n.endswith(".so")}
            self.assertEqual(plugins, {f"libtutti_{p}.so" for p in ("cpu", "reference", "opencl")})
            self.assertTrue([n for n in wheel.namelist() if n.startswith("tuttiml.libs/libopenblas")])

    def test_tags_are_those_of_the_name(self):
        for wheel in self.wheels:
            name = pathlib.Path(wheel.filename).name
            info = next(n for n in wheel.namelist() if n.endswith(".dist-info/WHEEL"))
            python, abi, platforms = name.removesuffix(".whl").split("-")[-3:]
            for platform in platforms.split("."):  # Debian 12 has glibc 2.36
                self.assertRegex(platform, "^manylinux_2_(2[0-9]|3[0-6])_aarch64$")
            tags = [line.removeprefix("Tag: ") for line in wheel.read(info).decode().splitlines() if line.startswith("Tag: ")]
            self.assertEqual(sorted(tags), sorted(f"{python}-{abi}-{p}" for p in platforms.split(".")))
            module = "tutti/_core.abi3.so" if abi == "abi3" else f"tutti/_core.cpython-{python[2:]}-aarch64-linux-gnu.so"
            self.assertIn(module, wheel.namelist())

    def test_types_licences_and_components(self):
        for wheel in self.wheels:
            names = wheel.namelist()
            self.assertLessEqual({"tutti/_core.pyi", "tutti/ops.pyi", "tutti/py.typed"}, set(names))
            info = next(n for n in names if n.endswith(".dist-info/METADATA")).split("/")[0]
            listed = wheel.read(info + "/licenses/python/THIRD_PARTY.md").decode()
            components = json.loads(wheel.read(info + "/sboms/tuttiml.cdx.json"))["components"]
            packages = {c["purl"].split("/")[-1].split("@")[0] for c in components if "purl" in c}
            texts = {n.split("/")[-1].removesuffix(".txt") for n in names if "/licenses/third_party/" in n and n.endswith(".txt")}
            self.assertEqual(packages, texts)
            self.assertTrue(all(c["version"] for c in components))
            libraries = {n.split("/")[-1].split("-")[0] for n in names if n.startswith("tuttiml.libs/") and not n.endswith("/")}
            rows = [line for line in listed.splitlines() if line.startswith("| ")]
            for library in libraries:  # what came along stands in the table, and its package in the list of components
                row = next((r for r in rows if f"`tuttiml.libs/{library}" in r), None)
                self.assertIsNotNone(row, library)
                self.assertIn(row.strip("| ").split("| ")[-1].strip(), packages)
            self.assertNotIn("oneDNN", {c["name"] for c in components})


if __name__ == "__main__":
    unittest.main()
