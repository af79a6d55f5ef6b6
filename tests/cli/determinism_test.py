"""Two runs with the same seed, device and number of threads have the same bits: every model, 50 steps."""
import unittest

import harness


class Determinism(harness.Case):
    def test_every_model_twice(self):
        for model in self.json("models")["models"]:
            with self.subTest(model=model["name"]):
                one, two = (self.train(model["name"], "--size", "tiny", "--steps", 50, "--seed", 3, "--no-eval", "--device", "onednn",
                                       "--threads", 2) for _ in range(2))
                self.assertEqual(one["state_hash"], two["state_hash"])
                self.assertEqual(one["losses"], two["losses"])


if __name__ == "__main__":
    unittest.main()
