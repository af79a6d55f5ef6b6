"""Help, version and usage errors of the command line."""
import json
import pathlib
import subprocess
import unittest

import harness
from harness import tutti

RUN_OPTIONS = ["--layers", "--activation", "--dropout", "--init", "--data", "--batch", "--seed", "--epochs", "--steps",
               "--optimizer", "--lr", "--momentum", "--nesterov", "--weight-decay", "--device", "--fallback",
               "--threads", "--json"]
OF_TRAINING = ["--epochs", "--steps", "--optimizer", "--lr", "--momentum", "--nesterov", "--weight-decay", "--beta1",
               "--beta2", "--epsilon"]
OPTIONS = {
    "devices": ["--explain", "--json", "--device"],
    "train": [*RUN_OPTIONS, "--checkpoint", "--resume", "--no-eval", "--quiet"],
    "eval": [o for o in RUN_OPTIONS if o not in (*OF_TRAINING, "--dropout", "--seed")] + ["checkpoint"],
    "export": ["checkpoint", "--output", "--batch", "--json"],
    "data": ["--output", "--png", "--count", "--context", "--tokenizer", "--json"],
    "inspect": ["file", "--json"],
    "ops": ["--markdown", "--json"],
    "plan": [o for o in RUN_OPTIONS if o not in ("--fallback", "--epochs", "--steps")] + ["--no-eval", "--no-search"],
    "top": ["--watch", "--json"],
    "parity": ["--device", "--ops", "--case", "--record", "--against", "--html", "--model", "--seed", "--json"],
    "verify-run": ["--device", "--quiet", "--json"],
    "bisect": ["--a", "--b", "--save", "--layers", "--seed", "--json"],
    "replay": ["--device", "--json"],
    "bench": ["--models", "--ops", "--device", "--precision", "--peer", "--report", "--csv", "--history", "--json"],
    "conformance": ["--only", "--list", "--full", "--timeout", "--junit", "--json"],
    "doctor": ["--no-steps", "--timeout", "--json"],
}


class Basics(harness.Case):
    def test_help_names_every_subcommand(self):
        text = self.done("--help").stdout
        for name in [*OPTIONS, "--version", "--help"]:
            self.assertIn(name, text)

    def test_help_of_each_subcommand_names_its_options(self):
        for name, options in OPTIONS.items():
            result = self.done(name, "--help-all")
            self.assertEqual(result.stderr, "")
            for option in options:
                self.assertIn(option, result.stdout, name)

    def test_eval_shows_nothing_of_training(self):
        text = self.done("eval", "--help-all").stdout
        for option in OF_TRAINING:
            self.assertNotIn(option + " ", text)

    def test_version(self):
        self.assertRegex(self.done("--version").stdout, r"^tutti \d+\.\d+\.\d+\n$")

    def test_usage_errors(self):
        for args, parts in [
            ([], ["subcommand", "tutti --help"]),
            (["trian"], ["unknown subcommand 'trian'", "devices, train, eval"]),
            (["--nonsense"], ["tutti --help"]),
            (["train", "mlp", "--nonsense"], ["--nonsense", "tutti train --help"]),
            (["train", "mlp", "extra"], ["extra", "tutti train --help"]),
            (["train", "mlp", "--batch"], ["--batch", "tutti train --help"]),
            (["train", "mlp", "--batch", "many"], ["--batch", "'many' is not an integer"]),
            (["train", "mlp", "--batch", "1.5"], ["--batch", "1.5"]),
            (["train", "mlp", "--batch", "99999999999999999999"], ["--batch", "99999999999999999999"]),
            (["train", "mlp", "--seed", "-1"], ["--seed", "'-1' is not an integer from 0"]),
            (["train", "mlp", "--lr", "fast"], ["--lr", "'fast' is not a finite number"]),
            (["train", "mlp", "--lr", "1e999"], ["--lr", "1e999"]),
            (["train", "mlp", "--dropout", "nan"], ["--dropout", "nan"]),
            (["train", "mlp", "--threads", "5000000000"], ["--threads", "5000000000"]),
            (["eval"], ["checkpoint", "required", "tutti eval --help"]),
            (["devices", "now"], ["now"]),
            (["ops", "--nonsense"], ["--nonsense", "tutti ops --help"]),
        ]:
            with self.subTest(args):
                self.fails(2, parts, *args)

    def test_errors_as_json(self):
        for args, code in [(["train", "mlp", "--nonsense"], 2), (["train", "nothing"], 2), (["eval", "no-such"], 2)]:
            result = tutti(*args, "--json")
            self.assertEqual(result.returncode, code)
            document = json.loads(result.stdout)
            self.assertEqual(set(document), {"error", "remedy", "exit_code"})
            self.assertEqual(document["exit_code"], code)
            self.assertIn(document["error"], result.stderr)

    def test_ops(self):
        ops = self.json("ops")["ops"]
        self.assertGreater(len(ops), 50)
        text = self.done("ops").stdout
        for op in ops:
            self.assertIn(op["name"], text)
            self.assertTrue(op["doc"], op["name"])
        self.assertIn("matmul", self.done("ops", "--markdown").stdout)


class Quickstart(unittest.TestCase):
    """What scripts/quickstart.sh says before it installs or builds anything."""

    SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/quickstart.sh"

    def run_it(self, *args):
        return subprocess.run([self.SCRIPT, *args], capture_output=True, text=True, timeout=60)

    def test_help(self):
        result = self.run_it("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for part in ("--device", "auto", "cpu", "opencl", "vulkan"):
            self.assertIn(part, result.stdout)

    def test_bad_options(self):
        for args, part in [(["--device", "toaster"], "unknown device 'toaster'"),
                           (["--speed"], "unknown option --speed"), (["--device"], "--device needs a name")]:
            result = self.run_it(*args)
            self.assertEqual((result.returncode, result.stdout), (2, ""), args)
            self.assertIn(part, result.stderr)


if __name__ == "__main__":
    unittest.main()
