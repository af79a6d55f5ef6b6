"""A plugin's manifest comes with its library: one that was configured and not built leaves nothing for the engine to find."""
import json
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(Two VERSION 1.2.3 LANGUAGES CXX)
add_library(sdk INTERFACE)
add_library(Tutti::sdk ALIAS sdk)
include("{root}/cmake/TuttiPlugin.cmake")
foreach(name one two)
  tutti_add_plugin(${{name}} SOURCES plugin.cpp MANIFEST ${{name}}.json)
endforeach()
"""


class Manifest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tutti-manifest-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
        (self.folder / "plugin.cpp").write_text('extern "C" __attribute__((visibility("default"))) int tutti_plugin() { return 0; }\n')
        for name in ("one", "two"):
            self.write(name, "@PROJECT_VERSION@")
        self.plugins = self.folder / "build/plugins"

    def write(self, name, version):
        manifest = {"name": name, "version": version, "library": "@TUTTI_PLUGIN_LIBRARY@"}
        (self.folder / f"{name}.json").write_text(json.dumps(manifest))

    def cmake(self, *args):
        done = subprocess.run(["cmake", *args], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def there(self):
        return sorted(file.name for file in self.plugins.glob("*"))

    def test_it_comes_with_the_build(self):
        self.cmake("-S", ".", "-B", "build")
        self.assertEqual(self.there(), [])
        self.cmake("--build", "build", "--target", "tutti_one")
        self.assertEqual(self.there(), ["libtutti_one.so", "one.json"])
        manifest = json.loads((self.plugins / "one.json").read_text())
        self.assertEqual((manifest["version"], manifest["library"]), ("1.2.3", "libtutti_one.so"))
        self.write("one", "4")
        self.cmake("--build", "build", "--target", "tutti_one")
        self.assertEqual(json.loads((self.plugins / "one.json").read_text())["version"], "4")
        self.cmake("--build", "build")
        for name in ("one", "two"):
            self.cmake("--install", "build", "--prefix", "installed", "--component", f"plugin_{name}")
        self.assertEqual(sorted(f.name for f in (self.folder / "installed").rglob("*.*") if f.is_file()),
                         ["libtutti_one.so", "libtutti_two.so", "one.json", "two.json"])

    def test_one_of_an_earlier_version_without_its_library_goes(self):
        self.plugins.mkdir(parents=True)
        (self.plugins / "two.json").write_text("{}")
        self.cmake("-S", ".", "-B", "build")
        self.assertEqual(self.there(), [])


if __name__ == "__main__":
    unittest.main()
