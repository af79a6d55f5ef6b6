"""What an author does with an installed Tutti and no source tree: the template, its build, and the commands of
docs/PLUGINS.md, which are run as they stand there."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

PREFIX = pathlib.Path(os.environ["TUTTI_PREFIX"]).resolve()
SOURCE = pathlib.Path(os.environ["TUTTI_SOURCE"]).resolve()
CXX = os.environ["CXX"]
DOCS = SOURCE / "docs/PLUGINS.md"
TEMPLATE = SOURCE / "plugins/template"
CARD = SOURCE / "plugins/card"
VENDOR = "A vendor's library"  # the chapter whose commands are class Card's


def environment(folder, **changes):
    """Without the engine's variables; caches and temporary files stay in the test's folder."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TUTTI_") and k != "LD_LIBRARY_PATH"}
    (folder / "tmp").mkdir(exist_ok=True)
    cmake = pathlib.Path(os.environ["TUTTI_CMAKE"]).parent
    return {**clean, "PATH": f"{PREFIX}/bin:{cmake}:{clean['PATH']}", "TUTTI_CACHE": str(folder / "cache"),
            "TMPDIR": str(folder / "tmp"), "XDG_CACHE_HOME": str(folder / "xdg"), "TUTTI_PLUGINS": "demo,card,reference",
            **changes}


def run(*command, cwd=None, env=None):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=840, cwd=cwd, env=env,
                          stdin=subprocess.DEVNULL)


def documented_commands(vendor):
    """The lines of the blocks marked `sh`, in order: of that chapter, or of all others."""
    chapters = re.split(r"^## ", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    text = "".join(c for c in chapters if c.startswith(VENDOR) == vendor)
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line and not line.startswith("#")]


def run_commands(test, commands, parts, **where):
    """What they print, as a reader of the page would run them."""
    for part in parts:
        test.assertTrue(any(part in line for line in commands), f"{DOCS} has no command with '{part}'")
    script = "set -eu\n" + "".join(f"echo {shell_quoted('$ ' + c)}\n{c}\n" for c in commands)
    result = run("bash", "-c", script, **where)
    print(result.stdout)
    test.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    return result.stdout


