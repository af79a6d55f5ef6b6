"""Whole training loops as people have them, on a device of Tutti's: fine-tuning a transformer as with Accelerate, a module as with
Lightning. The loops themselves, in PyTorch and in float64, are the judges."""
import copy
import os
import sys
import tempfile
import unittest

try:
    import torch
    import transformers
    from accelerate import Accelerator
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import tutti  # noqa: E402

PAD = tutti.buckets([6, 10])
TEXTS = ("a fine film", "what a waste of time", "good fun for all of us", "bad", "a good story told well by a fine cast", "no no no",
         "time well spent", "bad fun and a waste", "fine", "told badly", "a story of no good", "all well", "a cast of fun", "spent and bad",
         "us", "what a story", "well told", "no fun at all", "a fine time for us all", "bad cast")
LABELS = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0]
WORDS = {w: i for i, w in enumerate(sorted({w for t in TEXTS for w in t.split()}), 1)}


def collate(rows):
    """Token ids, padded to one of two lengths, the mask of what is none, and the labels."""
    ids = nn.utils.rnn.pad_sequence([torch.tensor([WORDS[w] for w in text.split()]) for text, _ in rows], batch_first=True)
    ids = PAD(ids)
    return ids, (ids != 0).long(), torch.tensor([label for _, label in rows])


def loader():
    return DataLoader(list(zip(TEXTS, LABELS)), batch_size=4, collate_fn=collate)


class Classifier(nn.Module):
    """The loss of a model of transformers, of what the loader gives."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.model = transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=len(WORDS) + 1, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))

    def forward(self, ids, mask, labels):
        return self.model(input_ids=ids, attention_mask=mask, labels=labels)


def tools(module):
    """Weight decay for matrices alone, and a warmup, as most fine-tuning has them."""
    decay = [p for p in module.parameters() if p.ndim > 1]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1},
                                   {"params": [p for p in module.parameters() if p.ndim <= 1], "weight_decay": 0.0}], lr=2e-2)
    return optimizer, transformers.get_linear_schedule_with_warmup(optimizer, 1, 4)


class FineTuning(unittest.TestCase):
    def with_accelerate(self, module):
        """The losses of every batch, and that of an evaluation."""
        accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
        optimizer, scheduler = tools(module)
        module, optimizer, batches, scheduler = accelerator.prepare(module, optimizer, loader(), scheduler)
        losses = []
        module.train()
        for batch in batches:
            with accelerator.accumulate(module):
                loss = module(*batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(module.parameters(), 0.5)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            losses.append(loss.item())
        module.eval()
        with torch.no_grad():
            return losses, sum(module(*batch).loss.item() for batch in batches) / len(batches)

    def steps(self, step, scheduler, begin, end):
        """Trains on the batches from one to another, all of which make an epoch."""
        losses, count = [], len(loader())
        for i, batch in enumerate(loader(), 1):
            if begin <= i <= end:
                losses.append(step(*batch, clip_norm=0.5, update=True if i == count else None))
                if i == count or i % 2 == 0:
                    scheduler.step()
        return losses

    def test_as_with_accelerate(self):
        module = Classifier()
        wanted, judged = self.with_accelerate(copy.deepcopy(module).double())
        example = next(iter(loader()))

        def built(module):
            optimizer, scheduler = tools(module)
            return tutti.from_torch(module, example, optimizer=optimizer, device="onednn", accumulate=2), optimizer, scheduler

        with tempfile.TemporaryDirectory() as folder:
            step, _, scheduler = built(module)
            losses = self.steps(step, scheduler, 1, 3)
            step.save(folder + "/checkpoint.safetensors")  # between two steps that make one update
            schedule = scheduler.state_dict()
            step.close()
            module = Classifier()
            step, optimizer, scheduler = built(module)
            step.load(folder + "/checkpoint.safetensors")
            scheduler.load_state_dict(schedule)
            for group, rate in zip(optimizer.param_groups, schedule["_last_lr"]):
                group["lr"] = rate
            losses += self.steps(step, scheduler, 4, 5)
            score = sum(step.evaluate(*batch) for batch in loader()) / len(loader())
            torch.testing.assert_close(torch.tensor(losses), torch.tensor(wanted), rtol=1e-3, atol=1e-4)
            self.assertAlmostEqual(score, judged, delta=1e-3)
            module.load_state_dict(step.state_dict())
            module.model.save_pretrained(folder)
            again = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
        ids, mask, labels = example
        with torch.no_grad():
            logits = again(input_ids=ids, attention_mask=mask).logits
        compiled = tutti.compile(Logits(again), (ids, mask), device="onednn")
        torch.testing.assert_close(compiled(ids, mask), logits, rtol=1e-3, atol=1e-4)


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask).logits


class Digits(nn.Module):
    """As a LightningModule is written."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                                 nn.Linear(16, 3))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_index):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y, label_smoothing=0.1)

    def validation_step(self, batch, batch_index):
        x, y = batch
        logits = self(x)
        return {"loss": nn.functional.cross_entropy(logits, y), "hits": (logits.argmax(1) == y).sum()}

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.2, momentum=0.9, nesterov=True)
        return optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)


class Stepping(nn.Module):
    """A LightningModule's training_step, or in eval() its validation_step, as a forward."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *batch):
        return self.module.training_step(batch, 0) if self.training else self.module.validation_step(batch, 0)


class LikeLightning(unittest.TestCase):
    def batches(self, dtype):
        generator = torch.Generator().manual_seed(2)
        x, y = torch.randn(26, 1, 6, 6, generator=generator), torch.randint(0, 3, (26,), generator=generator)
        x += y[:, None, None, None] * 0.7
        return DataLoader(torch.utils.data.TensorDataset(x.to(dtype), y), batch_size=8)

    def test_as_with_lightning(self):
        module = Digits()
        twin = copy.deepcopy(module).double()
        optimizer, scheduler = twin.configure_optimizers()
        ours, plateau = module.configure_optimizers()
        step = tutti.from_torch(Stepping(module), tuple(next(iter(self.batches(torch.float32)))), optimizer=ours, device="onednn")
        for _ in range(4):
            wanted, got = [], []
            twin.train()
            for i, batch in enumerate(self.batches(torch.float64)):
                optimizer.zero_grad()
                loss = twin.training_step(batch, i)
                loss.backward()
                optimizer.step()
                wanted.append(loss.item())
            got = [step(*batch) for batch in self.batches(torch.float32)]
            torch.testing.assert_close(torch.tensor(got), torch.tensor(wanted), rtol=1e-4, atol=1e-5)
            twin.eval()
            with torch.no_grad():
                theirs = [twin.validation_step(batch, i) for i, batch in enumerate(self.batches(torch.float64))]
            mine = [step.predict(*batch) for batch in self.batches(torch.float32)]
            for a, b in zip(mine, theirs):
                self.assertAlmostEqual(a["loss"].item(), b["loss"].item(), delta=1e-4)
                self.assertEqual(a["hits"], b["hits"])
            scheduler.step(sum(b["loss"].item() for b in theirs))
            plateau.step(sum(a["loss"].item() for a in mine))
            self.assertEqual(ours.param_groups[0]["lr"], optimizer.param_groups[0]["lr"])
        best = step.state_dict()
        module.load_state_dict({k.removeprefix("module."): v for k, v in best.items()})
        for a, b in zip(module.state_dict().values(), twin.state_dict().values()):
            torch.testing.assert_close(a.double(), b.double(), rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
