"""A default run of conformance must find the faults that authors plant into the template, and nothing wrong without them."""
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli"))
import harness
from harness import tutti

PLANTED = os.environ["PLANTED"]
CHECKS = "device.*,run.*,memory.*,product.denormals"

# fault: (the check that must fail, what its finding says)
EXPECTED = {
    "last_group": ("device.groups", "1025 x 1 x 1 groups: work-item 0 of group (1024, 0, 0) ran 0 times; check how launch"),
    "flat": ("device.groups", "7 x 5 x 3 groups: work-item 0 of group (0, 0, 1) ran 0 times"),
    "misaligned": ("device.alignment", "starts 8 bytes after a multiple of 64; check allocate"),
    "fake_huge": ("device.memory", "an allocation of 256.0 MiB does not keep the data written"),
    "wrong_code": ("device.memory", "does not report Code::no_memory: malloc failed; check allocate: it must return 0"),
    "identity": ("device.identity", 'the identity "my device" does not name'),
    "flush": ("product.denormals", "a denormal number of f32, became 0 as a product"),
}


def findings(fault):
    result = tutti("conformance", PLANTED, "--only", CHECKS, "--json", "-", env=harness.environment(TUTTI_PLANTED=fault))
    document = json.loads(result.stdout)
    return {c["id"]: c["why"] for c in document["checks"] if c["outcome"] in ("fail", "unsupported")}, result.returncode


class Planted(unittest.TestCase):
    def test_each_is_found(self):
        for fault, (check, text) in EXPECTED.items():
            with self.subTest(fault=fault):
                found, code = findings(fault)
                self.assertIn(check, found)
                self.assertIn(text, found[check])
                self.assertEqual(code, 0 if check == "product.denormals" else 1)

    def test_long_programs_show_a_group_that_is_skipped(self):
        self.assertIn("element", findings("last_group")[0]["run.many"])

    def test_nothing_else_is(self):
        self.assertEqual(findings(""), ({}, 0))


if __name__ == "__main__":
    unittest.main()
