"""TUTTI_REQUIRE: what it names is here, and what is missing fails in place of being skipped."""
import os
import subprocess
import sys
import unittest

import harness

SKIPS = """
import unittest, harness
class Lacking(harness.Case):
    def test(self):
        self.skip_without("opencl", "no device")
unittest.main()
"""


def run(text, require):
    return subprocess.run([sys.executable, "-c", text], cwd=os.path.dirname(os.path.abspath(__file__)), text=True,
                          capture_output=True, env={**os.environ, "TUTTI_REQUIRE": require}, timeout=240)


class Require(unittest.TestCase):
    def test_the_required_plugins_have_devices(self):
        found = harness.usable_devices(slow=True)
        for plugin in harness.REQUIRED:
            self.assertTrue(any(d.startswith(f"{plugin}:") for d in found), f"{plugin}: {found}")

    def test_a_missing_device_fails(self):
        result = run("import harness; harness.usable_devices()", "reference,nowhere")
        self.assertEqual(result.returncode, 1)
        self.assertIn("TUTTI_REQUIRE names nowhere", result.stderr)

    def test_a_skip_fails(self):
        result = run(SKIPS, "opencl")
        self.assertEqual(result.returncode, 1)
        self.assertIn("TUTTI_REQUIRE names opencl: no device", result.stderr)
        result = run(SKIPS, "")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("skipped=1", result.stderr)


if __name__ == "__main__":
    unittest.main()
