"""The software devices of Vulkan and OpenCL within the limits of cards: the kernels that GPUs get, and what files say."""
import json
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402
from harness import environment  # noqa: E402

# Ops whose kernels differ between cards: many buffers, groups of 256, shared memory, parts of words.
OPS = {"vulkan": "lstm_recurrence,lstm_recurrence_grad,gru_recurrence_grad,matmul", "opencl": "argmax,layer_norm,adam"}


def within(api, card):
    return environment(**{f"TUTTI_{api.upper()}_LIMITS": str(card), "TUTTI_CACHE": os.environ["LIMITS_CACHE"],
                          "TUTTI_PLUGINS": f"{api},reference"})


class Limits(harness.Case):
    def device(self, api, env):
        found = [d for d in self.json("devices", env=env)["devices"] if d["id"] == f"{api}:0"]
        if not found or (not found[0]["usable"] and "LIMITS" not in found[0]["unusable"]):
            self.skip_without(api, f"no usable {api} device")
        return found[0]

    def check(self, api, name):
        card = HERE / f"{name}.json"
        env = within(api, card)
        device = self.device(api, env)
        self.assertIn(f"with the limits of '{json.loads(card.read_text())['card']}' ({name}.json)", device["driver"])
        result = self.json("parity", "--quick", "--ops", OPS[api], "--jobs", "0", "--device", f"{api}:0", env=env)
        self.assertEqual((result["failures"], result["unsupported"]), ([], []))
        self.assertGreater(result["devices"][0]["pass"], 9)
        return result

    def test_vulkan_on_a_raspberry_pi(self):
        self.check("vulkan", "v3d-pi5")

    def test_vulkan_on_an_adreno(self):
        self.check("vulkan", "adreno-740")

    def test_opencl_on_an_m2(self):
        self.check("opencl", "apple-m2")

    def test_opencl_on_an_rx_580(self):
        self.check("opencl", "rx-580")

    def test_a_damaged_file_is_named(self):
        damaged = self.folder / "card.json"
        for api, key in [("vulkan", "maxComputeWorkGroupInvocations"), ("opencl", "CL_DEVICE_MAX_WORK_GROUP_SIZE")]:
            for value, why in [('"many"', "a whole number is needed"), ("0", "must be at least 1")]:
                with self.subTest(api, value=value):
                    damaged.write_text(f'{{"card": "x", "{api}": {{"{key}": {value}}}}}')
                    env = within(api, damaged)
                    self.device(api, env)
                    self.fails(2, [f"TUTTI_{api.upper()}_LIMITS={damaged}", f"{api}.{key} = {value}: {why}"],
                               "train", "mlp", "--size", "tiny", "--steps", "1", "--device", f"{api}:0", env=env)

    def test_every_file_is_taken(self):
        for card in sorted(HERE.glob("*.json")):
            document = json.loads(card.read_text())
            self.assertLessEqual({"card", "date", "source", "vulkan"}, set(document))
            for api in {"vulkan", "opencl"} & set(document):
                with self.subTest(card.stem, api=api):
                    self.assertTrue(self.device(api, within(api, card))["usable"])


if __name__ == "__main__":
    unittest.main()
