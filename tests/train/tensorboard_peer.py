#!/usr/bin/env python3
"""TensorBoard's own reader, and Python's csv, read what `tutti train --log-dir` writes: the same losses as its JSON document has.

  tensorboard_peer.py TUTTI

Exit code 77 where TensorBoard is not installed.
"""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("tensorboard is not installed (scripts/python-env.sh --torch)")
    sys.exit(77)


def main():
    with tempfile.TemporaryDirectory() as folder:
        log, saved = pathlib.Path(folder) / "log", pathlib.Path(folder) / "run.safetensors"
        train = [sys.argv[1], "train", "--device", "cpu", "--json", "--quiet", "--log-dir", str(log), "--checkpoint", str(saved)]
        model = ["mlp", "--layers", "8,16,4", "--data", "synthetic:8:4:160:40", "--batch", "16", "--schedule", "linear"]
        first = json.loads(subprocess.run([*train, *model, "--epochs", "2"], check=True, stdout=subprocess.PIPE).stdout)
        second = json.loads(subprocess.run([*train, "--resume", str(saved), "--epochs", "3"], check=True, stdout=subprocess.PIPE).stdout)
        losses = first["losses"] + second["losses"]
        assert len(losses) == 30, len(losses)

        events = EventAccumulator(str(log), size_guidance={"scalars": 0}).Reload()
        tags = events.Tags()["scalars"]
        assert {"train/loss", "train/learning_rate", "train/samples_per_s", "train/memory_bytes", "test/loss", "test/accuracy"} <= set(tags), tags
        seen = events.Scalars("train/loss")
        assert [e.step for e in seen] == list(range(1, 31)), [e.step for e in seen]
        assert all(abs(e.value - x) <= 1e-6 * abs(x) for e, x in zip(seen, losses))
        assert [e.step for e in events.Scalars("test/loss")] == [10, 20, 30]
        assert abs(events.Scalars("test/loss")[-1].value - second["test_loss"]) < 1e-6

        with open(log / "steps.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [int(r["step"]) for r in rows] == list(range(1, 31))
        assert all(abs(float(r["loss"]) - x) <= 1e-6 * abs(x) for r, x in zip(rows, losses))
        with open(log / "epochs.csv", encoding="utf-8") as file:
            assert [int(r["step"]) for r in csv.DictReader(file)] == [10, 20, 30]
    print(f"{len(tags)} curves, {len(seen)} steps")


if __name__ == "__main__":
    main()
