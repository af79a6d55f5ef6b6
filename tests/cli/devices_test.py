"""Which devices there are, and what is said when plugins are missing or broken."""
import json
import pathlib
import shutil
import unittest

import harness
from harness import BINARY, MLP, environment, tutti

PLUGINS = BINARY.parent.parent / "lib/tutti/plugins"


class Devices(harness.Case):
    def test_lists_reference(self):
        result = self.done("devices")
        self.assertRegex(result.stdout, r"(?m)^reference:0 +software +reference")

    def test_json(self):
        document = self.json("devices")
        self.assertEqual(set(document), {"devices", "plugins", "searched"})
        for d in document["devices"]:
            self.assertLessEqual({"id", "name", "driver", "kind", "priority", "memory_total", "memory_free", "usable",
                                  "unusable", "why", "hardware"}, set(d))
            self.assertTrue(d["why"], d["id"])
            self.assertTrue(d["hardware"], d["id"])
        for p in document["plugins"]:
            self.assertEqual(set(p), {"name", "version", "loaded", "problem", "manifest", "library"})
            self.assertTrue(p["loaded"] or p["problem"])
        self.assertTrue(all(pathlib.Path(folder).is_absolute() for folder in document["searched"]))

    def test_explain(self):
        document = self.json("devices")
        text = self.done("devices", "--explain").stdout
        for d in document["devices"]:
            self.assertIn(d["id"], text)
            self.assertIn(d["why"], text)
        for p in document["plugins"]:
            self.assertIn(p["manifest"], text)
        for folder in document["searched"]:
            self.assertIn(folder, text)

    def test_a_named_device_comes_first(self):
        self.assertEqual(self.json("devices", "--device", "reference:0")["devices"][0]["id"], "reference:0")
        first = self.json("devices", env=environment(TUTTI_DEVICE="reference:0"))["devices"][0]
        self.assertEqual((first["id"], "TUTTI_DEVICE" in first["why"]), ("reference:0", True))
        self.fails(2, ["unknown device 'nothing:0'", "reference:0"], "devices", "--device", "nothing:0")

    def test_kinds_go_before_priorities_and_the_reference_is_last(self):
        ranks = {"discrete": 0, "integrated": 1, "cpu": 2, "other": 3, "software": 4}
        found = [d for d in self.json("devices")["devices"] if d["usable"]]
        order = [(ranks[d["kind"]], -d["priority"]) for d in found]
        self.assertEqual(order, sorted(order))
        self.assertEqual(found[-1]["id"], "reference:0")

    def test_a_device_is_named_by_plugin_kind_or_pattern(self):
        for text in ("reference", "REFERENCE:0", "ref*", "*float64*", "reference (float64 on the host)"):
            first = self.json("devices", "--device", text)["devices"][0]
            self.assertEqual(first["id"], "reference:0", text)
            self.assertIn(f"named by --device {text}", first["why"])
        # A pattern that fits several takes the best of them and names the others.
        usable = [d["id"] for d in self.json("devices")["devices"] if d["usable"]]
        first = self.json("devices", "--device", "*")["devices"][0]
        self.assertEqual(first["id"], usable[0])
        if len(usable) > 1:
            self.assertIn("the best of " + ", ".join(usable), first["why"])
        self.fails(2, ["no device matches 'NoSuch*'", "valid: auto", "reference:0"], "devices", "--device", "NoSuch*")

    def test_train_says_which_device_and_why(self):
        device = harness.usable_devices()[0]
        result = self.done("train", *MLP, "--steps", "1", "--no-eval")
        self.assertIn(device, result.stdout)
        self.assertRegex(result.stderr, rf"(?m)^{device}: .+\(.+\)$")


