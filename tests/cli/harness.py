"""Runs the `tutti` binary named by TUTTI_BINARY, for the scripts beside this file."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BINARY = pathlib.Path(os.environ["TUTTI_BINARY"]).resolve()
REQUIRED = [p for p in os.environ.get("TUTTI_REQUIRE", "").split(",") if p]  # plugins whose devices have to be here
MLP = ["mlp", "--data", "synthetic:32:4:512:256", "--layers", "32,16,4", "--batch", "16"]  # 32 steps an epoch
CNN = ["cnn", "--data", "synthetic:1x12x12:4:64:32", "--batch", "16"]  # 4 steps an epoch


def environment(**changes):
    """This process's environment without the engine's own variables, plus `changes`."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TUTTI_")}
    return {**clean, **changes}


def tutti(*args, env=None, binary=BINARY, cwd=None, **more):
    """Runs the command to its end; stdout and stderr are text."""
    return subprocess.run([str(binary), *map(str, args)], capture_output=True, text=True, timeout=240, cwd=cwd,
                          env=env or environment(), stdin=subprocess.DEVNULL, **more)


def usable_devices(slow="TUTTI_TEST_ALL" in os.environ):
    """Ids of the devices that can be used here; software devices, which are slow to compile for, only if `slow` (the
    reference, which compiles nothing, always). An AssertionError where a plugin that TUTTI_REQUIRE names has none."""
    found = json.loads(tutti("devices", "--json").stdout)["devices"]
    for plugin in REQUIRED:
        assert any(d["usable"] and d["id"].startswith(f"{plugin}:") for d in found), \
            f"TUTTI_REQUIRE names {plugin}, which has no usable device here"
    return [d["id"] for d in found
            if d["usable"] and (slow or d["kind"] != "software" or d["id"].startswith("reference:"))]


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tutti-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def skip_without(self, plugin, why):
        """Skips the test for want of what `plugin` needs; fails it where TUTTI_REQUIRE names the plugin."""
        if plugin in REQUIRED:
            self.fail(f"TUTTI_REQUIRE names {plugin}: {why}")
        self.skipTest(why)

    def done(self, *args, **more):
        """Runs the command, which must succeed."""
        result = tutti(*args, **more)
        self.assertEqual(result.returncode, 0, f"{args}\n{result.stdout}\n{result.stderr}")
        return result

    def json(self, *args, **more):
        """Runs the command with --json, which must succeed with nothing but one document on stdout."""
        return json.loads(self.done(*args, "--json", **more).stdout)

    def train(self, *args, **more):
        return self.json("train", *args, "--quiet", **more)

    def fails(self, code, parts, *args, **more):
        """Runs the command, which must exit with `code`, say each of `parts` on stderr and nothing on stdout."""
        result = tutti(*args, **more)
        self.assertEqual(result.returncode, code, f"{args}\n{result.stdout}\n{result.stderr}")
        self.assertEqual(result.stdout, "", args)
        for part in parts:
            self.assertIn(str(part), result.stderr, args)
        errors = [line for line in result.stderr.splitlines() if line.startswith("tutti: ")]
        self.assertEqual(len(errors), 1, result.stderr)
        for noise in ("terminate called", "unexpected:", "core dumped", "Sanitizer", "runtime error"):
            self.assertNotIn(noise, result.stderr)
        return result
