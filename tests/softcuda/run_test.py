"""The unmodified tutti and CUDA plugin on the software CUDA device, by scripts/softcuda.sh."""
import json
import os
import subprocess
import sys
import unittest

TUTTI = os.environ["TUTTI_BINARY"]
SCRIPT = os.environ["SOFTCUDA_SCRIPT"]
BUILD = os.environ["SOFTCUDA_BUILD"]


def run(*arguments, software=True, timeout=280, **environment):
    command = [SCRIPT, "--build", BUILD] if software else []
    own = {k: v for k, v in os.environ.items() if not k.startswith(("SOFTCUDA_CHECK", "SOFTCUDA_SEED", "SOFTCUDA_MAJOR"))}
    return subprocess.run([*command, TUTTI, *arguments], env={**own, **environment}, capture_output=True, text=True,
                          timeout=timeout)


def missing():
    """Why the device cannot be used here, or None."""
    devices = json.loads(run("devices", "--json").stdout)["devices"]
    found = [d for d in devices if d["id"].startswith("cuda:")]
    return found[0]["unusable"] or None if found else "the cuda plugin lists no device:\n" + run("devices").stdout


class Case(unittest.TestCase):
    def done(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, " ".join(arguments) + "\n" + result.stdout + result.stderr)
        return result

    def train(self, model, device="cuda:0", steps=4, options=(), **environment):
        """The losses of all steps, and the hash of the state."""
        result = self.done("train", model, "--size", "tiny", "--device", device, "--steps", str(steps), "--no-eval",
                           "--json", *options, software=device == "cuda:0", **environment)
        document = json.loads(result.stdout)
        losses = document["losses"]
        self.assertEqual(len(losses), steps)
        return losses, document["state_hash"]

    def assert_close(self, losses, others, relative):
        for step, (a, b) in enumerate(zip(losses, others)):
            self.assertLessEqual(abs(a - b), relative * max(1, abs(b)), f"step {step + 1}: {losses} and {others}")


class Quick(Case):
    def test_it_is_listed_as_software(self):
        line = next(l for l in self.done("devices").stdout.splitlines() if l.startswith("cuda:0"))
        self.assertRegex(line, r"^cuda:0 +software +software CUDA \(PTX interpreter\)")

    def test_losses_are_those_of_onednn(self):
        expected, _ = self.train("cnn", "onednn:0", 20)
        self.assert_close(self.train("cnn", steps=20)[0], expected, 1e-5)
        self.assert_close(self.train("cnn", steps=20, SOFTCUDA_MAJOR="7")[0], expected, 1e-5)

    def test_graphs_streams_and_orders_give_the_same_bits(self):
        for model in ["cnn", "gpt", "lstm"]:
            with self.subTest(model):
                expected = self.train(model)[1]
                self.assertEqual(self.train(model, TUTTI_CUDA_GRAPH="0")[1], expected, "without graphs")
                for streams, seed in [("4", "1"), ("16", "2"), ("16", "3")]:
                    got = self.train(model, TUTTI_CUDA_STREAMS=streams, SOFTCUDA_SEED=seed)[1]
                    self.assertEqual(got, expected, f"{streams} streams, seed {seed}")

    def test_two_byte_floats(self):
        for precision in ["bf16", "f16"]:
            with self.subTest(precision):
                options = ["--precision", precision]
                expected, _ = self.train("cnn", "reference:0", options=options)
                self.assert_close(self.train("cnn", options=options)[0], expected, 2e-3)

    def test_checks_find_nothing(self):
        for model in ["mlp", "cnn"]:
            self.train(model, steps=2, SOFTCUDA_CHECK="uninitialised,races", TUTTI_CUDA_STREAMS="4", SOFTCUDA_SEED="1")

    def test_an_unknown_check_is_an_error(self):
        result = run("train", "mlp", "--size", "tiny", "--device", "cuda:0", "--steps", "1", SOFTCUDA_CHECK="everything")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("unknown check 'everything'", result.stderr)

    def test_a_missing_library_is_named(self):
        result = subprocess.run([SCRIPT, "--build", "/none", "true"], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("/none/tests/softcuda/libcuda.so.1 is missing: build the target softcuda", result.stderr)


class Parity(Case):
    def test_quick_for_compute_90(self):
        self.done("parity", "--quick", "--device", "cuda:0")

    def test_quick_for_compute_75(self):
        self.done("parity", "--quick", "--device", "cuda:0", SOFTCUDA_MAJOR="7")


class Models(Case):
    def models(self):
        models = json.loads(self.done("models", "--json", software=False).stdout)["models"]
        names = [m["name"] for m in models if any(s["name"] == "tiny" for s in m["sizes"])]
        self.assertGreater(len(names), 15)
        return names

    def test_every_tiny_model_in_lockstep(self):
        for model in self.models():
            with self.subTest(model):
                self.done("parity", "--device", "cuda:0", "--model", model, "--size", "tiny", "--steps", "3",
                          TUTTI_CUDA_STREAMS="4", SOFTCUDA_SEED="1")

    def test_checks_find_nothing_in_any_tiny_model(self):
        for model in self.models():
            with self.subTest(model):
                self.train(model, steps=2, SOFTCUDA_CHECK="uninitialised,races")


if __name__ == "__main__":
    if "NVRTC" in (why := missing() or ""):  # anything else is a fault, which the tests show
        print("skipped: the software CUDA device cannot be used:", why)
        sys.exit(77)
    unittest.main()
