"""A model that the process may not have the memory for is refused with what it needs (ulimit -v, as in limits_test.py)."""
import pathlib
import resource
import unittest

import numpy as np

import tutti


class Memory(unittest.TestCase):
    def test_a_limit_of_address_space(self):
        devices = [d.plugin for d in tutti.devices() if d.usable and d.plugin in ("onednn", "reference")]
        self.assertIn("reference", devices)
        pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
        before = resource.getrlimit(resource.RLIMIT_AS)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_AS, before)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (300 << 20), before[1]))
        model = tutti.nn.Sequential(tutti.nn.Linear(4000), tutti.nn.Linear(6000), tutti.nn.Linear(10))
        data = {"input": np.zeros((16, 784), np.float32), "label": np.arange(16, dtype=np.int32) % 10}
        for device in devices:
            with self.subTest(device), self.assertRaisesRegex(tutti.NoMemoryError, r"this program needs \d+ bytes"):
                tutti.Trainer(tutti.classification(model), device, tutti.optim.Adam(lr=1e-3), batch=8).fit(data, epochs=1)


if __name__ == "__main__":
    unittest.main()
