"""Devices held against the reference, by op and by training step."""
import json
import os
import unittest

import harness
from harness import tutti

COUNTS = {"pass", "fail", "unsupported", "expected_failure", "no_room"}
LISTS = {"failures", "unsupported", "expected_failures", "no_room"}
DEVICES = ",".join(d for d in ["reference:0", "onednn:0"] if d in harness.usable_devices())

RENDERED = [d for d in harness.usable_devices(slow=True) if d.startswith(("opencl:", "vulkan:"))]


class Parity(harness.Case):
    def test_quick_json(self):
        document = self.json("parity", "--device", DEVICES, "--ops", "add,matmul,sum,relu", "--quick")
        self.assertEqual(set(document), {"ok", "seed", "extent", "numerics", "devices", "ops", "remarks", "partial"} | LISTS)
        self.assertEqual(document["extent"], "quick")
        self.assertIs(document["ok"], True)
        self.assertEqual([o["op"] for o in document["ops"]], ["add", "matmul", "sum", "relu"])
        self.assertEqual(",".join(d["id"] for d in document["devices"]), DEVICES)
        for d in document["devices"]:
            self.assertEqual((d["pass"], d["fail"], d["unsupported"]), (16, 0, 0))
        for op in document["ops"]:
            for cell in op["devices"].values():
                self.assertEqual(set(cell), COUNTS | {"worst_share_of_bound", "worst_error", "cells"})
                self.assertEqual({(c["dtype"], c["direction"]) for c in cell["cells"]}, {("f32", "forward"), ("f32", "backward")})
                for count in COUNTS:
                    self.assertEqual(sum(c[count] for c in cell["cells"]), cell[count])
                self.assertLessEqual(cell["worst_share_of_bound"], 1)

    def test_table_and_page(self):
        page = self.folder / "parity.html"
        result = self.done("parity", "--device", DEVICES, "--ops", "add", "--html", page)
        self.assertRegex(result.stdout, r"(?m)^add( +\d+)+$")
        self.assertRegex(result.stderr, r"(?m)^(\d+) of \1 cases after \d+ s$")
        text = page.read_text()
        self.assertTrue(text.startswith("<!doctype html>") and text.endswith("</html>\n"))
        self.assertNotIn("http", text)

    def test_one_case_is_replayed(self):
        device = DEVICES.split(",")[-1]
        args = ["parity", "--device", device, "--case", "matmul:2:all:f32", "--seed", "11"]
        document = self.json(*args)
        self.assertEqual((document["seed"], document["devices"][0]["pass"]), (11, 1))
        self.assertEqual(document["ops"], self.json(*args)["ops"], "the same seed gives the same numbers")
        other = self.json(*args[:-1], "12")["ops"][0]["devices"][device]
        self.assertTrue(other["pass"])

    def test_an_expected_failure_that_passes_is_a_failure(self):
        """As its plugin's manifest lists it."""
        plugins = self.folder / "plugins"
        built = harness.BINARY.parent.parent / "lib/tutti/plugins"
        plugins.mkdir()
        manifest = json.loads((built / "reference.json").read_text())
        (plugins / manifest["library"]).symlink_to(built / manifest["library"])
        manifest["expected_failures"] = [{"case": "add:0:forward:*", "reason": "made up"}]
        (plugins / "reference.json").write_text(json.dumps(manifest))
        env = harness.environment(TUTTI_PLUGIN_PATH=str(plugins), TUTTI_PLUGINS="reference")
        args = ["parity", "--device", "reference:0", "--ops", "add", "--quick", "--json"]
        result = tutti(*args, env=env)
        self.assertEqual(result.returncode, 1, result.stderr)
        document = json.loads(result.stdout)
        self.assertEqual([f["case"] for f in document["failures"]], ["add:0:forward:f32"])
        self.assertIn("made up", document["failures"][0]["why"])
        manifest["expected_failures"][0]["may_pass"] = True
        (plugins / "reference.json").write_text(json.dumps(manifest))
        result = tutti(*args, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["devices"][0]["expected_failure"], 0)
        manifest["expected_failures"][0]["may_fail"] = True
        (plugins / "reference.json").write_text(json.dumps(manifest))
        result = tutti(*args[:-1], env=env)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn('"expected_failures": entry 0: key "may_fail" is unknown', result.stderr)
        self.assertIn("may_pass", result.stderr)

    def test_what_rendered_kernels_cannot_do_is_expected(self):
        if not RENDERED:
            self.skipTest("no OpenCL or Vulkan device is here")
        for device in RENDERED if "TUTTI_TEST_ALL" in os.environ else RENDERED[:1]:
            document = self.json("parity", "--device", device, "--ops", "cast")
            self.assertGreater(document["devices"][0]["expected_failure"], 0)
            self.assertEqual(len(document["expected_failures"]), document["devices"][0]["expected_failure"])
            for entry in document["expected_failures"]:
                self.assertIn("f64", entry["why"])
                self.assertTrue(entry["case"].startswith("cast:2:"))

    def test_lockstep(self):
        document = self.json("parity", "--device", DEVICES, "--model", "mlp", "--steps", "2", "--batch", "4")
        self.assertIs(document["ok"], True)
        for entry in document["lockstep"]:
            self.assertEqual((entry["ok"], entry["steps"], entry["failures"]), (True, 2, []))
            self.assertLessEqual(entry["worst_loss"], 1e-5)
            self.assertLessEqual(entry["worst_gradient"], 1e-3)
        self.assertEqual(",".join(entry["device"] for entry in document["free"]), DEVICES)
        self.assertTrue(all(entry["steps"] == 2 and not entry["problem"] for entry in document["free"]))

    def test_bad_input(self):
        self.fails(2, ["unknown op 'nop'", "tutti ops"], "parity", "--ops", "add,nop")
        self.fails(2, ["unknown device 'nothing:0'"], "parity", "--device", "nothing:0", "--ops", "add")
        self.fails(2, ["not a sample of add"], "parity", "--case", "add:99:forward:f32")
        self.fails(2, ["there is no such case", "add:0:all:f32"], "parity", "--case", "add:0:d7:f32")
        self.fails(2, ["no such case", "add:0:all.large:f32"], "parity", "--case", "add:0:all.larger:f32")
        self.fails(2, ["unknown model 'rnn'"], "parity", "--model", "rnn")
        self.fails(2, ["--steps"], "parity", "--steps", "3")
        self.fails(2, ["--steps 0"], "parity", "--model", "mlp", "--steps", "0")
        self.fails(2, ["excludes"], "parity", "--quick", "--full")
        self.fails(2, ["cannot be written"], "parity", "--ops", "add", "--html", self.folder / "no/where.html")
        refused = tutti("parity", "--ops", "nop", "--json")
        self.assertEqual((refused.returncode, json.loads(refused.stdout)["exit_code"]), (2, 2))


if __name__ == "__main__":
    unittest.main()
