"""Where two devices part: found in a plugin with planted faults, kept in a file, replayed, compared across machines."""
import json
import os
import pathlib
import shutil
import unittest

import harness
from harness import tutti

MODEL = ["mlp", "--data", "synthetic:16:4:64:32", "--layers", "16,8,4", "--batch", "8"]
PLANTED = pathlib.Path(os.environ["PLANTED"])


class Bisect(harness.Case):
    def setUp(self):
        super().setUp()
        self.plugins = self.folder / "plugins"
        self.plugins.mkdir(mode=0o700)
        shutil.copy(PLANTED, self.plugins / "planted.so")
        (self.plugins / "planted.json").write_text(json.dumps(
            {"tutti_manifest": 1, "name": "planted", "version": "1.0", "abi": [1, 1], "kind": "software",
             "priority": -1000, "library": "planted.so"}))
        self.env = harness.environment(TUTTI_PLUGIN_PATH=str(self.plugins))

    def plant(self, fault):
        (self.plugins / "planted.so.txt").write_text(fault)

    def bisect(self, *args, code=1):
        result = tutti("bisect", *MODEL, "--a", "reference:0", "--b", "planted:0", *args, env=self.env, cwd=self.folder)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_agree(self):
        self.plant("none")
        result = self.bisect(code=0)
        self.assertIn("reference:0 and planted:0 agree: 3 steps of mlp with batch 8", result.stdout)
        self.assertEqual(list(self.folder.glob("*.safetensors")), [])
        document = json.loads(self.bisect("--json", "--steps", "1", code=0).stdout)
        self.assertEqual((document["ok"], document["steps"], document["findings"]), (True, 1, []))
        self.assertEqual([d["id"] for d in document["devices"]], ["reference:0", "planted:0"])

    def test_finding_and_replay(self):
        self.plant("softmax")
        text = self.bisect().stdout
        for part in ("planted:0 is wrong in step 1, node ", "backward: this node", "softmax at loss.backward",
                     "f32[8, 4] -> f32[8, 4]", "worst element [7, ", "times its bound", "planted:0 is also wrong",
                     "tutti replay bisect-softmax.safetensors"):
            self.assertIn(part, text)
        file = self.folder / "node.safetensors"
        document = json.loads(self.bisect("--json", "--save", file).stdout)
        finding, = document["findings"]
        self.assertEqual((finding["wrong"], finding["kind"], finding["phase"], finding["step"]),
                         ("planted:0", "node", "backward", 1))
        self.assertEqual([(n["op"], n["label"]) for n in finding["nodes"]], [("softmax", "loss.backward")])
        self.assertGreater(finding["worst"]["share_of_bound"], 1000)
        self.assertTrue(finding["other"]["ok"])
        self.assertEqual(finding["replay"], f"tutti replay {file}")

        replayed = tutti("replay", file, "--json", env=self.env)
        self.assertEqual(replayed.returncode, 1, replayed.stderr)
        about = json.loads(replayed.stdout)["about"]
        self.assertEqual((about["step"], about["node"]), (1, finding["node"]))
        devices = {d["device"]: d for d in json.loads(replayed.stdout)["devices"]}
        self.assertEqual({k: d["ok"] for k, d in devices.items()}, {"planted:0": False, "reference:0": True})
        self.assertEqual(devices["planted:0"]["value"], finding["worst"]["value"])
        self.done("replay", file, "--device", "reference:0", env=self.env)
        without = tutti("replay", file)  # the plugin is gone: the other one is asked, the missing one named
        self.assertEqual(without.returncode, 0, without.stderr)
        self.assertIn("planted:0 (", without.stderr)
        self.assertIn("is not available on this machine", without.stderr)
        self.assertNotIn("--device", without.stderr)
        self.plant("none")
        self.done("replay", file, "--device", "all", env=self.env)

    def test_the_finding_outlives_its_file(self):
        self.plant("softmax")
        if os.geteuid() == 0:  # whom no permission stops: a folder in the place of the default file
            (self.folder / "bisect-softmax.safetensors").mkdir()
        else:
            self.folder.chmod(0o500)
            self.addCleanup(self.folder.chmod, 0o700)
        result = self.bisect()
        self.assertIn("softmax at loss.backward", result.stdout)
        self.assertNotIn("tutti replay", result.stdout)
        self.assertEqual(result.stderr.count("the finding is not saved: "), 1)
        self.assertIn("bisect-softmax.safetensors", result.stderr)
        finding, = json.loads(self.bisect("--json").stdout)["findings"]
        self.assertEqual(finding["nodes"][0]["op"], "softmax")
        self.assertIn("bisect-softmax.safetensors", finding["not_saved"]["error"])
        self.assertNotIn("replay", finding)

    def test_save_is_checked_before_the_run(self):
        self.plant("none")
        for target, why in (("/nonexistent/x", "does not exist"), ("/dev/full", "not a regular file"),
                            (self.folder, "it is a folder"), ("-", "stdout")):
            refused = self.bisect("--save", target, code=2)
            self.assertIn(f"--save {target}: ", refused.stderr)
            self.assertIn(why, refused.stderr)
            self.assertNotIn("compiling", refused.stderr)

    def test_the_file_names_no_folder(self):
        self.plant("softmax")
        data = self.folder / "secret"
        data.mkdir()
        rows = 32
        for part in ("train", "t10k"):
            (data / f"{part}-images-idx3-ubyte").write_bytes(
                bytes([0, 0, 8, 3, 0, 0, 0, rows, 0, 0, 0, 4, 0, 0, 0, 4]) +
                bytes((37 * i) % 251 for i in range(16 * rows)))
            (data / f"{part}-labels-idx1-ubyte").write_bytes(
                bytes([0, 0, 8, 1, 0, 0, 0, rows]) + bytes(i % 4 for i in range(rows)))
        file = self.folder / "node.safetensors"
        self.bisect("--data", f"idx:{data}", "--save", file)
        self.assertNotIn(b"secret", file.read_bytes())
        command = json.loads(tutti("replay", file, "--json", env=self.env).stdout)["about"]["command"]
        self.assertIn("--data idx:DIR ", command)

    def test_help_shows_what_is_true(self):
        text = self.done("bisect", "--help").stdout
        self.assertRegex(text, r"--batch .*\[16\]")
        self.assertRegex(text, r"--steps .*\n?.*\[3\]")
        self.assertNotIn("epochs", text)
        self.fails(2, ["--epochs"], "bisect", *MODEL, "--a", "reference:0", "--b", "reference:0", "--epochs", "2")
        self.fails(2, ["--steps 0: must be at least 1"], "bisect", *MODEL, "--a", "reference:0", "--b", "reference:0",
                   "--steps", "0")

    def test_no_files_that_are_none(self):
        self.fails(2, ["there is no such file", "`tutti bisect`"], "replay", self.folder / "no.safetensors")
        self.fails(2, ["there is no such file", "`tutti parity --record`"], "parity", "--against",
                   self.folder / "no.safetensors")
        self.fails(2, ["not a regular file", "`tutti bisect`"], "replay", self.folder)
        self.fails(2, ["file"], "replay", "")
        other = self.folder / "other.safetensors"
        other.write_bytes(b"\x10" + bytes(7) + b'{"a":1}         ')
        for command in (["replay"], ["parity", "--against"]):
            self.assertNotIn("checkpoint", self.fails(2, ["other.safetensors", "damaged"], *command, other).stderr)
        self.train(*harness.MLP, "--device", "reference:0", "--steps", "1", "--checkpoint", other)
        self.fails(2, ["not a valid replay file", "its format is"], "replay", other)
        self.fails(2, ["not a valid parity record", "its format is"], "parity", "--against", other)
        self.plant("softmax")
        self.bisect("--save", other)
        whole = other.read_bytes()
        other.write_bytes(whole[:-5])
        self.fails(2, ["other.safetensors", "`tutti bisect`"], "replay", other)
        other.write_bytes(whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:])
        self.fails(2, ["other.safetensors", "checksum"], "replay", other)

    def test_bad_usage(self):
        base = ["bisect", *MODEL, "--a", "reference:0"]
        self.fails(2, ["--b is required"], *base)
        self.fails(2, ["unknown device 'nothing:0' (--b nothing:0)"], *base, "--b", "nothing:0")
        self.fails(2, ["tf32"], *base, "--b", "reference:0", "--precision", "tf32")
        self.fails(2, ["fewer than one batch of 65"], *base, "--b", "reference:0", "--batch", "65")
        self.fails(2, ["unknown model 'rnn'"], "bisect", "rnn", "--a", "reference:0", "--b", "reference:0")
        self.fails(2, ["--device"], *base, "--b", "reference:0", "--device", "cpu")
        self.plant("decline")
        refused = self.bisect(code=2)
        self.assertIn("no taste for gather", refused.stderr)

    def test_records(self):
        file = self.folder / "machine.safetensors"
        ops = ["--ops", "add,softmax,matmul", "--quick"]
        self.done("parity", "--device", "reference:0", *ops, "--record", file, "--seed", "5")
        document = self.json("parity", "--device", "reference:0", "--against", file)
        self.assertEqual((document["ok"], document["seed"], document["recorded"]["id"]), (True, 5, "reference:0"))
        self.assertGreater(document["devices"][0]["cases"], 8)
        self.plant("softmax")
        wrong = tutti("parity", "--device", "planted:0", "--against", file, "--json", env=self.env)
        self.assertEqual(wrong.returncode, 1, wrong.stderr)
        parted = json.loads(wrong.stdout)["devices"][0]["parted"]
        self.assertEqual({p["case"].split(":")[0] for p in parted}, {"softmax"})
        self.done("parity", "--device", "planted:0", "--against", file, "--ops", "add,matmul", env=self.env)
        self.fails(2, ["recorded with seed 5"], "parity", "--against", file, "--seed", "6")
        self.fails(2, ["one device, but 2 are selected"], "parity", "--device", "reference:0,planted:0", *ops, "--record",
                   file, env=self.env)
        self.fails(2, ["excludes"], "parity", "--against", file, "--quick")


if __name__ == "__main__":
    unittest.main()
