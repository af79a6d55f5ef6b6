"""--profile: a trace that opens, of kernels that lie within their steps and add up to them."""
import json
import unittest

import harness
from harness import CNN, MLP

ARGS = {"step", "node", "op", "label", "takes_along", "inputs", "results", "bytes", "flops", "kernel", "why", "launches",
        "gflop_per_s", "gb_per_s", "bound", "roofline_share", "units"}
SLACK = 0.01  # microseconds: times are rounded to a nanosecond


class Profile(harness.Case):
    def profiled(self, *args, steps):
        """The run's document and the trace's, after the checks that hold of every trace."""
        path = self.folder / "trace.json"
        out = self.train(*args, "--no-eval", "--profile", path)
        trace = json.loads(path.read_text())
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        self.assertEqual({e["ph"] for e in trace["traceEvents"]}, {"X", "M"})
        for e in spans:
            self.assertTrue(e["name"] and e["cat"] and e["pid"] and e["tid"], e)
            self.assertGreaterEqual(e["dur"], 0, e)
        whole = {e["args"]["step"]: e for e in spans if e["cat"] == "step"}
        self.assertEqual(list(whole), steps)
        kernels = [e for e in spans if e["tid"] == 2]
        shares = []
        for number, step in whole.items():
            mine = [e for e in kernels if e["args"]["step"] == number]
            self.assertGreater(len(mine), 5)
            for e, following in zip(mine, mine[1:]):
                self.assertLessEqual(e["ts"], following["ts"])
            for e in mine:
                self.assertEqual(set(e["args"]), ARGS)
                self.assertGreaterEqual(e["ts"], step["ts"] - SLACK)
                self.assertLessEqual(e["ts"] + e["dur"], step["ts"] + step["dur"] * 1.05 + SLACK)
                self.assertTrue(e["args"]["kernel"] and e["args"]["why"])
            total = sum(e["dur"] for e in mine)
            self.assertAlmostEqual(total, step["args"]["kernels_us"], delta=0.01 * len(mine))
            self.assertLess(total, 1.05 * step["dur"])
            shares.append(total / step["dur"])
        self.assertGreater(max(shares), 0.02)  # a busy machine keeps us waiting between kernels, but not in every step
        self.assertEqual(trace["otherData"]["file"], str(path))
        for key, value in out["profile"].items():
            self.assertEqual(trace["otherData"][key], value)
        self.assertAlmostEqual(out["profile"]["sum_to_step"],
                               (out["profile"]["kernels_ms"] + out["profile"]["host_ms"]) / out["profile"]["step_ms"], places=6)
        return out, trace, kernels

    def test_every_device(self):
        for device in harness.usable_devices():
            with self.subTest(device=device):
                _, trace, kernels = self.profiled(*MLP, "--device", device, "--steps", "9", steps=[3, 4, 5, 6, 7])
                self.assertEqual({e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}, {device})
                self.assertIn(device, trace["otherData"]["peaks"])
                products = {e["args"]["node"]: e["args"] for e in kernels if e["args"]["op"] == "matmul"}
                # Forward, and backward to the weights; to the input of all but the first layer.
                flops = [2 * 16 * 32 * 16] * 2 + [2 * 16 * 16 * 4] * 3
                self.assertEqual(sorted(a["flops"] for a in products.values()), sorted(flops))
                for a in products.values():
                    self.assertEqual(len(a["inputs"]), 2)
                    self.assertEqual(a["bound"] in ("products", "memory"), True)
                    self.assertGreater(a["roofline_share"], 0)
                    self.assertGreaterEqual(a["bytes"], 4 * 16 * 4)
                self.assertTrue(any(a["label"] == "1" and a["inputs"] == ["f32[16, 32]", "f32[16, 32]"] for a in products.values()))
                self.assertTrue({"forward", "loss", "backward", "update"} <= {e["cat"] for e in kernels})

    def test_the_run_is_the_same_with_and_without(self):
        run = [*CNN, "--device", "cpu", "--steps", "4", "--no-eval"]
        plain = self.train(*run)
        self.assertNotIn("profile", plain)
        out, _, kernels = self.profiled(*run, steps=[3, 4])
        for key in ("losses", "state_hash", "peak_bytes"):
            self.assertEqual(out[key], plain[key], key)
        conv = [e["args"] for e in kernels if e["args"]["op"] == "conv2d"]
        self.assertTrue(conv and all(a["flops"] > 0 for a in conv))

    def test_all_parts_of_a_step_are_in_it(self):
        _, _, kernels = self.profiled(*MLP, "--device", "cpu", "--steps", "3", "--accumulate", "2", steps=[3])
        nodes = [e["args"]["node"] for e in kernels if e["args"]["op"] == "matmul"]
        self.assertEqual(len(nodes), 2 * len(set(nodes)), "both parts")
        self.assertIn("update", {e["cat"] for e in kernels})

    def test_which_steps(self):
        self.profiled(*MLP, "--device", "cpu", "--steps", "9", "--profile-step", "8", steps=[8, 9])
        self.profiled(*MLP, "--device", "cpu", "--steps", "1", steps=[1])
        first = self.folder / "a.safetensors"
        self.train(*MLP, "--device", "cpu", "--steps", "6", "--no-eval", "--checkpoint", first)
        self.profiled("--resume", first, "--device", "cpu", "--steps", "10", steps=[9, 10])

    def test_the_table_names_what_costs_most(self):
        result = self.done("train", *MLP, "--device", "cpu", "--steps", "8", "--no-eval", "--profile", self.folder / "t.json")
        lines = result.stderr.splitlines()
        head = next(i for i, line in enumerate(lines) if line.split() == ["ms", "step", "roofline", "node", "kernel"])
        self.assertIn("profile: 5 steps from step 3 on", lines[head - 1])
        rows = [line for line in lines[head + 1:] if "%" in line]
        self.assertEqual(len(rows), 10)
        cost = [float(row.split()[0]) for row in rows]
        self.assertEqual(cost, sorted(cost, reverse=True))
        self.assertIn("matmul", result.stderr)

    def test_bad_input_ends_the_command_before_it_trains(self):
        run = ["train", *MLP, "--device", "cpu", "--steps", "4"]
        trace = self.folder / "trace.json"
        self.fails(2, ["--profile", "does not exist", self.folder / "none"], *run, "--profile", self.folder / "none" / "trace.json")
        self.fails(2, ["--profile", "it is a folder"], *run, "--profile", self.folder)
        self.fails(2, ["--profile -", "name a file"], *run, "--profile", "-")
        self.fails(2, ["--profile-step 5", "has only 4 steps", "1 to 4"], *run, "--profile", trace, "--profile-step", "5")
        self.fails(2, ["--profile-step 0"], *run, "--profile", trace, "--profile-step", "0")
        self.fails(2, ["--profile-step 2", "--profile FILE"], *run, "--profile-step", "2")
        self.fails(2, ["--profile-step", "not an integer"], *run, "--profile", trace, "--profile-step", "two")
        self.fails(2, ["--merged and --profile both write to"], *run, "--profile", trace, "--merged", trace)
        self.assertFalse(trace.exists())
        checkpoint = self.folder / "a.safetensors"
        self.train(*MLP, "--device", "cpu", "--steps", "4", "--no-eval", "--checkpoint", checkpoint)
        self.fails(2, ["--profile", "no steps left"], "train", "--resume", checkpoint, "--steps", "4", "--device", "cpu",
                   "--profile", trace)


if __name__ == "__main__":
    unittest.main()
