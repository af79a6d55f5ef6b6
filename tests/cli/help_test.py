"""Help fits a screen; man pages and completion hold every command and option."""
import re
import shutil
import subprocess
import unittest

import harness
from harness import tutti


def commands():
    text = tutti("--help").stdout.split("Commands\n")[1]
    return re.findall(r"^  ([\w-]+) ", text, re.M)


class Help(harness.Case):
    def test_fits_a_screen(self):
        for name in commands():
            lines = self.done(name, "--help").stdout.splitlines()
            self.assertLessEqual(len(lines), 60, name)
            for line in lines + self.done(name, "--help-all").stdout.splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_the_rest_is_named(self):
        short, whole = (self.done("train", option).stdout for option in ("--help", "--help-all"))
        options = [set(re.findall(r"^  (?:-h, )?(--[\w-]+)", text, re.M)) for text in (short, whole)]
        self.assertLess(options[0], options[1])
        self.assertIn(f"{len(options[1]) - len(options[0])} more options: tutti train --help-all", short)
        self.assertLess({"--epochs", "--lr", "--device", "--checkpoint"}, options[0])

    def test_topics(self):
        self.assertEqual(self.done("help", "train").stdout, self.done("train", "--help").stdout)
        self.assertIn("csv:FILE", self.done("help", "data").stdout)
        self.assertIn("cross_entropy", self.done("help", "losses").stdout)
        models = self.done("help", "models").stdout
        for model in self.json("models")["models"]:
            self.assertIn(f"  {model['name']}\n", models)
        text = self.done("help").stdout
        for name in (*commands(), "models", "losses"):
            self.assertIn(f"  {name} ", text)
        for topic, remedy in (("trian", "did you mean 'train'"), ("dta", "did you mean 'data'")):
            result = tutti("help", topic)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"help {topic}: no such command or topic", result.stderr)
            self.assertIn(remedy, result.stderr)

    def test_man_pages(self):
        self.done("help", "--man", self.folder / "man1")
        pages = {page.name for page in (self.folder / "man1").iterdir()}
        self.assertEqual(pages, {"tutti.1"} | {f"tutti-{name}.1" for name in commands()})
        self.assertIn(r"\-\-epochs", (self.folder / "man1/tutti-train.1").read_text())
        if shutil.which("groff"):
            for page in pages:
                shown = subprocess.run(["groff", "-k", "-man", "-Tutf8", "-ww", self.folder / "man1" / page], capture_output=True, text=True)
                self.assertEqual((shown.returncode, shown.stderr), (0, ""), page)


class Completion(harness.Case):
    def completed(self, *words):
        return self.done("completion", "--at", len(words), "tutti", *words).stdout.split()

    def test_words(self):
        self.assertEqual(self.completed("tr"), ["train"])
        self.assertEqual(self.completed("train", "resnet1"), ["resnet18"])
        self.assertEqual(self.completed("train", "cnn", "--devic"), ["--device"])
        self.assertIn("reference:0", self.completed("train", "cnn", "--device", "re"))
        self.assertEqual(self.completed("train", "cnn", "--optimizer", "adamw"), ["adamw"])
        self.assertEqual(self.completed("train", "cnn", "--data", "csv"), ["csv:"])
        self.assertIn("tiny", self.completed("train", "gpt", "--size", ""))
        self.assertEqual(self.completed("train", "cnn", "--epochs", ""), [])
        self.assertEqual(self.completed("nonsense", ""), [])
        self.assertEqual(self.completed("eval", "--optimizer"), [])  # has no effect there

    def test_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.done("completion", shell).stdout
            self.assertIn("completion --at", script)
            if shutil.which(shell):
                (self.folder / "script").write_text(script)
                subprocess.run([shell, "-n", self.folder / "script"], check=True)
        result = tutti("completion", "tcsh")
        self.assertEqual(result.returncode, 2)
        self.assertIn("use bash, zsh or fish", result.stderr)

    @unittest.skipUnless(shutil.which("bash"), "no bash is here")
    def test_bash_asks_for_words(self):
        line = f'''source <("{harness.BINARY}" completion bash)
COMP_WORDS=("{harness.BINARY}" train cn); COMP_CWORD=2; _tutti tutti cn train; printf "%s\\n" "${{COMPREPLY[@]}}"'''
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=harness.environment())
        self.assertEqual((done.stdout, done.stderr), ("cnn\n", ""))


if __name__ == "__main__":
    unittest.main()
