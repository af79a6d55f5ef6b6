"""Every command in a fenced block of the pages runs, made small by options behind it, or is excepted by name and reason."""
import json
import pathlib
import re
import shlex
import subprocess
import unittest

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "plugins").glob("*/README.md"))]
TUTTI = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:build/release/bin/)?tutti (?P<line>.*)$")
PLUGINS = "tests/install runs the commands of docs/PLUGINS.md, which these are, in order"
MINUTES = "takes minutes, and the machine for itself"
# Commands that are not run here: a pattern for "PAGE: COMMAND", and who runs them or why nobody does.
EXCEPTED = [
    (r"docs/PLUGINS\.md: |plugins/\w+/README\.md: ", PLUGINS),
    (r"README\.md: tutti-new-plugin demo|README\.md: export TUTTI_PLUGIN_PATH|README\.md: .* (demo:0|demo/build)", PLUGINS),
    (r"README\.md: scripts/quickstart\.sh", "installs packages as root, builds for minutes; its commands are run: test_quickstart_names_commands"),
    (r"\w+\.md: (scripts/test\.sh|ctest|cmake)", "builds and runs the tests, of which this is one"),
    (r"README\.md: scripts/smollm2\.sh", "fetches 90 MB"),
    (r"CONTRIBUTING\.md: scripts/(lint|deps|fuzz|docs)\.sh", "installs packages as root, or takes minutes: CI runs them"),
    (r"(docs/PYTHON|README)\.md: (scripts/deps\.sh|pip install)", "installs packages; Python.wheel installs the built one"),
    (r"docs/PYTHON\.md: tests/python/torch_modules\.py --survey", "takes an hour; Python.torch_modules.* run some modules of it"),
    (r"docs/BENCH\.md: (scripts/bench-(peers|load|modules|shapes)\.sh|\$\(scripts/python-env\.sh|python3 bench/(scaling|denormals)\.py)", MINUTES),
    (r"docs/DISTRIBUTED\.md: python3 bench/network\.py", MINUTES),
    (r"docs/PLATFORMS\.md: scripts/platforms\.sh", MINUTES),
    (r"docs/PLATFORMS\.md: (scripts/packages\.sh|apt-get)", "needs root, for a chroot: Install.Debian runs it"),
    (r"docs/PLATFORMS\.md: scripts/wheel\.sh --platform", MINUTES),
    (r"docs/PLATFORMS\.md: scripts/wheel\.sh --test", "needs root, for a chroot: Python.wheel runs it"),
    (r"docs/CUDA\.md: scripts/gpu-check\.sh", "needs a GPU"),
    (r"docs/CUDA\.md: .*scripts/softcuda\.sh", "needs NVRTC: SoftCuda.* run it"),
    (r"(docs/DISTRIBUTED|README)\.md: (scripts/deps\.sh --mpi|mpiexec|srun)", "several processes: World.* run them"),
    (r"docs/COMMANDS\.md: tutti predict run\.safetensors --data images", "needs a picture; Cli.images predicts and explains some"),
    (r"docs/RUNS\.md: tensorboard", "a server that does not end; RunLog.tensorboard reads such a folder"),
]


def commands():
    """(page, line number, command) of every fenced block: each line of one of a shell, and what is behind "$ " in others.
    Continuation lines are joined, comments cut."""
    for file in PAGES:
        language, lines = None, file.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            if line.startswith("```"):
                language = None if language is not None else line[3:].strip()
                continue
            shell = language in ("sh", "bash", "shell") or (language is not None and line.startswith("$ "))
            text, more = line.removeprefix("$ "), number
            if not shell or not text.strip() or text.startswith(("#", "  ")):
                continue
            while text.endswith("\\"):
                text, more = text[:-1] + lines[more].strip(), more + 1
            yield str(file.relative_to(ROOT)), number, re.split(r"\s+#", text)[0].split(" 2>")[0].strip()


