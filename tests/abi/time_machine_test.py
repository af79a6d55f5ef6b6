"""Today's engine and a later one, today's plugin, a later one and the recorded one: every pairing trains and agrees."""
import json
import os
import pathlib
import subprocess
import unittest

ENGINES = {"today": os.environ["TODAY_ENGINE"], "later": os.environ["LATER_ENGINE"]}
PLUGINS = {"today": ("reference:0", os.environ["TODAY_PLUGIN"]), "later": ("reference:0", os.environ["LATER_PLUGIN"]),
           "recorded": ("recorded:0", os.environ["RECORDED"])}
OK, INVALID, DECLINED = 0, 1, 2


def run(engine, plugin):
    device, library = PLUGINS[plugin]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TUTTI_")}
    environment.update(TUTTI_PLUGIN_PATH=str(pathlib.Path(library).parent), TUTTI_CACHE="off", TUTTI_LOG="warning")
    done = subprocess.run([ENGINES[engine], device], env=environment, capture_output=True, text=True, timeout=100,
                          check=False)
    if done.returncode:
        raise AssertionError(f"{engine} engine with {plugin} plugin: {done.stderr}")
    return json.loads(done.stdout), done.stderr


class TimeMachine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = {(e, p): run(e, p) for e in ENGINES for p in PLUGINS}

    def each(self):
        for pair, (result, log) in self.results.items():
            with self.subTest(engine=pair[0], plugin=pair[1]):
                yield *pair, result, log

    def test_the_pairings_are_what_they_say(self):
        sizes = {p: self.results[("later", p)][0]["device_bytes"] for p in PLUGINS}
        self.assertGreater(sizes["later"], sizes["today"])
        self.assertEqual(sizes["today"], sizes["recorded"])
        self.assertIn("later", self.results[("later", "today")][0])
        self.assertNotIn("later", self.results[("today", "later")][0])

    def test_all_train_and_agree(self):
        want = self.results[("today", "today")][0]
        self.assertLess(want["loss"], 1.3)
        for _, plugin, result, _ in self.each():
            self.assertAlmostEqual(result["loss"], want["loss"], delta=1e-5)
            if plugin != "recorded":
                self.assertEqual(result["weights"], want["weights"])

    def test_what_is_unknown_declines_its_node_alone(self):
        for _, plugin, result, _ in self.each():
            self.assertEqual(result["plain"], {"open": OK, "check": OK, "accepted": [1, 1, 1, 1][:len(result["plain"]["accepted"])],
                                               "compile": OK})
            for what in ("unknown_dtype", "unknown_flag"):
                self.assertEqual(result[what]["check"], OK, what)
                self.assertEqual(result[what]["compile"], DECLINED, what)
                self.assertEqual(result[what]["accepted"].count(0), 1, what)

    def test_later_fields_are_zero_where_one_side_does_not_know_them(self):
        later = self.results[("later", "later")][0]["later"]
        self.assertEqual(later, {"call": True, "device": 0xA1, "table": 0xA1, "received": [0xA1] * 4})
        for plugin in ("today", "recorded"):
            self.assertEqual(self.results[("later", plugin)][0]["later"], {"call": False, "device": 0, "table": 0})
        self.assertIn("received 0 0 0 0", self.results[("today", "later")][1])
        self.assertNotIn("received a1", self.results[("today", "later")][1])

    def test_extensions_are_found_or_not_there(self):
        for _, plugin, result, _ in self.each():
            ours, later = plugin != "recorded", plugin == "later"
            self.assertEqual(result["extensions"], {"profile": ours, "native": ours, "collective": later})
            if plugin == "today":
                self.assertEqual(result["profiled"], {"times_before_run": OK, "times": OK, "kernels": result["profiled"]["kernels"],
                                                      "kernel": "reference add", "timed": True})
                self.assertGreaterEqual(result["profiled"]["kernels"], 1)
            if later:
                self.assertEqual(result["profiled"],
                                 {"times_before_run": INVALID, "times": OK, "kernels": 1, "kernel": "reference step",
                                  "timed": True, "native": DECLINED, "unique_id": OK, "join": OK, "all_reduce": OK,
                                  "leave": OK})


if __name__ == "__main__":
    unittest.main()
