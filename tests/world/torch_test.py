"""`tutti.from_torch` in a world beside PyTorch's DistributedDataParallel over Gloo: the same losses and weights."""
import importlib.util
import json
import os
import sys
import unittest

import ranks

if importlib.util.find_spec("torch") is None:
    print("PyTorch is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

SCRIPT = """
import json, os, torch, tutti
from torch import nn
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
torch.set_num_threads(1)
world = tutti.world()
dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meet", rank=world.rank, world_size=world.size)
generator = torch.Generator().manual_seed(5)
x = torch.randn(96, 3, 8, 8, generator=generator)
y = torch.randint(0, 4, (96,), generator=generator)
loader = DataLoader(TensorDataset(x, y), batch_size=8, sampler=DistributedSampler(y, world.size, world.rank, seed=2))
def module():
    torch.manual_seed(world.rank)  # other weights on each rank: rank 0's count
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 64, 4))
ours, theirs = module(), nn.parallel.DistributedDataParallel(module())
optimizer = lambda m: torch.optim.AdamW(m.parameters(), lr=1e-3)
step = tutti.from_torch(ours, x[:8], loss=nn.CrossEntropyLoss(), optimizer=optimizer(ours), device="onednn", device_options={"threads": "1"})
update, judge = optimizer(theirs), nn.CrossEntropyLoss()
pairs = []
for epoch in range(2):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        update.zero_grad()
        loss = judge(theirs(images), labels)
        loss.backward()
        update.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        pairs.append((step(images, labels), float(mean) / world.size))
trained, judged = step.state_dict(), theirs.module.state_dict()
away = {k: float((trained[k].double() - judged[k].double()).abs().max()) for k in judged if not (k.startswith("1.") and "running" in k)}
statistics = [float((trained[k] - judged[k]).abs().max()) for k in ("1.running_mean", "1.running_var")] if world.rank == 0 else []
told = {"pairs": pairs, "away": away, "statistics": statistics, "mine": step.evaluate(x[:8], y[:8])}
with open(f"rank-{world.rank}.json", "w") as file:  # mpiexec may mix the lines of ranks
    json.dump(told, file)
dist.barrier()
"""


class Torch(ranks.Case):
    def test_beside_distributed_data_parallel(self):
        code, _, err = self.finished(self.start((2, "-c", SCRIPT), command=[sys.executable]))
        self.assertEqual(code, 0, err)
        told = [json.loads((self.folder / f"rank-{rank}.json").read_text()) for rank in range(2)]
        for r in told:
            self.assertEqual(len(r["pairs"]), 12)
            for ours, theirs in r["pairs"]:
                self.assertAlmostEqual(ours, theirs, delta=2e-5)
            for name, difference in r["away"].items():
                self.assertLess(difference, 2e-4, name)
        self.assertEqual(told[0]["pairs"], told[1]["pairs"])
        self.assertLess(max(told[0]["statistics"]), 2e-5)  # of rank 0's batches

    def test_assertions_are_refused(self):
        text = SCRIPT.replace("nn.ReLU()", "Positive()").replace("def module", """class Positive(nn.Module):
    def forward(self, x):
        torch._assert_async((x > -1e6).all(), "too small")
        return x.relu()
def module""")
        code, out, err = self.finished(self.start((2, "-c", text), command=[sys.executable]))
        self.assertNotEqual(code, 0, out)
        self.assertIn("several ranks cannot check together", err)

    def test_other_devices_are_refused(self):
        text = SCRIPT.replace('device="onednn", device_options={"threads": "1"}', 'device=["onednn", "reference"][world.rank]')
        code, out, err = self.finished(self.start((2, "-c", text), command=[sys.executable]))
        self.assertNotEqual(code, 0, out)
        self.assertIn("the ranks' devices differ", err)


if __name__ == "__main__":
    unittest.main()