class Fastest(harness.Case):
    """--device fastest: times steps, keeps the times, and chooses by them."""

    def setUp(self):
        super().setUp()
        self.env = environment(TUTTI_CACHE=str(self.folder / "cache"), TUTTI_PLUGINS="onednn,opencl,reference")
        self.usable = [d["id"] for d in self.json("devices", env=self.env)["devices"] if d["usable"]]

    def fastest(self, *args, **env):
        return self.json("train", *MLP, "--steps", "2", "--no-eval", *args, "--device", "fastest", env=self.env | env)

    def test_it_is_timed_once_and_used_again(self):
        self.assertIn("no model was timed", self.done("devices", "--speed", env=self.env).stdout)
        first, again = self.fastest(), self.fastest()
        self.assertEqual([first["speeds"]["kept"], again["speeds"]["kept"]], [False, True])
        self.assertEqual(again["speeds"]["devices"], first["speeds"]["devices"])
        timed = [d for d in first["speeds"]["devices"] if d["step_ms"]]
        self.assertEqual(first["device"], timed[0]["device"])
        self.assertEqual(timed, sorted(timed, key=lambda d: d["step_ms"]))
        self.assertEqual({d["device"] for d in first["speeds"]["devices"]}, set(self.usable))
        if len(self.usable) > 1:
            self.assertIn("comparisons", next(d["problem"] for d in first["speeds"]["devices"] if d["device"] == "reference:0"))
        # Timing leaves no trace in the run.
        named = self.train(*MLP, "--steps", "2", "--no-eval", "--device", first["device"], env=self.env)
        self.assertEqual(first["state_hash"], named["state_hash"])
        self.assertFalse(self.fastest("--optimizer", "sgd")["speeds"]["kept"], "another step")
        self.assertFalse(self.fastest(TUTTI_PLUGINS="reference")["speeds"]["kept"], "other devices")
        kept = self.json("devices", "--speed", env=self.env)["models"]
        self.assertEqual([len(kept), kept[0]["model"]], [2, "mlp, batch 16, f32"])

    def test_another_order_is_told(self):
        both = {"onednn:0", "opencl:0"}
        if not both <= set(self.usable):
            self.skipTest("needs two devices")
        best = self.fastest()["device"]
        slower, = both - {best}
        text = self.done("train", *MLP, "--steps", "1", "--no-eval", env=self.env | {"TUTTI_DEVICE_ORDER": slower}).stderr
        self.assertRegex(text, rf"{slower}: .*position 1 in TUTTI_DEVICE_ORDER.*; {best} was faster for this model: \S+ ms a step")
        text = self.done("train", *MLP, "--steps", "1", "--no-eval", "--device", slower, env=self.env).stderr
        self.assertNotIn("was faster", text)  # it was named

    def test_what_it_cannot_choose(self):
        self.fails(2, ["--device fastest: only a training run", "tutti devices --speed MODEL"], "devices", "--device", "fastest")
        self.fails(2, ["unknown model 'nothing'"], "devices", "--speed", "nothing", env=self.env)
        self.fails(2, ["no plugin offers a device"], "train", *MLP, "--device", "fastest",
                   env=self.env | {"TUTTI_PLUGINS": "nothing"})
        result = tutti("train", *MLP, "--precision", "f64", "--device", "fastest", env=self.env | {"TUTTI_PLUGINS": "onednn"})
        self.assertIn("no device runs this model's training step:\n  onednn:0: ", result.stderr)
        self.assertIn("smaller model or batch", result.stderr)


