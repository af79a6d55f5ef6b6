"""A plugin built from the recorded header of ABI version 1, in C99 and without the SDK, still loads and trains."""
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import harness
from harness import tutti

LIBRARY = pathlib.Path(os.environ["RECORDED"])
ENVIRONMENT = harness.environment(TUTTI_PLUGIN_PATH=str(LIBRARY.parent))
MODEL = ["mlp", "--data", "synthetic:16:4:512:256", "--layers", "16,4", "--batch", "16", "--epochs", "3", "--optimizer", "sgd",
         "--lr", "0.1", "--seed", "3"]


class Recorded(harness.Case):
    def test_it_trains_like_the_reference(self):
        recorded = self.train(*MODEL, "--device", "recorded:0", env=ENVIRONMENT)
        reference = self.train(*MODEL, "--device", "reference:0", env=ENVIRONMENT)
        self.assertEqual(recorded["steps"], reference["steps"])
        self.assertAlmostEqual(recorded["loss"], reference["loss"], delta=1e-5)
        self.assertGreater(recorded["accuracy"], 0.9)
        self.assertEqual(recorded["planned_bytes"], recorded["peak_bytes"])

    def test_conformance_of_what_it_promises(self):
        result = tutti("conformance", LIBRARY, "--json", "-", "--only",
                       "negotiation.*,init.start,open.session,programs.required,programs.unknown_op,growth.*,run.*,"
                       "memory.reported,memory.release,threads.*,op.matmul,op.max,op.softmax,op.cross_entropy,op.random_bits,op.sgd,model.same_mlp")
        document = json.loads(result.stdout)
        self.assertEqual([c for c in document["checks"] if c["outcome"] != "pass"], [])
        self.assertEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main()
