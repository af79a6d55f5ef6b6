"""Sizes that no machine has: told at once, before the memory is full."""
import resource
import time
import unittest

import harness
from harness import MLP

FOUR_GIB = 4 << 30


class Sizes(harness.Case):
    def refused(self, parts, *args):
        """The command must say so quickly, and in little memory."""
        before = time.monotonic()

        def limit():
            resource.setrlimit(resource.RLIMIT_DATA, (FOUR_GIB, FOUR_GIB))

        result = self.fails(2, parts, *args, preexec_fn=limit)
        self.assertNotIn("out of host memory", result.stderr)
        self.assertLess(time.monotonic() - before, 20)
        return result

    def test_layers(self):
        data = ["--data", "synthetic:784:10:32:16", "--batch", "16", "--no-eval"]
        for layers in ("784,4294967296,10", "784,2147483648,10", "784,65536,65536,65536,10",
                       "784,4611686018427387904,10", "784,9223372036854775807,10"):
            for device in ("onednn", "reference"):
                with self.subTest(layers=layers, device=device):
                    result = self.refused([], "train", "mlp", *data, "--layers", layers, "--device", device)
                    if device == "onednn" and 2**31 <= int(layers.split(",")[1]) < 2**40:  # it counts in 32 bits
                        self.assertIn("dimensions above 2^31 - 1 are not supported", result.stderr)

    def test_classes(self):
        for data, layers in (("synthetic:784:1000000000:64:16", "784,1000000000"),
                             ("synthetic:1:1000000000:64:16", "1,8,1000000000")):
            for device in ("onednn", "reference"):
                self.refused([], "train", "mlp", "--data", data, "--layers", layers, "--batch", "16", "--device", device)
                plan = harness.tutti("plan", "mlp", "--data", data, "--layers", layers, "--batch", "16", "--device",
                                     device, "--no-search", "--json")
                self.assertIn(plan.returncode, (1, 2), plan.stderr)  # it does not fit, or cannot be

    def test_compile_time_is_linear_in_the_layers(self):
        def seconds(device, layers):
            args = ["plan", "mlp", "--data", "synthetic:8:8:64:16", "--batch", "16", "--no-search", "--no-eval",
                    "--layers", ",".join(["8"] * (layers + 1)), "--device", device]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.done(*args)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime - before.ru_utime  # what other processes do does not count

        for device in harness.usable_devices(slow=True):
            with self.subTest(device):
                # 4 times the layers: 4 is linear, 16 quadratic. Caches and other load add to it, so the best of 3 counts.
                ratios = []
                while len(ratios) < 3 and min(ratios, default=99) >= 10:
                    start, few, many = seconds(device, 1), seconds(device, 500), seconds(device, 2000)
                    ratios.append((many - start) / max(few - start, 0.05))
                self.assertLess(min(ratios), 10, f"{ratios}: {start} s, {few} s, {many} s")

    def test_many_classes_of_few_samples_take_no_memory(self):
        # Prototypes are made for the classes that occur only; what is generated is the same either way.
        self.assertEqual(self.train(*MLP[:1], "--data", "synthetic:4:1000:64:16", "--layers", "4,1000", "--batch", "16",
                                    "--device", "reference:0")["steps"], 4)


if __name__ == "__main__":
    unittest.main()