class Shared(harness.Case):
    """Fake plugins that see one card."""

    FAKE = BINARY.parent.parent / "tests/fakes/loader_fake.so"

    def plugin(self, name, device, priority=10):
        into = self.folder / "plugins"
        into.mkdir(exist_ok=True)
        shutil.copy2(self.FAKE, into / f"{name}.so")
        (into / f"{name}.so.txt").write_text(f"name={name}\n{device}")
        (into / f"{name}.json").write_text(json.dumps({
            "tutti_manifest": 1, "name": name, "version": "1.0", "abi": [1, 1], "kind": "gpu", "priority": priority,
            "library": f"{name}.so"}))
        return environment(TUTTI_PLUGIN_PATH=str(into), TUTTI_CACHE="off")

    def setUp(self):
        super().setUp()
        if not self.FAKE.exists():
            self.skipTest(f"{self.FAKE} is not built")

    def test_one_machine_with_several_devices(self):
        self.plugin("zebra", "device=discrete||0000:65:00.0|7\n", 20)
        self.plugin("lion", "device=discrete||0000:66:00.0|\n", 15)
        env = self.plugin("apex", "device=discrete||0000:65:00.0|\n", 10)
        found = {d["id"]: d for d in self.json("devices", env=env)["devices"]}
        self.assertEqual(found["zebra:0"]["hardware"], "uuid:07" + 15 * "00")
        self.assertEqual(found["apex:0"]["hardware"], found["zebra:0"]["hardware"])
        self.assertEqual(found["lion:0"]["hardware"], "pci:0000:66:00.0")
        self.assertEqual(found["reference:0"]["hardware"], "reference:0")
        lines = self.done("devices", env=env).stdout.splitlines()
        self.assertTrue(lines[0].startswith("zebra:0 "), lines)
        self.assertTrue(lines[1].startswith("  apex:0 "), lines)
        self.assertTrue(lines[2].startswith("lion:0 "), lines)
        self.assertIn("(indented: the same hardware as the device above)", lines)
        self.assertIn("hardware uuid:07" + 15 * "00", self.done("devices", "--explain", env=env).stdout)

    def test_a_discrete_device_goes_before_a_cpu_of_higher_priority(self):
        env = self.plugin("zebra", "device=discrete\n", -5)
        first = self.json("devices", env=env)["devices"][0]
        self.assertEqual(first["id"], "zebra:0")
        self.assertRegex(first["why"], "discrete before (cpu|software)")


