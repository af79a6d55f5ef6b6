"""--numerics exact: the same bits on every device, with any number of threads, and on another device after --resume."""
import json
import os
import shutil
import unittest

import harness

TINY = ["--size", "tiny", "--numerics", "exact"]
WHOLE = "EXACT_ALL" in os.environ  # every device and six models, which takes minutes
MODELS = {"mlp": 20, "cnn": 4, "gpt": 4, "resnet18": 2, "lstm": 3, "vit": 3, "dlrm": 4} if WHOLE else {"mlp": 20, "cnn": 4}


class Exact(harness.Case):
    def state(self, model, *args):
        return self.train(model, *TINY, *args)["state_hash"]

    def test_every_device_has_the_same_state(self):
        devices = harness.usable_devices(slow=WHOLE)
        self.assertIn("reference:0", devices)
        for model, steps in MODELS.items():
            with self.subTest(model=model):
                states = {d: self.state(model, "--steps", steps, "--device", d) for d in devices}
                self.assertEqual(len(set(states.values())), 1, states)

    def test_threads_change_nothing(self):
        states = {n: self.state("cnn", "--steps", 8, "--device", "onednn", "--threads", n) for n in (1, 2, 3)}
        self.assertEqual(len(set(states.values())), 1, states)

    def test_a_run_goes_on_elsewhere(self):
        file = self.folder / "run.safetensors"
        mlp = ["--data", "synthetic:32:4:256:64", "--layers", "32,16,4", "--batch", 16]
        one = self.train("mlp", *mlp, "--numerics", "exact", "--epochs", 2, "--device", "onednn")["state_hash"]
        self.train("mlp", *mlp, "--numerics", "exact", "--epochs", 1, "--device", "reference", "--checkpoint", file)
        two = self.train("--resume", file, "--epochs", 2, "--device", "onednn")
        self.assertEqual(two["state_hash"], one)

    def test_a_run_is_verified(self):
        file = self.folder / "run.safetensors"
        mlp = ["mlp", "--data", "synthetic:32:4:256:64", "--layers", "32,16,4", "--batch", 16, "--epochs", 2, "--seed", 7]
        state = self.train(*mlp, "--numerics", "exact", "--device", "onednn", "--checkpoint", file)["state_hash"]
        found = self.json("verify-run", file, "--device", "reference", "--quiet")
        self.assertEqual((found["ok"], found["steps"], found["state_hash"], found["checkpoint_state_hash"]),
                         (True, 32, state, state))
        self.assertEqual([save["step"] for save in found["saves"]], [16, 32])
        other = harness.tutti("verify-run", file, "--device", "onednn", "--lr", "0.002", "--quiet")
        self.assertEqual(other.returncode, 1, other.stderr)
        self.assertIn("other bits on onednn:0 after 16 steps (from the first save on): state ", other.stdout)
        late = self.folder / "late.safetensors"  # resumed with another learning rate: only its first saves agree
        self.train("--resume", file, "--epochs", 3, "--lr", "0.002", "--device", "onednn", "--save-every", 4, "--checkpoint", late)
        other = harness.tutti("verify-run", late, "--device", "onednn", "--lr", "0.001", "--quiet")
        self.assertEqual(other.returncode, 1, other.stderr)
        self.assertIn("other bits on onednn:0 after 36 steps (the same after 32): state ", other.stdout)
        self.train(*mlp, "--device", "onednn", "--checkpoint", file)
        self.fails(2, ["the run has numerics fast", "train with --numerics exact"], "verify-run", file)

    def test_fast_is_another_sum(self):
        fast = self.train("cnn", "--size", "tiny", "--steps", 8, "--device", "onednn")["state_hash"]
        self.assertNotEqual(fast, self.state("cnn", "--steps", 8, "--device", "onednn"))

    def test_parity_compares_bits(self):
        found = self.json("parity", "--quick", "--ops", "softmax,conv2d,adam", "--numerics", "exact", "--device", "onednn")
        self.assertTrue(found["ok"])
        self.assertEqual(found["numerics"], "exact")
        self.assertGreater(found["devices"][0]["pass"], 8)

    def test_bisect_finds_no_difference(self):
        found = self.json("bisect", "gpt", *TINY, "--a", "onednn", "--b", "reference", "--batch", 2, "--steps", 1)
        self.assertTrue(found["ok"])
        self.assertIsNone(found["finding"])
        self.assertGreater(found["nodes_per_step"], 100)

    def planted(self, fault):
        """The environment with a device that has the fault."""
        plugins = self.folder / fault
        plugins.mkdir(mode=0o700)
        shutil.copy(os.environ["PLANTED"], plugins / "planted.so")
        (plugins / "planted.so.txt").write_text(fault)
        (plugins / "planted.json").write_text(json.dumps(
            {"tutti_manifest": 1, "name": "planted", "version": "1.0", "abi": [1, 1], "kind": "software",
             "priority": -1000, "library": "planted.so"}))
        return harness.environment(TUTTI_PLUGIN_PATH=str(plugins), TUTTI_CACHE="off")

    def test_a_fault_is_found(self):
        """What a compiler may do is found before the first step, and named; bisect names the node."""
        right = self.planted("none")
        for fault, proof, model, op, label in (("contraction", "matmul: element", "mlp", "matmul", "4.backward"),
                                               ("order", "sum of all: element", "gpt", "sum", "loss"),
                                               ("division", "div: element", "fragile", "div", "1"),
                                               ("flush", "element", "fragile", "mul", "4")):
            with self.subTest(fault=fault):
                env = self.planted(fault)
                self.fails(2, ["planted:0: its numerics are not exact", proof, ", expected 0x", "--numerics fast"],
                           "train", "mlp", *TINY, "--steps", 1, "--device", "planted", env=env)
                words = self.fragile() if model == "fragile" else [model, *TINY]
                words = ["bisect", *words, "--steps", 1, "--batch", 4, "--a", "onednn", "--b", "planted:0"]
                result = harness.tutti(*words, "--json", env=env)
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                finding = json.loads(result.stdout)["finding"]
                self.assertEqual((finding["op"], finding["label"], finding["wrong"]), (op, label, "planted:0"), finding)
                self.assertIn("elements have other bits, the first is", finding["difference"])
                result = harness.tutti(*words, env=right)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.train("mlp", *TINY, "--steps", 1, "--device", "planted", env=right)

    def fragile(self):
        """A model with quotients and, by two factors of 1e-20, denormals."""
        file = self.folder / "fragile.json"
        layers = [{"Linear": {"out_features": 8}}, "Softmax", {"Linear": {"out_features": 8}}, {"PReLU": {"init": 1e-20}},
                  {"PReLU": {"init": 1e-20}}, {"Linear": {"out_features": 4}}]
        file.write_text(json.dumps({"name": "fragile", "input": [16], "layers": layers}))
        return [file, "--data", "synthetic:16:4:64:16", "--numerics", "exact"]

    def test_refusals(self):
        for precision in ("bf16", "f16", "tf32", "f64"):
            self.fails(2, ["--numerics exact", "exact numerics are those of f32, not " + precision, "--precision f32"],
                       "train", "mlp", *TINY, "--precision", precision, "--device", "onednn")
        self.fails(2, ["--numerics bits", "fast or exact"], "train", "mlp", "--numerics", "bits")
        self.fails(2, ["--save", "exact numerics"], "bisect", "mlp", *TINY, "--a", "onednn", "--b", "reference",
                   "--save", self.folder / "x.safetensors")


if __name__ == "__main__":
    unittest.main()