class PluginAuthor(unittest.TestCase):
    """Built and tried once, by the documented commands; the tests look at what came of it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-author-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.env = environment(cls.folder)
        # $CXX of the runs that follow: writes one line per call.
        cls.calls = cls.folder / "calls"
        cls.compiler = cls.script("compiler", f'echo "$@" >> {cls.calls}\nexec {CXX} "$@"\n')

    @classmethod
    def script(cls, name, text):
        path = cls.folder / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def plugin(self):
        """The environment in which `tutti` finds the plugin, which test_1 has built."""
        folder = self.folder / "demo/build/plugins"
        self.assertTrue((folder / "libtutti_demo.so").exists(), "the documented commands did not build the plugin")
        return {**self.env, "TUTTI_PLUGIN_PATH": str(folder)}

    def test_1_every_documented_command_works(self):
        parts = ("tutti-new-plugin demo", "cmake --build", "tutti devices", "tutti conformance", "tutti train cnn")
        printed = run_commands(self, documented_commands(vendor=False), parts, cwd=self.folder, env=self.env)
        self.assertIn("demo:0", printed)
        kept = re.findall(r"(/\S+tutti-kernels-\w+/\d+\.cpp): (.+), groups of", (self.folder / "texts.txt").read_text())
        self.assertTrue(any("matmul" in name for _, name in kept), kept)
        for file, _ in kept:
            self.assertIn("kernel_main", pathlib.Path(file).read_text())

    def test_2_the_library_exports_one_symbol_and_links_no_engine(self):
        library = self.folder / "demo/build/plugins/libtutti_demo.so"
        self.plugin()
        symbols = run("nm", "-D", "--defined-only", library).stdout.split("\n")
        self.assertEqual([s.split()[-1] for s in symbols if s], ["tutti_plugin"])
        self.assertNotIn("libtutti.so", run("readelf", "-d", library).stdout)

    def setUp(self):
        self.calls.unlink(missing_ok=True)

    def train(self, **changes):
        result = run("tutti", "train", "mlp", "--device", "demo:0", "--data", "synthetic:1x28x28:10:64:64", "--steps", 2,
                     "--json", "--quiet", cwd=self.folder, env={**self.plugin(), **changes})
        return result

    def compiled(self):
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line for line in lines if "-shared" in line]

    def test_3_kernels_are_compiled_once(self):
        cache = str(self.folder / "empty")
        first = self.train(CXX=str(self.compiler), TUTTI_CACHE=cache)
        self.assertEqual(first.returncode, 0, first.stderr)
        count = len(self.compiled())
        self.assertGreater(count, 0)
        self.assertLess(count, 9 + os.cpu_count(), "many kernels take few runs of the compiler")
        second = self.train(CXX=str(self.compiler), TUTTI_CACHE=cache)
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertEqual(len(self.compiled()), count, "kernels were not taken from the cache")
        self.assertEqual(json.loads(first.stdout)["state_hash"], json.loads(second.stdout)["state_hash"])
        self.assertEqual(list((self.folder / "tmp").glob("tutti-demo-*")), [], "temporary files stay behind")

    def test_4_damaged_cache_entries_are_built_anew(self):
        cache = self.folder / "empty"  # no longer: of the test before
        shared = [f for f in cache.rglob("*") if f.is_file() and b"ELF" in f.read_bytes()]
        self.assertTrue(shared, "no compiled code is in the cache")
        for file in shared:
            file.write_bytes(file.read_bytes()[:-100])
        before = len(self.compiled())
        result = self.train(CXX=str(self.compiler), TUTTI_CACHE=str(cache))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(len(self.compiled()), before)

    def test_3_without_a_compiler_the_device_says_so(self):
        env = {**self.plugin(), "CXX": "no-such-compiler"}
        found = json.loads(run("tutti", "devices", "--json", env=env).stdout)["devices"]
        demo = next(d for d in found if d["id"].startswith("demo"))
        self.assertFalse(demo["usable"])
        result = self.train(CXX="no-such-compiler")
        self.assertEqual(result.returncode, 2, result.stderr)
        for part in ("no-such-compiler", "set CXX"):
            self.assertIn(part, json.dumps(demo))
            self.assertIn(part, result.stderr)

    def test_3_a_kernel_that_does_not_compile_is_kept(self):
        broken = self.script("broken", f'case "$*" in *-shared*) echo "x: error: out of ideas"; exit 1;; esac\n'
                                       f'exec {CXX} "$@"\n')
        result = self.train(CXX=str(broken))
        self.assertNotIn(result.returncode, (0, -6, -11), result.stderr)
        self.assertIn("out of ideas", result.stderr)
        kept = re.search(r"is in (\S+\.cpp)", result.stderr)
        self.assertIsNotNone(kept, result.stderr)
        self.assertIn("kernel_main", pathlib.Path(kept[1]).read_text())


class Card(unittest.TestCase):
    """The plugin with memory of its own, a queue and a vendor's product."""

    def test_the_documented_commands_work(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-card-author-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        parts = ("tutti-new-plugin --card", "tutti parity", "TUTTI_TRACE=dispatch", "tutti conformance")
        run_commands(self, documented_commands(vendor=True), parts, cwd=folder, env=environment(folder))
        trace = (folder / "card.txt").read_text()
        self.assertRegex(trace, r"node \d+ matmul → library")
        self.assertRegex(trace, r"matmul takes 2 more node\(s\) along")  # bias and ReLU go along with the vendor's product
        self.assertIn("does not support fused sums or GELU", trace)  # what it declines

    def test_it_stays_short(self):
        lines = {f: len((CARD / f).read_text(encoding="utf-8").splitlines()) for f in ("plugin.cpp", "card.h")}
        self.assertLessEqual(lines["plugin.cpp"], 120, lines)
        self.assertLessEqual(sum(lines.values()), 300, lines)


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-new-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def refused(self, part, *arguments):
        for script in (SOURCE / "scripts/new-plugin.sh", PREFIX / "bin/tutti-new-plugin"):
            result = run(script, *arguments, cwd=self.folder)
            self.assertEqual(result.returncode, 2, f"{arguments}: {result.stdout}{result.stderr}")
            self.assertEqual(result.stdout, "")
            self.assertIn(part, result.stderr)

    def test_wrong_arguments_are_named(self):
        self.refused("two arguments", "demo")
        self.refused("two arguments", "--card", "demo")
        self.refused("must begin with a-z", "--disc", "demo")
        for name in ("", "Demo", "my-plugin", "9lives", "a b", "../x"):
            self.refused("must begin with a-z", name, "new")
        self.refused("32", "a" * 33, "new")
        self.refused("--device", "all", "new")
        (self.folder / "file").write_text("x")
        self.refused("is not a folder", "demo", "file")
        self.refused("is not empty", "demo", ".")
        self.refused("cannot be made", "demo", "file/new")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["file"])

    def test_names_of_own_plugins_are_refused(self):
        own = [p.parent.name for p in (SOURCE / "plugins").glob("*/CMakeLists.txt") if p.parent != TEMPLATE]
        self.assertIn("opencl", own)
        for name in own:
            self.refused("Tutti's own", name, "new")

    def test_the_source_tree_gives_what_the_package_gives(self):
        for options in ([], ["--card"]):
            for script, to in ((SOURCE / "scripts/new-plugin.sh", "a"), (PREFIX / "bin/tutti-new-plugin", "b")):
                result = run(script, *options, "other_2", to, cwd=self.folder)
                self.assertEqual(result.returncode, 0, result.stderr)
            a, b = ({p.name: p.read_text() for p in (self.folder / d).iterdir()} for d in "ab")
            self.assertEqual(a, b)
            self.assertIn("other_2.json", a)
            self.assertEqual("card.h" in a, bool(options))
            self.assertNotIn("myplugin", "".join(a.values()))
            self.assertEqual(json.loads(a["other_2.json"])["name"], "other_2")
            for folder in "ab":
                shutil.rmtree(self.folder / folder)

    def test_the_template_stays_short(self):
        lines = {p.name: len(p.read_text(encoding="utf-8").splitlines()) for p in TEMPLATE.iterdir()}
        self.assertLessEqual(sum(lines.values()), 400, lines)

    def test_headers_compile_alone(self):
        include = PREFIX / "include/tutti"
        headers = [p for d in ("core/abi", "core/base", "core/geometry", "sdk", "kernels") for p in sorted((include / d).rglob("*.h"))]
        self.assertGreater(len(headers), 30)
        cases = [[CXX, "-std=c++20", "-fsyntax-only", "-I", include, "-x", "c++", h] for h in headers]
        cases.append([CXX, "-std=c99", "-pedantic-errors", "-fsyntax-only", "-x", "c", include / "core/abi/tutti_plugin.h"])
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for case, result in zip(cases, pool.map(lambda c: run(*c), cases)):
                self.assertEqual(result.returncode, 0, f"{case[-1]}\n{result.stderr[:2000]}")


def shell_quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


if __name__ == "__main__":
    unittest.main()