class Trees(harness.Case):
    """Copies of the installed layout with fewer plugins."""

    def tree(self, *plugins, probe=True):
        """bin/tutti, lib/libtutti.so.*, lib/tutti/tutti-probe and the named plugins' files, under the test's folder."""
        root = self.folder / "tree"
        into = root / "lib/tutti/plugins"
        into.mkdir(parents=True)
        (root / "bin").mkdir()
        shutil.copy2(BINARY, root / "bin/tutti")
        if probe:
            shutil.copy2(PLUGINS.parent / "tutti-probe", root / "lib/tutti/tutti-probe")
        for library in BINARY.parent.parent.glob("lib/libtutti.so*"):
            shutil.copy2(library, root / "lib" / library.name, follow_symlinks=False)
        for plugin in plugins:
            for file in [f"{plugin}.json", f"libtutti_{plugin}.so"]:
                shutil.copy2(PLUGINS / file, into / file)
        # The build tree's binary remembers the build tree's library; this one must come first.
        return root, dict(binary=root / "bin/tutti", env=environment(LD_LIBRARY_PATH=str(root / "lib"), TUTTI_CACHE="off"))

    def fake(self, root, name):
        """A manifest whose library is not there: what is left when somebody removes the library alone."""
        manifest = json.loads((PLUGINS / "reference.json").read_text())
        manifest.update(name=name, library=f"libtutti_{name}.so", priority=100)
        path = root / f"lib/tutti/plugins/{name}.json"
        path.write_text(json.dumps(manifest))
        return path

    def test_reference_alone_is_enough(self):
        root, at = self.tree("reference")
        document = self.json("devices", **at)
        self.assertEqual([d["id"] for d in document["devices"]], ["reference:0"])
        self.assertEqual(document["searched"], [str(root / "lib/tutti/plugins")])
        self.assertEqual(self.train(*MLP, "--steps", "2", **at)["device"], "reference:0")
        self.fails(2, ["unknown device 'onednn:0'", "valid: auto, reference:0"],
                   "train", *MLP, "--device", "onednn:0", **at)

    def test_without_the_probe_plugins_are_asked_in_the_process(self):
        for probe in (True, False):
            shutil.rmtree(self.folder / "tree", ignore_errors=True)
            _, at = self.tree("reference", probe=probe)
            at["env"]["TUTTI_LOG"] = "info"
            result = self.done("devices", **at)
            self.assertIn("reference:0", result.stdout)
            self.assertEqual("tutti-probe is not installed" in result.stderr, not probe, result.stderr)
            self.train(*MLP, "--steps", "1", **at)

    def test_what_is_wrong_with_a_plugin_reaches_unknown_device(self):
        root, at = self.tree("reference")
        plugins = root / "lib/tutti/plugins"
        (plugins / "bad.json").write_text("{")
        self.fails(2, ["unknown device 'mine:0'", f"{plugins}/bad.json: is not JSON"], "train", *MLP, "--device", "mine:0", **at)
        (plugins / "bad.json").unlink()
        shutil.copy2(plugins / "libtutti_reference.so", plugins / "libtutti_mine.so")
        lost = f"{plugins}/libtutti_mine.so has no manifest"
        self.fails(2, ["unknown device 'mine:0'", lost], "train", *MLP, "--device", "mine:0", **at)
        self.assertIn(lost, self.done("devices", **at).stdout)
        found = json.loads(tutti("doctor", "--no-steps", "--json", **at).stdout)
        bad = [f for f in found["plugins"] if f["mark"] == "problem"]
        self.assertEqual([lost in f["what"] for f in bad], [True])
        self.assertIn("write a manifest", bad[0]["remedy"])

    def test_a_removed_library_is_told(self):
        root, at = self.tree("reference")
        manifest = self.fake(root, "onednn")
        for args in (["devices"], ["devices", "--explain"]):
            text = self.done(*args, **at).stdout
            self.assertIn("reference:0", text)
            self.assertRegex(text, "plugin onednn was not loaded: .*libtutti_onednn.so")
        self.assertRegex(text, rf"rejected +{manifest}")
        plugins = {p["name"]: p for p in self.json("devices", **at)["plugins"]}
        self.assertTrue(plugins["reference"]["loaded"])
        self.assertFalse(plugins["onednn"]["loaded"])
        result = self.done("train", *MLP, "--steps", "2", **at)
        self.assertIn("plugin onednn offers no device", result.stderr)
        self.assertIn("the only usable device", result.stderr)
        self.fails(2, ["unknown device 'onednn:0'", "libtutti_onednn.so"], "train", *MLP, "--device", "onednn:0", **at)

    def test_no_plugin_at_all(self):
        root, at = self.tree()
        self.fails(2, ["no plugin offers a device", root / "lib/tutti/plugins", "TUTTI_PLUGIN_PATH"], "train", *MLP, **at)
        result = tutti("devices", **at)
        self.assertEqual(result.returncode, 1)
        self.assertIn("no device", result.stdout)
        self.assertIn(str(root / "lib/tutti/plugins"), result.stdout)
        at["env"]["TUTTI_PLUGIN_PATH"] = f"{self.folder}/one:{self.folder}/two"
        self.fails(2, [f"{self.folder}/one", f"{self.folder}/two", root / "lib/tutti/plugins"], "train", *MLP, **at)
        broken = self.fake(root, "broken")
        self.fails(2, ["no plugin offers a device", broken, "libtutti_broken.so"], "train", *MLP, **at)

    def test_plugin_path_is_searched(self):
        _, at = self.tree()
        plugins = self.folder / "elsewhere"
        plugins.mkdir()
        for file in ["reference.json", "libtutti_reference.so"]:
            shutil.copy2(PLUGINS / file, plugins / file)
        at["env"]["TUTTI_PLUGIN_PATH"] = str(plugins)
        document = self.json("devices", **at)
        self.assertEqual([d["id"] for d in document["devices"]], ["reference:0"])
        self.assertEqual(document["searched"][0], str(plugins))
        # Neither the working directory nor a relative path serves.
        at["env"]["TUTTI_PLUGIN_PATH"] = "elsewhere"
        self.assertEqual(tutti("devices", cwd=self.folder, **at).returncode, 1)
        del at["env"]["TUTTI_PLUGIN_PATH"]
        self.assertEqual(tutti("devices", cwd=plugins, **at).returncode, 1)

    def test_garbage_manifest_is_named(self):
        root, at = self.tree("reference")
        (root / "lib/tutti/plugins/bad.json").write_text("{")
        text = self.done("devices", **at).stdout
        self.assertIn("reference:0", text)
        self.assertIn("bad.json", text)


if __name__ == "__main__":
    unittest.main()
