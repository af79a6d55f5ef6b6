"""Trains an MLP on arrays with an installed wheel, with the argument `torch` a PyTorch module: each must learn its data."""
import sys

import numpy as np
import tutti


def on_arrays(x, y):
    """The accuracy of a trainer of the package."""
    mlp = tutti.nn.Sequential(tutti.nn.Linear(256), tutti.nn.ReLU(), tutti.nn.Linear(10))
    trainer = tutti.Trainer(tutti.classification(mlp), batch=64)
    trainer.fit({"input": x, "label": y}, epochs=15, progress=False)
    return trainer.evaluate({"input": x, "label": y}).metrics["accuracy"]


def with_pytorch(x, y):
    """The accuracy of a module in PyTorch's own loop."""
    import torch

    module = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    images, labels = torch.from_numpy(x), torch.from_numpy(y)
    step = tutti.from_torch(module, images[:64], loss=torch.nn.CrossEntropyLoss(), optimizer=torch.optim.Adam(module.parameters()))
    for _ in range(15):
        for at in range(0, len(x), 64):
            step(images[at : at + 64], labels[at : at + 64])
    found = [step.predict(images[at : at + 64]).argmax(1).numpy() for at in range(0, len(x), 64)]
    return (np.concatenate(found) == y).mean()


rng = np.random.default_rng(0)
inputs = rng.normal(size=(2048, 64)).astype(np.float32)
weights = rng.normal(size=(64, 10))
# Not `@`: the OpenBLAS that comes with NumPy 2.5.5 returns wrong products under qemu-user 7.2 (docs/PLATFORMS.md, Python wheels).
classes = (inputs[:, :, None] * weights).sum(axis=1).argmax(1)
reached = (with_pytorch if sys.argv[1:] == ["torch"] else on_arrays)(inputs, classes)
print(f"accuracy {reached:.3f}")
assert reached > 0.9
