"""tutti top: devices, and the runs that go on while they do."""
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import harness
from harness import BINARY, MLP, environment


class Top(harness.Case):
    def setUp(self):
        super().setUp()
        self.env = environment(XDG_RUNTIME_DIR=str(self.folder))

    def look(self, *args):
        return self.json("top", *args, env=self.env)

    def start(self, *args):
        child = subprocess.Popen([str(BINARY), "train", *MLP, "--no-eval", "--quiet", "--steps", "100000000", "--device", "reference:0", *args],
                                 env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        return child

    def wait_for(self, condition):
        for _ in range(100):
            now = self.look()
            if condition(now):
                return now
            time.sleep(0.05)
        self.fail(json.dumps(now))

    def test_devices_are_those_that_can_be_used(self):
        usable = [d["id"] for d in self.json("devices", env=self.env)["devices"] if d["usable"]]
        now = self.look()
        self.assertEqual([d["id"] for d in now["devices"]], usable)
        self.assertEqual(now["runs"], [])
        for d in now["devices"]:
            if d["id"].startswith("reference"):
                self.assertTrue(0 <= d["busy"] <= 1, d)
        self.assertIn("no training run of this user is active", self.done("top", env=self.env).stdout)

    def test_a_run_is_seen_while_it_goes_on(self):
        child = self.start()
        run, = self.wait_for(lambda now: now["runs"] and now["runs"][0]["step"] > 0 and now["runs"][0]["processors"])["runs"]
        self.assertEqual((run["pid"], run["device"], run["model"], run["steps"], run["batch"]),
                         (child.pid, "reference:0", "mlp:default", 100000000, 16))
        self.assertGreater(run["samples_per_s"], 0)
        self.assertGreater(run["resident_bytes"], 1 << 20)
        self.assertGreater(run["processors"], 0)
        later = self.wait_for(lambda now: now["runs"][0]["step"] > run["step"])
        self.assertEqual({d["id"]: d["runs"] for d in later["devices"]}["reference:0"], 1)
        text = self.done("top", env=self.env).stdout
        self.assertRegex(text, rf"{child.pid}  reference:0 +mlp:default +\d+ of 100000000")
        child.send_signal(signal.SIGTERM)
        child.wait(timeout=60)
        self.assertEqual(self.look()["runs"], [])
        self.assertFalse((self.folder / "tutti").exists(), "nothing is left")

    def test_a_killed_run_is_forgotten(self):
        child = self.start()
        self.wait_for(lambda now: now["runs"])
        child.kill()
        child.wait()
        self.assertTrue((self.folder / "tutti" / f"{child.pid}.json").exists())
        self.assertEqual(self.look()["runs"], [])
        self.assertFalse((self.folder / "tutti" / f"{child.pid}.json").exists())

    def test_notes_that_are_none(self):
        notes = self.folder / "tutti"
        notes.mkdir(mode=0o700)
        (notes / "1.json").write_text("{")
        (notes / "x.json").write_text("{}")
        (notes / "2.json").symlink_to("/etc/passwd")
        self.assertEqual(self.look()["runs"], [])
        for text in ("[]", '{"device": 1}', '{"loss": null}', '{"step": "3"}'):
            with open(notes / f"{os.getpid()}.json", "w", encoding="utf-8") as note:
                fcntl.flock(note, fcntl.LOCK_EX)
                note.write(text)
                note.flush()
                self.assertEqual(self.look()["runs"], [], text)
                self.assertIn("no training run of this user is active", self.done("top", env=self.env).stdout)

    def test_where_no_note_can_be_written_the_run_goes_on(self):
        for folder in (self.folder / "absent", pathlib.Path("/proc")):
            self.json("train", *MLP, "--steps", 2, "--no-eval", env=environment(XDG_RUNTIME_DIR=str(folder)))
        shared = self.folder / "tutti"
        shared.mkdir()
        os.chmod(shared, 0o777)  # others could write there
        self.json("train", *MLP, "--steps", 2, "--no-eval", env=self.env)
        self.assertEqual(list(shared.iterdir()), [])

    def test_watching_ends_with_a_signal(self):
        child = subprocess.Popen([str(BINARY), "top", "--watch", "0.1", "--json"], env=self.env, stdout=subprocess.PIPE)
        for _ in range(2):
            self.assertIn("devices", json.loads(child.stdout.readline()))
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        self.assertEqual(child.returncode, 0)
        self.fails(2, ["--watch -1"], "top", "--watch", "-1")


if __name__ == "__main__":
    unittest.main()
