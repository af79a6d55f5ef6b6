"""Strict by default, `--fallback cpu`, and what is said when memory does not do."""
import json
import re
import shutil
import unittest

import harness
from harness import BINARY, MLP, environment

FAKES = BINARY.parent.parent / "tests/fakes"


class Fallback(harness.Case):
    """With the plugin "picky": the reference, which declines the ops that a file names."""

    def setUp(self):
        super().setUp()
        library = FAKES / "loader_picky.so"
        if not library.exists():
            self.skipTest(f"{library} is not built")
        shutil.copy2(library, self.folder / "picky.so")
        (self.folder / "picky.json").write_text(json.dumps({
            "tutti_manifest": 1, "name": "picky", "version": "1.0", "abi": [1, 1], "kind": "gpu", "priority": 0,
            "library": "picky.so"}))
        self.env = environment(TUTTI_PLUGIN_PATH=str(self.folder))

    def declines(self, ops):
        (self.folder / "picky.so.txt").write_text(ops)
        return ["train", *MLP, "--device", "picky", "--steps", "5"]

    def test_strict_lists_every_node(self):
        args = self.declines("matmul adam")
        text = self.fails(2, ["picky:0 declines", "--fallback cpu"], *args, env=self.env).stderr
        for part in (" at 1: no taste for matmul", " at 3: no taste for matmul", " at 3.backward: no taste for matmul",
                     " at 1.backward: no taste for matmul", " at update: no taste for adam"):
            self.assertIn(part, text)

    def test_a_device_that_tells_no_times_is_not_profiled(self):
        trace = self.folder / "trace.json"
        self.fails(2, ["picky:0: its plugin does not measure kernel times", "another device"],
                   *self.declines(""), "--profile", trace, "--quiet", env=self.env)
        self.assertFalse(trace.exists())

    def test_fallback_trains_says_what_and_tells_the_json(self):
        plain = self.train(*MLP, "--device", "reference:0", "--steps", "5")
        self.assertNotIn("fallback", plain)
        file = self.folder / "run"
        args = [*self.declines("matmul adam"), "--fallback", "cpu"]
        result = self.done(*args, "--checkpoint", file, "--json", env=self.env)
        out = json.loads(result.stdout)
        self.assertEqual(out["device"], "picky:0")
        for a, b in zip(out["losses"], plain["losses"], strict=True):
            self.assertAlmostEqual(a, b, delta=1e-5)
        self.assertEqual(out["planned_bytes"], out["peak_bytes"])
        fallback = out["fallback"]
        self.assertEqual(set(fallback), {"device", "nodes", "bytes_per_step"})
        others = [d["id"] for d in self.json("devices", env=self.env)["devices"] if d["kind"] == "cpu"]
        self.assertEqual(fallback["device"], [*others, "reference:0"][0])
        self.assertGreater(fallback["bytes_per_step"], 4 * 3 * (32 * 16 + 16 * 4))
        self.assertRegex(result.stderr, rf"\d+ of \d+ nodes are not supported by picky:0 and run on {fallback['device']}, with "
                                        rf"{fallback['bytes_per_step']} bytes copied per step")
        for node in fallback["nodes"]:
            self.assertIn(node, result.stderr)
            self.assertIn("no taste for", node)
        self.assertIn(f"run on {fallback['device']}, {fallback['bytes_per_step']} bytes copied per step",
                      self.done(*args, env=self.env).stdout)
        # The same for eval.
        self.fails(2, ["picky:0 declines"], "eval", file, "--device", "picky:0", env=self.env)
        score = self.json("eval", file, "--device", "picky:0", "--fallback", "cpu", env=self.env)
        self.assertAlmostEqual(score["loss"], self.json("eval", file, "--device", "reference:0")["loss"], delta=1e-5)
        self.assertTrue(all("matmul" in node for node in score["fallback"]["nodes"]))

    def test_none_needed(self):
        args = [*self.declines(""), "--fallback", "cpu"]
        self.assertIn("fallback   none was needed", self.done(*args, env=self.env).stdout)
        out = json.loads(self.done(*args, "--json", env=self.env).stdout)
        self.assertEqual(out["fallback"], {"device": None, "nodes": [], "bytes_per_step": 0})

    def test_other_fallbacks_are_refused(self):
        self.fails(2, ["--fallback gpu: unknown", "use none or cpu"], "train", *MLP, "--fallback", "gpu")


class Memory(harness.Case):
    """On every usable device, software too."""

    ALL = {d["id"]: d for d in json.loads(harness.tutti("devices", "--json").stdout)["devices"] if d["usable"]}

    def test_planned_equals_peak(self):
        for device in self.ALL:
            with self.subTest(device=device):
                out = self.train(*MLP, "--device", device, "--steps", "2", "--no-eval")
                self.assertEqual(out["planned_bytes"], out["peak_bytes"])
                self.assertGreater(out["peak_bytes"], 4 * 3 * (32 * 16 + 16 * 4))

    def test_terabytes_are_refused_before_the_run(self):
        # 4 million samples through 600 thousand hidden units: 9.6 TB a tensor.
        args = ["mlp", "--data", "synthetic:4:2:4000000:16", "--layers", "4,600000,2", "--batch", "4000000"]
        for device in self.ALL:
            with self.subTest(device=device):
                # What no kernel of a GPU can reach is declined; what a host could reach does not fit.
                # A device whose buffers are smaller declines the nodes; the others plan, and know what fits.
                remedy = "smaller batch" if device.startswith(("vulkan", "opencl")) else "less memory: --accumulate "
                text = self.fails(2, [device, "f32[4000000, 600000]", "9600000000000 bytes", remedy],
                                  "train", *args, "--device", device, "--no-eval").stderr
                self.assertRegex(text, "declines|bytes are free: about .* % of this batch would fit")

    def test_twice_the_memory_is_refused_with_the_largest_tensors_and_what_would_fit(self):
        # Neither unknown nor so large that the data set is too much for a test.
        devices = {i: d for i, d in self.ALL.items() if 0 < d["memory_total"] < 64 << 30}
        if not devices:
            self.skipTest("no device here has less than 64 GiB")
        for device, d in devices.items():
            with self.subTest(device=device):
                batch = d["memory_total"] // 20 // 4096 // 9 * 9  # 40 results of 1024 floats a sample; in parts, too
                args = ["mlp", "--data", f"synthetic:4:2:{batch}:16", "--layers", "4," + 40 * "1024," + "2",
                        "--batch", batch]
                text = self.fails(2, [device, "this program needs ", "the largest tensors:", "matmul",
                                      "bytes are free: about ", " % of this batch would fit",
                                      "try: train the same batch in less memory: --accumulate "],
                                  "train", *args, "--device", device, "--no-eval").stderr
                self.assertEqual(len(re.findall(r"(?m)^ +\d+ bytes  ", text)), 5, text)


if __name__ == "__main__":
    unittest.main()
