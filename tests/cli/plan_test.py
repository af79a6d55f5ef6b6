"""`tutti plan` says what a run then uses."""
import unittest

import harness


class Plan(harness.Case):
    def planned(self, *args):
        """The plans of one call, by device and precision."""
        result = harness.tutti("plan", *args, "--json")
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return {(p["device"], p["precision"]): p for p in harness.json.loads(result.stdout)["plans"]}

    def test_equals_what_a_run_uses(self):
        for model in (harness.MLP, harness.CNN):
            for device in harness.usable_devices(slow=True):
                for more in ([], ["--no-eval", "--optimizer", "sgd", "--batch", "24"]):
                    plan = self.planned(*model, "--device", device, "--no-search", *more)[device, "f32"]
                    run = self.train(*model, "--device", device, "--steps", 1, *more)
                    self.assertEqual(plan["peak_bytes"], run["planned_bytes"], (model, device, more))
                    self.assertEqual(plan["peak_bytes"], run["peak_bytes"], (model, device, more))
                    self.assertEqual(plan["state"]["parameters"], 4 * run["parameters"])
                    self.assertEqual(plan["gradients"], 4 * run["parameters"])

    def test_weights_kept_quantized(self):
        (self.folder / "text.txt").write_text("the cat sat on the mat. " * 40)
        data = ["--data", f"text:{self.folder / 'text.txt'}", "--context", "8", "--batch", "2"]
        run, model, plain = self.folder / "run.safetensors", self.folder / "q.gguf", self.folder / "f32.gguf"
        self.train("llama", *data, "--device", "reference", "--steps", "1", "--no-eval", "--checkpoint", run)
        self.done("export", run, "--output", model, "--type", "q8_0")
        self.done("export", run, "--output", plain)
        tuned = ["llama", "--init", model, *data, "--lora", "2"]
        for device in harness.usable_devices(slow=True):
            peaks = {}
            for quantize in ("file", "int4", ""):
                args = [*tuned, "--device", device, *(["--quantize", quantize] if quantize else [])]
                plan = self.planned(*args, "--no-search")[device, "f32"]
                run = self.train(*args, "--steps", "1")
                self.assertEqual(plan["peak_bytes"], run["planned_bytes"], (device, quantize))
                self.assertEqual(plan["peak_bytes"], run["peak_bytes"], (device, quantize))
                peaks[quantize] = plan["state"]["parameters"]
            self.assertLess(peaks["file"], 0.35 * peaks[""])
        fits = ["train", *tuned, "--device", "reference", "--quantize", "file", "--memory-budget"]
        peak = self.planned(*tuned, "--device", "reference", "--quantize", "file", "--no-search")["reference:0", "f32"]["peak_bytes"]
        self.done(*fits, f"{peak}B", "--steps", "1")
        self.fails(2, ["does not fit"], *fits, "4MB", "--steps", "1")
        refused = self.planned("llama", "--init", plain, *data, "--lora", "2", "--quantize", "file", "--device", "reference")
        self.assertIn("no quantized matrix", refused["reference:0", "f32"]["problem"])

    def test_precisions_and_what_a_device_declines(self):
        plans = self.planned(*harness.MLP, "--device", "reference", "--precision", "f32,bf16,tf32", "--no-search")
        f32, bf16 = plans["reference:0", "f32"], plans["reference:0", "bf16"]
        self.assertEqual(f32["state"]["parameters"], bf16["state"]["parameters"])
        self.assertLess(bf16["activations"], f32["activations"])
        self.assertIn("tf32", plans["reference:0", "tf32"]["problem"])
        run = self.train(*harness.MLP, "--device", "reference", "--steps", 1, "--precision", "bf16")
        self.assertEqual(bf16["peak_bytes"], run["peak_bytes"])

    def test_a_roofline_predicts_the_step(self):
        for device in harness.usable_devices(slow=True):
            rates = "100GB/s,f32=1TFLOP/s,launch=10us"
            plan = self.planned(*harness.MLP, "--device", device, "--no-search", "--roofline", rates)[device, "f32"]
            p = plan["roofline"]
            self.assertAlmostEqual(p["launch_ms"], 0.01 * p["launches"])
            self.assertEqual(p["launches"], sum(n["launches"] for n in p["nodes"]))
            self.assertAlmostEqual(p["step_ms"], sum(n["us"] for n in p["nodes"]) / 1000)
            for n in p["nodes"]:  # 85 % of the memory's peak, 60 % of the products'
                us = max(n["bytes"] / (0.85 * 0.1e6), n["flops"] / (0.6 * 1e6)) + 10 * n["launches"]
                self.assertAlmostEqual(n["us"], us, places=6)
            for f in p["fusable"]:
                self.assertGreaterEqual(f["launches"], 2)
                self.assertLess(f["inner_bytes"], f["bytes"])
        shown = harness.tutti("plan", *harness.MLP, "--device", "onednn", "--no-search", "--roofline", "h100")
        self.assertIn("predicted for h100, not measured", shown.stdout)
        for bad in ("h1000", "2TB/s", "2TB/s,f33=1TFLOP/s", "2TB/s,f32=1", "-1TB/s,f32=1TFLOP/s", "infTB/s,f32=1TFLOP/s"):
            self.fails(2, ["--roofline " + bad, "h100"], "plan", *harness.MLP, "--roofline", bad)
        wrong = self.planned(*harness.MLP, "--device", "onednn", "--no-search", "--precision", "bf16", "--roofline", "1TB/s,f32=1TFLOP/s")
        self.assertIn("no rate of products in bf16", next(iter(wrong.values()))["problem"])

    def test_a_network_predicts_the_step(self):
        args = [*harness.MLP, "--device", "reference", "--no-search", "--world", "4", "--network", "4Gbit/s,50us"]
        p = self.planned(*args)["reference:0", "f32"]
        message = 50e-6 + p["state"]["accumulated"] / 4 / 0.5e9  # of a rank's share, in seconds
        self.assertAlmostEqual(p["predicted"]["communication_ms"], 1000 * 2 * 3 * message, places=6)
        self.assertGreater(p["predicted"]["compute_ms"], 0)
        self.assertAlmostEqual(p["predicted"]["step_ms"], p["predicted"]["compute_ms"] + p["predicted"]["communication_ms"], places=6)
        self.assertAlmostEqual(p["predicted"]["waiting_ms"], p["predicted"]["communication_ms"])  # this device reports no gradients early
        large = self.planned("mlp", "--data", "synthetic:32:4:512:256", "--layers", "32,600,600,600,4", "--batch", "16", "--device",
                             "onednn", "--no-search", "--world", "2", "--network", "40GB/s,1us")["onednn:0", "f32"]["predicted"]
        self.assertLess(large["waiting_ms"], large["communication_ms"])
        self.assertAlmostEqual(large["step_ms"], large["compute_ms"] + large["waiting_ms"], places=6)
        ordered = self.planned(*args, "--reduce", "ordered")["reference:0", "f32"]["predicted"]
        self.assertAlmostEqual(ordered["waiting_ms"], ordered["communication_ms"])
        sharded = self.planned(*args, "--shard", "optimizer")["reference:0", "f32"]
        self.assertAlmostEqual(sharded["predicted"]["communication_ms"], 1000 * (2 * 3 + 4 * 2) * message, places=6)
        self.assertIn("predicted for 4 ranks, not measured", self.done("plan", *args).stdout)

    def test_summary_trains_nothing(self):
        summary = self.json("train", *harness.MLP, "--device", "reference", "--summary")
        self.assertEqual(summary["parameters"], 32 * 16 + 16 + 16 * 4 + 4)
        self.assertEqual([layer["flops"] for layer in summary["layers"] if layer["flops"]], [2 * 16 * 32 * 16, 2 * 16 * 16 * 4])
        self.assertIn("f32[16, 4]", self.done("train", *harness.MLP, "--device", "reference", "--summary").stdout)

    def test_parts_make_the_whole(self):
        wholes = []
        for more in ([], ["--no-eval"], ["--accumulate", "4"], ["--accumulate", "4", "--keep-last", "--batch", "24"],
                     ["--keep-last", "--batch", "24"]):
            p = self.planned(*harness.CNN, "--device", "reference", "--no-search", *more)["reference:0", "f32"]
            self.assertEqual("update" in p, "--accumulate" in more)
            self.assertEqual("last_batch" in p, "--keep-last" in more)
            programs = ("training", "initialization", "evaluation", "update", "last_batch")
            moving = {k: sum(p[k].values()) - p[k]["new_state"] if k in p else 0 for k in programs}
            state = sum(p["state"].values())
            always = state + moving["training"] + moving["update"]
            early = always - p["evaluation"]["new_state"] + moving["initialization"]
            self.assertEqual(p["peak_bytes"], max(early, always + moving["last_batch"] + moving["evaluation"]), more)
            wholes.append(p["peak_bytes"])
        self.assertEqual(len(set(wholes)), len(wholes))

    def test_rows_add_up(self):
        units = {"B": 1, "KiB": 1024, "MiB": 1024 ** 2}
        for model, more, rows in ((harness.CNN, [], {"evaluation"}), (harness.MLP, ["--no-eval"], {"initialization"}),
                                  (harness.CNN, ["--accumulate", "4"], {"update", "accumulated"}),
                                  (harness.CNN, ["--accumulate", "2", "--keep-last", "--batch", "24"], {"update", "last batch"}),
                                  (harness.CNN, ["--keep-last", "--batch", "24"], {"last batch"})):
            text = self.done("plan", *model, "--device", "reference", "--no-search", *more).stdout
            found, rounded = {}, 0
            for row in text.split("  largest tensors")[0].splitlines()[1:]:
                name, number, unit = row[2:18].strip(), *row[18:30].split()
                found[name] = float(number) * units[unit]
                rounded += 0.05 * units[unit] if unit != "B" else 0
            whole = found.pop("in all")
            self.assertAlmostEqual(sum(found.values()), whole, delta=rounded + 1, msg=text)
            self.assertEqual(rows - set(found), set(), text)
            self.assertIn("at their highest", text)

    def test_the_optimizer_and_the_largest_tensors(self):
        p = self.planned(*harness.CNN, "--device", "reference", "--no-search")["reference:0", "f32"]
        self.assertEqual(p["largest"], sorted(p["largest"], key=lambda t: -t["bytes"]))
        self.assertIn("7.weight", p["largest"][0]["what"])
        self.assertEqual(p["state"]["optimizer"], 2 * p["state"]["parameters"])

    def test_the_largest_batch_fits_and_the_next_does_not(self):
        # lavapipe's buffers end at 128 MiB: a layer of 2^20 numbers per sample has room for few samples there.
        device = next((d for d in harness.usable_devices(slow=True) if d.startswith("vulkan:")), None)
        if not device:
            self.skip_without("vulkan", "no Vulkan device is here")
        args = ["mlp", "--data", "synthetic:8:4:512:64", "--layers", "8,1048576,4", "--device", device, "--no-eval"]
        best = self.planned(*args)[device, "f32"]["largest_batch"]
        if best is None or best >= 512:
            self.skipTest("the device has room for the whole set")
        self.assertGreater(best, 0)
        self.assertTrue(self.planned(*args, "--batch", best, "--no-search")[device, "f32"].get("fits"))
        beyond = self.planned(*args, "--batch", best + 1, "--no-search")[device, "f32"]
        self.assertTrue("problem" in beyond or not beyond["fits"])

    def test_a_small_set_is_the_largest_batch(self):
        p = self.planned(*harness.MLP, "--device", "reference")["reference:0", "f32"]
        self.assertEqual(p["largest_batch"], 512)
        self.assertTrue(p["fits"])

    def test_text(self):
        text = self.done("plan", *harness.MLP, "--device", "reference").stdout
        for part in ("reference:0, f32", "in all", "parameters", "fits into the ", "largest batch", "the whole set",
                     "largest tensors"):
            self.assertIn(part, text)

    def test_bad_input(self):
        self.fails(2, ["unknown model 'vgg'"], "plan", "vgg")
        self.fails(2, ["--batch 1000", "512 samples"], "plan", *harness.MLP[:-1], "1000")
        self.fails(2, ["f99"], "plan", *harness.MLP, "--precision", "f32,f99")
        self.fails(2, ["no device"], "plan", *harness.MLP, "--device", ",")


if __name__ == "__main__":
    unittest.main()
