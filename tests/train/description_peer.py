#!/usr/bin/env python3
"""Described models beside the same modules of PyTorch: equal names, equal weights, equal losses over some steps.

    description_peer.py TUTTI [DEVICE]

Exit code 77 where PyTorch is not installed (scripts/python-env.sh --torch), 1 where something differs.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    from safetensors.torch import load_file, save_file
    from torch import nn
    from torch.nn import functional as F
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

STEPS = 12


class Residual(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


class Branches(nn.ModuleList):
    def __init__(self, branches, join):
        super().__init__(branches)
        self.join = join

    def forward(self, x):
        return self.join([branch(x) for branch in self])


class First(nn.Module):
    """The steps of a recurrent module without its state, named as the module itself."""

    def __init__(self, module):
        super().__init__()
        self.__dict__["inner"] = module
        for name, p in module.named_parameters():
            self.register_parameter(name, p)

    def forward(self, x):
        return self.inner(x)[0]


class Positions(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, width) * 0.02)

    def forward(self, x):
        return x + self.weight[: x.shape[1]]


class Attend(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


class Causal(nn.TransformerEncoderLayer):
    def forward(self, x):
        return super().forward(x, src_mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype), is_causal=True)


class Of(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


def mlp():
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 16, bias=False), nn.ELU(0.7), nn.PReLU(),
                          nn.RMSNorm(16), nn.LeakyReLU(0.2), nn.Softplus(), nn.Linear(16, 5))
    layers = ["Flatten", {"Linear": {"in_features": 48, "out_features": 32}}, "ReLU", {"LayerNorm": {"normalized_shape": 32}},
              {"Linear": {"out_features": 16, "bias": False}}, {"ELU": {"alpha": 0.7}}, "PReLU", "RMSNorm", {"LeakyReLU": {"negative_slope": 0.2}},
              "Softplus", "Linear"]
    return model, layers, "cross_entropy", {"input": torch.randn(40, 3, 4, 4), "label": torch.randint(0, 5, (40,), dtype=torch.int32)}


def cnn():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.SiLU(),
        Residual(nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=4), nn.GroupNorm(2, 8), nn.GELU()),
        nn.MaxPool2d(3, 2, 1), Branches([nn.Conv2d(8, 6, 1), nn.Sequential(nn.Conv2d(8, 4, 3, padding=1), nn.Hardswish()), nn.Identity()],
                                        lambda all: torch.cat(all, 1)),
        Branches([nn.Conv2d(18, 6, 1), nn.Sequential(nn.ReLU6(), nn.Conv2d(18, 6, 3, padding=1))], sum),
        nn.AvgPool2d(2), nn.ConvTranspose2d(6, 4, 3, 2, 1, output_padding=1), nn.Upsample(scale_factor=2), nn.Mish(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Unflatten(1, (2, 8)), nn.Conv1d(2, 4, 3, padding=1, bias=False), nn.BatchNorm1d(4), nn.MaxPool1d(2), nn.Flatten(1, 2), nn.Tanh(),
        nn.Linear(16, 1))
    layers = [{"Conv2d": {"in_channels": 3, "out_channels": 8, "kernel_size": 3, "padding": 1, "bias": False}}, "BatchNorm2d", "SiLU",
              {"residual": [{"Conv2d": {"out_channels": 8, "kernel_size": 3, "padding": 2, "dilation": 2, "groups": 4}},
                            {"GroupNorm": {"num_groups": 2}}, "GELU"]},
              {"MaxPool2d": {"kernel_size": 3, "stride": 2, "padding": 1}},
              {"concat": [{"Conv2d": {"out_channels": 6, "kernel_size": 1}},
                          [{"Conv2d": {"out_channels": 4, "kernel_size": 3, "padding": 1}}, "Hardswish"], []]},
              {"sum": [{"Conv2d": {"out_channels": 6, "kernel_size": 1}}, ["ReLU6", {"Conv2d": {"out_channels": 6, "kernel_size": 3, "padding": 1}}]]},
              {"AvgPool2d": {"kernel_size": 2}},
              {"ConvTranspose2d": {"out_channels": 4, "kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1}},
              {"Upsample": {"scale_factor": 2}}, "Mish", {"AdaptiveAvgPool2d": {"output_size": 2}}, "Flatten",
              {"Unflatten": {"dim": 1, "unflattened_size": [2, 8]}}, {"Conv1d": {"out_channels": 4, "kernel_size": 3, "padding": 1, "bias": False}},
              "BatchNorm1d", {"MaxPool1d": {"kernel_size": 2}}, {"Flatten": {"start_dim": 1, "end_dim": 2}}, "Tanh",
              {"Linear": {"out_features": 1}}]
    return model, layers, "mse", {"input": torch.randn(40, 3, 16, 16), "target": torch.randn(40)}


def text():
    model = nn.Sequential(nn.Embedding(11, 16), Positions(6, 16),
                          nn.Sequential(*[Causal(16, 2, 24, 0.0, batch_first=True, norm_first=True, activation="gelu") for _ in range(2)]),
                          First(nn.LSTM(16, 12, 2, batch_first=True)), nn.LayerNorm(12), nn.Linear(12, 11))
    layers = [{"Embedding": {"embedding_dim": 16}}, {"positions": {"num_embeddings": 6}},
              {"repeat": {"times": 2, "layers": {"TransformerEncoderLayer": {"nhead": 2, "dim_feedforward": 24, "dropout": 0.0, "norm_first": True,
                                                                             "activation": "gelu", "is_causal": True}}}},
              {"LSTM": {"hidden_size": 12, "num_layers": 2}}, "LayerNorm", "Linear"]
    tokens = torch.randint(0, 11, (40, 7), dtype=torch.int32)
    tokens[0] = 10
    return model, layers, "language_model", {"tokens": tokens[:, :6].contiguous(), "next": tokens[:, 1:].contiguous()}


def sequence():
    model = nn.Sequential(nn.Embedding(9, 8), nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), Residual(Attend(8, 4, batch_first=True)),
                          First(nn.GRU(8, 6, bidirectional=True, batch_first=True)), Of(lambda x: x.permute(0, 2, 1)),
                          Of(lambda x: x.permute(0, 2, 1)),
                          Branches([Of(lambda x: x[:, -1]), Of(lambda x: x.mean(1))], lambda all: torch.cat(all, -1)), nn.Hardsigmoid(), nn.Softmax(-1),
                          nn.Linear(24, 1))
    layers = [{"Embedding": {"num_embeddings": 9, "embedding_dim": 8}},
              {"TransformerEncoderLayer": {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "dropout": 0}},
              {"residual": {"layers": [{"MultiheadAttention": {"num_heads": 4}}]}}, {"GRU": {"hidden_size": 6, "bidirectional": True}},
              {"permute": {"dims": [0, 2, 1]}}, {"permute": {"dims": [0, 2, 1]}},
              {"concat": {"branches": [{"select": {"dim": 1, "index": -1}}, {"mean": {"dim": 1}}], "dim": -1}}, "Hardsigmoid", "Softmax",
              {"Linear": {"out_features": 1}}]
    tokens = torch.randint(0, 9, (40, 5), dtype=torch.int32)
    tokens[0] = 8
    return model, layers, "bce", {"input": tokens, "label": torch.randint(0, 2, (40,), dtype=torch.int32)}


def loss_of(kind, y, x):
    y = y.double()
    match kind:
        case "cross_entropy": return F.cross_entropy(y, x["label"].long())
        case "bce": return F.binary_cross_entropy_with_logits(y.squeeze(1), x["label"].double())
        case "mse": return F.mse_loss(y.squeeze(1), x["target"].double())
        case "language_model": return F.cross_entropy(y.flatten(0, 1), x["next"].long().flatten())


def train_theirs(model, kind, columns):
    """Full batches of the samples in the file's order, which are all of them: the order within a batch does not matter."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        x = {k: v.double() if v.is_floating_point() else v for k, v in columns.items()}
        optimizer.zero_grad()
        loss = loss_of(kind, model(next(iter(x.values()))), x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    tutti, device = sys.argv[1], (sys.argv[2:] or ["onednn"])[0]
    failed = 0

    def expect(good, what):
        nonlocal failed
        failed += not good
        print("ok  " if good else "FAIL", what)

    def run(*words):
        done = subprocess.run([tutti, *words, "--device", device, "--json"], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stderr}")
        return json.loads(done.stdout)

    for make in (mlp, cnn, text, sequence):
        torch.manual_seed(3)
        model, layers, kind, columns = make()
        with tempfile.TemporaryDirectory() as folder:
            net, data = f"{folder}/net.json", f"{folder}/data.safetensors"
            pathlib.Path(net).write_text(json.dumps({"layers": layers, "loss": kind, "batch": 40, "lr": 1e-2}))
            save_file({**columns, **{"test." + k: v.clone() for k, v in columns.items()}}, data)
            state = {k: v.contiguous() for k, v in model.state_dict().items()}
            save_file(state, f"{folder}/w.safetensors")
            np.savez(f"{folder}/w.npz", **{k: v.numpy() for k, v in state.items()})
            shared = ["--data", f"safetensors:{data}"]
            drawn = run("train", net, *shared, "--steps", "1", "--lr", "0", "--quiet", "--no-eval", "--merged", f"{folder}/drawn.safetensors")
            ours = load_file(f"{folder}/drawn.safetensors")
            names = {k for k in state if not k.endswith("num_batches_tracked")}
            expect(set(ours) == names, f"{make.__name__}: {len(names)} names")
            expect(drawn["parameters"] == sum(p.numel() for p in model.parameters()), f"{make.__name__}: {drawn['parameters']} parameters")
            # What is drawn has the spread of PyTorch's weights: by tensor, where there are enough numbers.
            for k in names:
                if state[k].numel() >= 256 and not torch.allclose(state[k], state[k].flatten()[0]):
                    share = ours[k].std() / state[k].std()
                    expect(0.8 < share < 1.25 and abs(ours[k].mean() - state[k].mean()) < 0.3 * state[k].std(), f"{make.__name__}: spread of {k}: {share:.2f}")
            model = model.double()
            for init in ("w.safetensors", "w.npz"):
                mine = run("train", net, *shared, "--init", f"{folder}/{init}", "--steps", str(STEPS), "--quiet", "--no-eval",
                           "--checkpoint", f"{folder}/run.safetensors")["losses"]
                if init == "w.safetensors":
                    theirs = train_theirs(model, kind, columns)
                worst = max(abs(a - b) for a, b in zip(mine, theirs, strict=True))
                expect(worst <= 1e-4, f"{make.__name__} from {init}: losses within {worst:.1e} of PyTorch's, {theirs[0]:.4f} to {theirs[-1]:.4f}")
                expect(theirs[-1] < theirs[0] - 0.002, f"{make.__name__}: PyTorch itself learns")
            # The same columns from NumPy, integers as NumPy has them.
            np.savez_compressed(f"{folder}/data.npz", **{k: v.numpy().astype("f8" if v.is_floating_point() else "i8")
                                                         for k, v in load_file(data).items()})
            again = run("train", net, "--data", f"npz:{folder}/data.npz", "--init", f"{folder}/w.npz", "--steps", str(STEPS), "--quiet",
                        "--no-eval")["losses"]
            expect(again == mine, f"{make.__name__}: data from NumPy give the same losses")
            os.remove(net)
            for end in ("npy", "npz"):
                run("predict", f"{folder}/run.safetensors", "--output", f"{folder}/y.{end}")
            y = np.load(f"{folder}/y.npz")
            expect(y.files == ["output"] and np.array_equal(y["output"], np.load(f"{folder}/y.npy")), f"{make.__name__}: NumPy reads what predict writes")
            run_data = subprocess.run([tutti, "data", f"safetensors:{data}", "--output", f"{folder}/columns.npz"], capture_output=True, text=True)
            written = np.load(f"{folder}/columns.npz") if run_data.returncode == 0 else {}
            expect(all(np.array_equal(written[k], v.numpy()) for k, v in load_file(data).items()), f"{make.__name__}: and what data writes")
            model.eval()
            x = {k: v.double() if v.is_floating_point() else v for k, v in columns.items()}
            want = loss_of(kind, model(next(iter(x.values()))), x).item()
            got = run("eval", f"{folder}/run.safetensors")["loss"]
            expect(abs(got - want) <= 1e-4, f"{make.__name__}: eval of the checkpoint, without net.json: {got:.5f}, PyTorch's {want:.5f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
