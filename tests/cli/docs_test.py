"""Every `tutti` command line in a fenced block of README.md and docs/ parses and runs, made small by options behind it."""
import pathlib
import re
import shlex
import subprocess
import unittest

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:build/release/bin/)?tutti (?P<line>.*)$")


def commands():
    """(file, line number, arguments of tutti), the continuation lines joined, comments cut."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for file in files:
        fenced, lines = False, file.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            fenced ^= line.startswith("```")
            found = COMMAND.match(line)
            if not fenced or not found or file.name in ("PLUGINS.md", "OPS.md"):
                continue  # PLUGINS.md is run whole, by tests/install
            text, more = found["line"], number
            while text.endswith("\\"):
                text, more = text[:-1] + lines[more].strip(), more + 1
            yield file.name, number, text.split("  #")[0].split(" 2>")[0].strip()


class Docs(harness.Case):
    def small(self, words, device):
        """What is put behind a command so that it takes a moment, and the exit codes that it may have then."""
        data = ["--data", "synthetic:1x28x28:10:64:32", "--batch", "16"]
        if any(word.endswith(".gguf") for word in words):  # fetched by scripts/smollm2.sh
            few = ["--context", "8", "--steps", "1", "--no-eval"] if words[0] == "train" else ["--tokens", "1"]
            return [*few, "--device", device], (0,) if (ROOT / ".deps/smollm2").is_dir() else (2,)
        if "gpt" in words:  # trains on text; the docs name its tiny size
            data = ["--batch", "16"]
        match words[0]:
            case "train":
                judged = [] if "--keep-best" in words else ["--no-eval"]
                return [*data, "--layers", "784,16,10", "--steps", "1", *judged, "--device", device], (0,)
            case "plan": return [*data, "--device", device, "--no-search"], (0,)
            case "bisect": return [*data, "--a", device, "--b", device, "--steps", "1", "--batch", "2"], (0,)
            case "replay": return [], (2,)  # the file is made where two devices part
            case "bench": return ["--device", device, "--quick", "--repetitions", "1", "--time", "0.05"], (0,)
            case "parity" if "--against" in words: return ["--device", device], (0,)
            case "parity": return ["--device", device, "--ops", "add", "--quick"], (0,)
            case "conformance": return ["--list"], (0,)  # tests/install builds and judges the demo plugin
            case "export" | "inspect": return [], (0,)  # of what a command before trained
            case "doctor": return ["--no-steps"], (0, 1)
            case "devices" | "ops": return [], (0,)
        self.fail(f"no small form of `tutti {' '.join(words)}` is known here")

    def test_every_command_runs(self):
        device = harness.usable_devices()[0]
        seen = set()
        for name in ("build", "runs"):  # that the commands write to
            (self.folder / name).mkdir()
        for name in ("examples", ".deps"):
            (self.folder / name).symlink_to(ROOT / name)
        for file, number, text in commands():
            text, _, target = text.partition(" > ")
            words = shlex.split(subprocess.run(["sh", "-c", f"printf '%s' \"{text}\""], capture_output=True,
                                               text=True).stdout)
            more, codes = self.small(words, device)
            result = harness.tutti(*words, *more, cwd=self.folder)
            where = f"{file}:{number}: tutti {' '.join(words + more)}\n{result.stdout}\n{result.stderr}"
            self.assertIn(result.returncode, codes, where)
            if target:
                (self.folder / target).write_text(result.stdout)
            self.assertNotIn("not expected", result.stderr, where)
            if codes == (2,):
                self.assertTrue(any(word in result.stderr for word in words[1:]), where)
            seen.add(words[0])
        self.assertGreaterEqual(seen, {"train", "devices", "bench", "bisect", "parity", "export"})

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
        self.assertIn("TUTTI_TRACE=nonsense: there is no topic nonsense; valid: all, ", answer)
        for topic in answer.split("valid: ")[1].split("\n")[0].split(", ")[:4]:
            self.assertIn(f"| `{topic}` |", settings)

    def test_every_subcommand_is_in_the_readme(self):
        listed = harness.tutti("--help").stdout.split("Subcommands:")[1]
        names = re.findall(r"^  (\w+) ", listed, re.M)
        self.assertGreater(len(names), 8)
        readme = (ROOT / "README.md").read_text()
        for name in names:
            self.assertIn(f"tutti {name}", readme)


if __name__ == "__main__":
    unittest.main()
