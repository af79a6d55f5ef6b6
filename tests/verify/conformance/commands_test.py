"""One bad plugin takes no command down: it is named with how it ended, and the others serve."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli"))
import harness
from harness import MLP

MOCK = pathlib.Path(os.environ["MOCK"])
ENDS = {"crash": r"the plugin crashed: signal 11 \(SIGSEGV", "exit": "the plugin ended its process with exit code 0",
        "hang": r"no answer within 1 s \(TUTTI_PROBE_SECONDS"}


class Commands(harness.Case):
    def env(self, fault, **more):
        return harness.environment(**{"TUTTI_PLUGIN_PATH": str(MOCK.parent), "TUTTI_MOCK": fault, "TUTTI_PROBE_SECONDS": "1",
                                      "TUTTI_PLUGINS": "mock,reference", "TUTTI_CACHE": str(self.folder / "cache"), **more})

    def doctor(self, env):
        return json.loads(harness.tutti("doctor", "--json", "--timeout", "20", env=env).stdout)

    def test_listing(self):
        for end, text in ENDS.items():
            with self.subTest(end=end):
                env = self.env(f"{end}_devices")
                found = self.json("devices", env=env)
                self.assertEqual([d["id"] for d in found["devices"]], ["reference:0"])
                mock = next(p for p in found["plugins"] if p["name"] == "mock")
                self.assertFalse(mock["loaded"])
                self.assertRegex(mock["problem"], "^devices: " + text)
                self.assertRegex(self.done("devices", env=env).stdout, "plugin mock was not loaded: devices: " + text)
                # Nobody who did not ask for the mock waits for it or hears of it.
                result = self.done("train", *MLP, "--steps", "1", "--no-eval", "--device", "reference:0", env=env)
                self.assertNotIn("mock", result.stderr)
                result = self.done("train", *MLP, "--steps", "1", "--no-eval", env=env)
                self.assertRegex(result.stderr, "plugin mock offers no device: devices: " + text)
                result = self.fails(2, ["unknown device 'mock:0'", "mock.json cannot be used"], "train", *MLP, "--device", "mock:0",
                                    env=env)
                self.assertRegex(result.stderr, text)
                for command in (["plan", *MLP, "--no-search"], ["parity", "--ops", "relu"]):
                    result = self.done(*command, "--device", "all", env=env)
                    self.assertRegex(result.stderr, "plugin mock offers no device: devices: " + text)
                found = self.doctor(env)
                bad = [f for f in found["plugins"] if f["mark"] == "problem"]
                self.assertEqual(len(bad), 1, bad)
                self.assertRegex(bad[0]["what"], "^mock .*devices: " + text)
                self.assertIn("TUTTI_PLUGINS=-mock excludes the plugin", bad[0]["remedy"])
                self.assertEqual([f["mark"] for f in found["devices"]], ["ok"])

    def test_open(self):
        for end, text in ENDS.items():
            with self.subTest(end=end):
                env = self.env(f"{end}_open", TUTTI_DEVICE_ORDER="mock")
                self.assertEqual(len(self.json("devices", env=env)["devices"]), 2)
                result = self.fails(2, ["device mock:0 (--device mock:0) cannot be used: open: "], "train", *MLP, "--device",
                                    "mock:0", env=env)
                self.assertRegex(result.stderr, "open: " + text)
                result = self.done("train", *MLP, "--steps", "1", "--no-eval", env=env)
                self.assertRegex(result.stderr, "device mock:0 is skipped: open: " + text)
                self.assertRegex(result.stderr, "(?m)^reference:0: ")
                result = self.done("parity", "--ops", "relu", "--device", "all", env=env)
                self.assertRegex(result.stderr, "mock:0 cannot be used: open: " + text)
                found = {f["facts"]["id"]: f for f in self.doctor(env)["devices"]}
                self.assertEqual((found["mock:0"]["mark"], found["reference:0"]["mark"]), ("problem", "ok"))
                self.assertRegex(found["mock:0"]["what"], text)

    def test_malformed_list(self):
        found = self.json("devices", env=self.env("malformed_list"))
        mock = next(p for p in found["plugins"] if p["name"] == "mock")
        self.assertEqual((mock["loaded"], mock["problem"]), (False, "devices: gave a malformed list (1 devices of 8 bytes)"))

    def test_memory_that_differs_from_the_plan(self):
        for fault in ("wrong_size", "large_size"):
            result = self.fails(1, ["mock:0: plugin 'mock' planned", "tutti conformance"], "train", *MLP, "--device", "mock:0",
                                "--quiet", env=self.env(fault))
            self.assertNotIn("loss", result.stderr)
        self.done("train", *MLP, "--device", "mock:0", "--steps", "2", env=self.env(""))

    def test_a_listing_is_kept_for_those_who_train(self):
        train = ["train", *MLP, "--steps", "1", "--no-eval", "--device", "auto"]
        env = self.env("hang_devices", TUTTI_PROBE_SECONDS="15")
        self.done(*train, env=env)
        start = time.monotonic()
        result = self.done(*train, env=env)
        self.assertLess(time.monotonic() - start, 15)  # the hang was waited for once
        self.assertIn("plugin mock offers no device", result.stderr)
        self.assertIn("mock:0: Mock device", self.done(*train, env=self.env("")).stderr)  # another environment

    def test_no_orphans(self):
        """Whatever ends a command ends the processes in which it asks plugins."""
        for command in (["devices"], ["doctor"], ["train", *MLP, "--device", "mock:0"]):
            fault = "hang_open" if command[0] == "train" else "hang_devices"
            env = self.env(fault, TUTTI_PROBE_SECONDS="60", MARK=str(self.folder / command[0]))
            process = subprocess.Popen([str(harness.BINARY), *command], env=env, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            self.assertTrue(self.until(lambda: self.probes(env["MARK"])), command)
            process.send_signal(signal.SIGKILL)
            process.wait()
            self.assertTrue(self.until(lambda: not self.probes(env["MARK"])), command)

    def probes(self, mark):
        """Processes of ours that ask the mock."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (f"MARK={mark}".encode() in (folder / "environ").read_bytes()
                        and b"mock.json" in (folder / "cmdline").read_bytes()):
                    found.append(folder.name)
            except OSError:
                pass
        return found

    def until(self, holds, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if holds():
                return True
            time.sleep(0.02)
        return False


if __name__ == "__main__":
    unittest.main()
