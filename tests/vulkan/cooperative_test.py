"""Products on cooperative matrices by a newer lavapipe in a minimal system (scripts/lavapipe.sh), whose kernels are chosen as for a
GPU, under Vulkan's validation layer: parity, conformance and training. TUTTI_BUILD: the build's folder."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT, BUILD = ROOT / "scripts" / "lavapipe.sh", os.environ["TUTTI_BUILD"]
TRAINING = ["train", "mlp", "--size", "tiny", "--precision", "f16", "--steps", "40", "--json", "--quiet"]

# Writes the limits, its first argument, to a file and runs the others as a command.
WITH_LIMITS = 'echo "$1" > /tmp/limits.json; shift; exec "$@"'


def inside(*command, features=None):
    """Runs a command with the device within limits, which are those of a GPU and `features`."""
    limits = {"card": "any GPU", "vulkan": {"deviceType": "discrete", **(features or {})}}
    variables = ["TUTTI_PLUGINS=vulkan,reference", "TUTTI_VULKAN_VALIDATION=sync", "TUTTI_VULKAN_LIMITS=/tmp/limits.json"]
    return subprocess.run([SCRIPT, "--build", BUILD, "env", *variables, "sh", "-c", WITH_LIMITS, "sh", json.dumps(limits), *command],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)


class Cooperative(unittest.TestCase):
    def done(self, *command, **more):
        result = inside(*command, **more)
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def trained(self, device, **more):
        """The losses of a run, and the kernels of its products."""
        run = json.loads(self.done("tutti", *TRAINING, "--device", device, "--profile", "/tmp/profile.json", **more))
        profile = json.loads(self.done("sh", "-c", "cat /tmp/profile.json"))
        kernels = {e.get("args", {}).get("kernel", "") for e in profile["traceEvents"]}
        return run["losses"], [k for k in kernels if "matmul" in k]

    def test_products_agree_with_the_reference(self):
        result = json.loads(self.done("tutti", "parity", "--ops", "matmul", "--device", "vulkan:0", "--jobs", "0", "--json"))
        self.assertEqual((result["failures"], result["unsupported"]), ([], []))
        self.assertGreater(result["devices"][0]["pass"], 100)

    def test_the_plugin_passes_the_checks_of_products(self):
        self.done("tutti", "conformance", "/host/lib/tutti/plugins/libtutti_vulkan.so", "--only", "product.*,op.matmul*")

    def test_training_uses_them_and_agrees_with_the_reference(self):
        losses, products = self.trained("vulkan:0")
        self.assertGreater(len(products), 3)
        for kernel in products:
            self.assertIn("(matmul_coop)", kernel)
        expected, _ = self.trained("reference:0")
        self.assertEqual(len(losses), len(expected))
        for step, (loss, right) in enumerate(zip(losses, expected)):
            self.assertAlmostEqual(loss, right, delta=2e-3, msg=f"step {step}")

    def test_a_feature_that_is_off_is_not_used(self):
        _, products = self.trained("vulkan:0", features={"cooperativeMatrix": False})
        self.assertGreater(len(products), 3)
        for kernel in products:
            self.assertNotIn("coop", kernel)


if __name__ == "__main__":
    made = inside("tutti", "devices")
    if made.returncode == 77:
        print(made.stderr, file=sys.stderr)
        sys.exit(77)
    unittest.main(verbosity=2)
