"""Every variable TUTTI_… that code, scripts or tests read is listed in docs/SETTINGS.md, and nothing else is."""
import importlib.util
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("dependencies", ROOT / "scripts/check-dependencies.py")
dependencies = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dependencies)
FOLDERS = sorted(dependencies.TOP) + ["scripts", ".ci"]
NAME = r"(TUTTI_[A-Z0-9_]+)"
# Names of the environment are string literals of their own in C++ and Python, and expanded in shells.
QUOTED = re.compile(rf"""["']{NAME}["']""")
EXPANDED = re.compile(rf"\$\{{?{NAME}")
READ = {".cpp": QUOTED, ".h": QUOTED, ".py": QUOTED, ".sh": EXPANDED, "": EXPANDED}
ABI = set(re.findall(NAME, (ROOT / "core/abi/tutti_plugin.h").read_text(encoding="utf-8")))  # codes, no variables


def variables_read(root=ROOT):
    """Name of the variable -> the files that read it."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in READ and path.name != "abi-layout.py":
                for name in READ[path.suffix].findall(path.read_text(encoding="utf-8", errors="replace")):
                    found.setdefault(name, set()).add(str(path.relative_to(root)))
    return {name: files for name, files in found.items() if name not in ABI}


def variables_listed():
    """The variables in the first column of the tables of docs/SETTINGS.md."""
    rows = re.findall(r"(?m)^\| (`TUTTI_[^|]*) \|", (ROOT / "docs/SETTINGS.md").read_text(encoding="utf-8"))
    return {name for row in rows for name in re.findall(NAME, row)}


class Settings(unittest.TestCase):
    def test_every_variable_that_is_read_is_listed(self):
        for name, files in sorted(variables_read().items()):
            with self.subTest(name):
                self.assertIn(name, variables_listed(), f"docs/SETTINGS.md lacks it; read in {sorted(files)}")

    def test_a_variable_that_is_read_is_seen(self):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {"core/a.cpp": 'getenv("@A")', "tests/b_test.py": "os.environ['@B']",
                               ".ci/run": 'echo "${@C:-}"', "scripts/d.sh": "echo $@D",
                               "cli/e.cpp": 'fail(name(@E), "@F=1", "@OK")'}.items():
                (pathlib.Path(root) / path).parent.mkdir(exist_ok=True)
                (pathlib.Path(root) / path).write_text(text.replace("@", "TUTTI_"), encoding="utf-8")
            self.assertEqual(sorted(variables_read(pathlib.Path(root))), [f"TUTTI_{c}" for c in "ABCD"])

    def test_clang_tidy_looks_into_every_folder(self):
        checked = dependencies.TOP - {"examples", "include", "tests"}
        headers = re.search(r"HeaderFilterRegex: '\((.*)\)/", (ROOT / ".clang-tidy").read_text(encoding="utf-8"))
        self.assertEqual(set(headers[1].split("|")), checked)
        sources = re.search(r"folders=\((\w.*)\)", (ROOT / "scripts/lint.sh").read_text(encoding="utf-8"))
        self.assertEqual(set(sources[1].split()), checked)

    def test_every_variable_that_is_listed_is_read(self):
        self.assertEqual(variables_listed() - set(variables_read()), set())


if __name__ == "__main__":
    unittest.main()