class Docs(harness.Case):
    def small(self, words, device):
        """The command, changed so that it takes a moment, and the exit codes that it may have then."""
        data = ["--data", "synthetic:1x28x28:10:64:32", "--batch", "16"]
        if any(word.endswith(".gguf") for word in words):  # fetched by scripts/smollm2.sh
            few = ["--context", "8", "--steps", "1", "--no-eval"] if words[0] == "train" else ["--tokens", "1"]
            return [*words, *few, "--device", device], (0,) if (ROOT / ".deps/smollm2").is_dir() else (2,)
        if "gpt" in words:  # trains on text; the docs name its tiny size
            data = ["--batch", "16"]
        if "--epochs" in words and words[0] == "train":  # --steps takes their place
            at = words.index("--epochs")
            words = words[:at] + words[at + 2:]
        match words[0]:
            case "train" if "--resume" in words: return [*words, "--steps", "2", "--device", device], (0,)
            case "train":
                judged = [] if "--keep-best" in words else ["--no-eval"]
                layers = ["--layers", "784,16,10"] if "mlp" in words or "--config" in words else []
                return [*words, *data, *layers, "--steps", "1", *judged, "--device", device], (0,)
            case "plan": return [*words, *data, "--device", device, "--no-search"], (0,)
            case "bisect": return [*words, *data, "--a", device, "--b", device, "--steps", "1", "--batch", "2"], (0,)
            case "replay": return words, (2,)  # the file is made where two devices part
            case "bench": return [*words, "--device", device, "--quick", "--repetitions", "1", "--time", "0.05"], (0,)
            case "parity" if "--against" in words: return [*words, "--device", device], (0,)
            case "parity": return [*words, "--device", device, "--ops", "add", "--quick"], (0,)
            case "export" | "inspect" | "compare" | "verify-run": return words, (0,)  # of what a command before trained
            case "doctor": return [*words, "--no-steps"], (0, 1)
            case "report-device": return [*words, "--device", device, "--quick", "--parts", "bench"], (0,)
            case "devices" | "ops": return words, (0,)
        self.fail(f"no small form of `tutti {' '.join(words)}` is known here")

    def run_tutti(self, line, device, where):
        text, _, target = line.partition(" > ")
        words = shlex.split(self.shell(f"printf '%s' \"{text}\"").stdout)
        words, codes = self.small(words, device)
        result = harness.tutti(*words, cwd=self.folder)
        where = f"{where}\ntutti {' '.join(words)}\n{result.stdout}\n{result.stderr}"
        self.assertIn(result.returncode, codes, where)
        if target:
            (self.folder / target).write_text(result.stdout)
        self.assertNotIn("not expected", result.stderr, where)
        if codes == (2,):
            self.assertTrue(any(word in result.stderr for word in words[1:]), where)
        return words[0]

    def shell(self, line):
        return subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=self.folder)

    def test_every_command_runs(self):
        """In order and in one folder, as a reader would; a command that is neither run nor excepted fails."""
        device = harness.usable_devices()[0]
        seen, used = set(), set()
        (self.folder / "build").mkdir()  # by quickstart
        for name in ("examples", ".deps"):
            (self.folder / name).symlink_to(ROOT / name)
        for page, number, text in commands():
            where = f"{page}:{number}: {text}"
            excepted = [pattern for pattern, _ in EXCEPTED if re.match(pattern, f"{page}: {text}")]
            used.update(excepted)
            if excepted:
                continue
            if found := TUTTI.match(text):
                seen.add(self.run_tutti(found["line"], device, where))
            elif text.startswith("export PATH="):
                self.assertEqual(self.shell(f"{text}; echo ${{PATH%%:*}}").stdout, f"{self.folder}/build/release/bin\n")
            elif text.startswith("mkdir "):
                self.assertEqual(self.shell(text).returncode, 0, where)
            else:
                self.fail(f"{where}\nis neither run nor excepted: tests/cli/docs_test.py")
        self.assertGreaterEqual(seen, {"train", "devices", "bench", "bisect", "parity", "export"})
        self.assertEqual(used, {pattern for pattern, _ in EXCEPTED}, "exceptions that except nothing")

    def test_quickstart_names_commands(self):
        """What it says to do next parses, and it builds where the pages look for the command."""
        text = (ROOT / "scripts/quickstart.sh").read_text()
        after = text[text.rindex("Next:"):]
        self.assertIn("build/release/bin:", after)
        for name in re.findall(r"^  tutti (\w+)", after, re.M):
            self.assertEqual(harness.tutti(name, "--help").returncode, 0, name)
        preset = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        self.assertTrue(any(p["name"] == "release" for p in preset))

    def test_every_variable_is_in_the_settings(self):
        settings = (ROOT / "docs/SETTINGS.md").read_text()
        sources = [f for room in ("core", "graph", "train", "cli", "sdk", "backends", "kernels")
                   for f in (ROOT / room).rglob("*.cpp")]
        read = re.compile(r'(?:getenv|variable)\("(TUTTI_\w+)"\)')
        variables = {name for f in sources for name in read.findall(f.read_text())}
        self.assertGreater(len(variables), 12)
        for name in variables | {"TUTTI_ISA"}:
            self.assertIn(f"`{name}`", settings)
        answer = harness.tutti("devices", env=harness.environment(TUTTI_TRACE="nonsense")).stderr
        self.assertIn("TUTTI_TRACE=nonsense: unknown topic nonsense; valid: all, ", answer)
        for topic in answer.split("valid: ")[1].split("\n")[0].split(", ")[:5]:
            self.assertIn(f"| `{topic}` |", settings)

    def test_every_subcommand_is_in_the_table(self):
        listed = harness.tutti("--help").stdout.split("Commands\n")[1]
        names = re.findall(r"^  ([\w-]+) ", listed, re.M)
        self.assertGreater(len(names), 8)
        page = (ROOT / "docs/COMMANDS.md").read_text()
        for name in names:
            self.assertIn(f"`tutti {name}", page)

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().split()), 900)


if __name__ == "__main__":
    unittest.main()
