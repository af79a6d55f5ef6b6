"""`--precision`: what trains, what its JSON says, and what cannot be."""
import json
import re
import struct
import unittest

import harness
from harness import CNN, MLP

DEVICES = harness.usable_devices()


def metadata(path):
    """The texts of a safetensors file."""
    data = path.read_bytes()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])["__metadata__"]


class Precision(harness.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "run.safetensors"

    def test_every_precision_trains_on_every_device(self):
        for device in DEVICES:
            for model, steps in ((MLP, 12), (CNN, 2)):
                args = [*model, "--device", device, "--steps", steps, "--lr", "3e-3"]
                exact = self.train(*args)
                for precision in ("bf16", "f16"):
                    with self.subTest(device=device, model=model[0], precision=precision):
                        out = self.train(*args, "--precision", precision)
                        self.assertEqual(out["precision"], precision)
                        self.assertEqual(out["planned_bytes"], out["peak_bytes"])
                        self.assertEqual(out["steps"], steps)
                        self.assertEqual(out["loss_scale"],
                                         65536 / 2 ** out["skipped_steps"] if precision == "f16" else None)
                        # A skipped step is one without an update: the losses before it can be compared anyhow.
                        self.assertAlmostEqual(out["losses"][0], exact["losses"][0], delta=0.03)
                        if model is MLP:
                            self.assertEqual(out["skipped_steps"], 0)
                        if out["skipped_steps"] == 0:
                            self.assertNotEqual(out["state_hash"], exact["state_hash"])
                            for a, b in zip(out["losses"], exact["losses"]):
                                self.assertAlmostEqual(a, b, delta=0.03)

    def test_onednn_computes_products_without_its_reference(self):
        """The implementations that oneDNN takes where it has no other are a thousand times slower."""
        if "onednn:0" not in DEVICES:
            self.skip_without("onednn", "the onednn plugin is not here")
        for precision in ("bf16", "f16"):
            out = self.done("train", *CNN, "--device", "onednn:0", "--steps", "1", "--precision", precision, "--quiet",
                            env=harness.environment(ONEDNN_VERBOSE="1", DNNL_VERBOSE="1")).stdout
            used = re.findall(r"(?m)^\w+_verbose,.*?exec,cpu,(?:convolution|matmul),([^,]*),", out)
            if not used:
                self.skipTest("this oneDNN does not tell what it runs")
            self.assertGreaterEqual(len(used), 11)  # 5 convolutions and 6 products in a training step
            self.assertEqual([name for name in used if name.startswith("ref")], [], precision)

    def test_f32_is_the_default(self):
        a, b = self.train(*MLP, "--steps", "4"), self.train(*MLP, "--steps", "4", "--precision", "f32")
        self.assertEqual(a["state_hash"], b["state_hash"])
        self.assertEqual((a["precision"], a["loss_scale"], a["skipped_steps"]), ("f32", None, 0))

    def test_text(self):
        self.assertRegex(self.done("train", *MLP, "--steps", "2", "--precision", "f16").stdout,
                         r"(?m)^precision  f16, loss scale \d+, \d+ steps skipped$")
        self.assertIn("--precision", self.done("train", "--help").stdout)

    def test_resume_and_eval_follow_the_checkpoint(self):
        whole = self.train(*MLP, "--steps", "8", "--precision", "f16")
        self.train(*MLP, "--steps", "4", "--precision", "f16", "--checkpoint", self.file)
        self.assertEqual(metadata(self.file)["precision"], "f16")
        rest = self.train("--resume", self.file, "--steps", "8")
        self.assertEqual((rest["state_hash"], rest["precision"], rest["loss_scale"]),
                         (whole["state_hash"], "f16", whole["loss_scale"]))
        followed = self.json("eval", self.file)
        self.assertEqual((followed["precision"], followed["loss"]), ("f16", rest["test_loss"]))
        exact = self.json("eval", self.file, "--precision", "f32")
        self.assertEqual(exact["precision"], "f32")
        self.assertNotEqual(exact["loss"], followed["loss"])
        self.assertAlmostEqual(exact["loss"], followed["loss"], delta=0.01)

    def test_resume_in_another_precision(self):
        self.train(*MLP, "--steps", "4", "--checkpoint", self.file)
        before = self.file.read_bytes()
        self.fails(2, ["trained in precision f32", "uses bf16", "--precision f32"], "train", "--resume", self.file,
                   "--steps", "8", "--precision", "bf16", "--quiet")
        self.assertEqual(self.file.read_bytes(), before)

    def test_tf32_where_there_is_none(self):
        for device in DEVICES:
            if device.startswith("cuda:"):
                continue
            for command in (["train", *MLP, "--quiet"], ["eval", self.file]):
                if command[0] == "eval":
                    self.train(*MLP, "--steps", "1", "--checkpoint", self.file)
                self.fails(2, [device, "tf32", "a mode of NVIDIA GPUs", "--precision f32 or bf16"], *command,
                           "--device", device, "--precision", "tf32")

    def test_unknown(self):
        self.fails(2, ["--precision f8", "f32, tf32, bf16, f16"], "train", *MLP, "--precision", "f8")


if __name__ == "__main__":
    unittest.main()
