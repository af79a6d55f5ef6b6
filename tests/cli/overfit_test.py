"""--overfit: a sound model learns one batch by heart."""
import unittest

import harness
from harness import CNN, MLP


class Overfit(harness.Case):
    RUN = [*MLP, "--device", "cpu", "--seed", "3"]

    def test_sound_models_learn_a_batch_by_heart(self):
        for model in (["mlp", "--layers", "32,64,4", "--data", "synthetic:32:4:512:256", "--batch", "16"], CNN,
                      ["resnet18", "--size", "tiny"], ["lstm", "--size", "tiny"], ["char_lstm", "--size", "tiny", "--lr", "0.01"],
                      ["gpt", "--size", "tiny", "--lr", "0.01"], ["unet", "--size", "tiny", "--lr", "0.01"]):
            with self.subTest(model=model[0]):
                out = self.json("train", *model, "--device", "cpu", "--quiet", "--overfit")
                self.assertEqual(out["overfit"], "passed")
                self.assertLessEqual(out["last_loss"], 0.01 * out["first_loss"])
                self.assertEqual(out["reasons"], [])

    def test_who_learns_slowly_is_told(self):
        result = harness.tutti("train", "gpt", "--size", "tiny", "--device", "cpu", "--quiet", "--overfit", "20")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("still falls: --overfit 80, or a larger --lr", result.stderr)

    def test_a_model_that_cannot_learn_fails(self):
        for options, reason in ((["--lr", "0"], "the learning rate is 0"), (["--freeze", "*.weight"], "--freeze *.weight"),
                                (["--lr", "1e-7"], "a learning rate of 1e-07 is too small"),
                                (["--dropout", "0.9"], "dropout"), (["--optimizer", "adamw", "--weight-decay", "20"], "--weight-decay 20")):
            with self.subTest(options=options):
                result = harness.tutti("train", *self.RUN, *options, "--overfit", "60", "--quiet")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("failed", result.stdout)
                self.assertIn(reason, result.stderr)
        self.fails(2, ["--overfit", "saves nothing"], "train", *self.RUN, "--overfit", "9", "--checkpoint", self.folder / "a.safetensors")
        self.fails(2, ["name the model first"], "train", "--overfit", "mlp")


if __name__ == "__main__":
    unittest.main()
