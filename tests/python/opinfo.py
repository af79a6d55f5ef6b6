#!/usr/bin/env python3
"""Replays PyTorch's own samples (OpInfo) through tutti.from_torch's importer: values and gradients against PyTorch.

For every core ATen operator that has an OpInfo entry: its first samples in float32, exported, lowered and run on a device; floats
to 1e-4 of the largest element, integers and bools exactly. Gradients by one random cotangent. Prints a line per operator and
exits 1 where one that the importer claims does not agree. --table writes docs/ATEN.md.
"""
import argparse
import collections
import itertools
import os
import pathlib
import sys
import types
import warnings

try:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError as e:
    print(f"PyTorch and expecttest are needed: scripts/python-env.sh --torch ({e})")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE", "").split(",") else 77)

import numpy as np
from torch.utils import _pytree as pytree

import tutti
from tutti import _core, ops
from tutti.errors import UnsupportedError
from tutti.graphs import dtype_name
from tutti.torch.importer import Lowering, refuse
from tutti.torch.registry import HANDLERS, is_float
from tutti.torch.step import _export
from tutti.trainer import as_array

ROOT = pathlib.Path(__file__).resolve().parents[2]


def core_names():
    """Core ATen operators by name: those that a decomposition table keeps."""
    names = set()
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        if isinstance(packet, torch._ops.OpOverloadPacket):
            for overload in packet.overloads():
                if torch.Tag.core in getattr(packet, overload).tags:
                    names.add(name)
    return sorted(n for n in names if not n.endswith("_backward"))


class Called(torch.nn.Module):
    """One sample's call, its tensors as inputs."""

    def __init__(self, op, sample):
        super().__init__()
        self.op = op
        flat, self.spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self.places = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]
        self.flat = [None if isinstance(x, torch.Tensor) else x for x in flat]
        self.tensors = [flat[i].detach().clone() for i in self.places]

    def forward(self, *tensors):
        flat = list(self.flat)
        for i, t in zip(self.places, tensors):
            flat[i] = t
        args, kwargs = pytree.tree_unflatten(flat, self.spec)
        return self.op(*args, **kwargs)


def narrow(x):
    return x.to(torch.int32) if x.dtype in (torch.int64, torch.int16, torch.int8) else x


def close(ours, theirs):
    theirs = theirs.detach()
    if theirs.dtype.is_floating_point:
        a, b = np.asarray(ours, np.float64), theirs.double().numpy()
        if a.shape != b.shape:
            return f"shape {a.shape}, expected {b.shape}"
        same = (np.isnan(a) & np.isnan(b)) | (a == b)
        finite = np.abs(b[np.isfinite(b)])
        scale = max(1.0, finite.max(initial=0.0))
        with np.errstate(invalid="ignore"):
            wrong = ~(same | (np.abs(a - b) <= 1e-4 * scale))
        return f"off by {np.abs(a - b)[wrong].max():.2g}" if wrong.any() else ""
    return "" if np.array_equal(np.asarray(ours, np.float64), theirs.double().numpy()) else "other values"


def judge(info, sample, device):
    """"" where value and gradients agree."""
    module = Called(info.op, sample)
    tensors = module.tensors
    if not tensors or any(t.numel() == 0 or t.is_complex() for t in tensors):
        return None
    grad = info.supports_autograd and info.name != "_native_batch_norm_legit"  # whose statistics take none
    leaves = [t.requires_grad_() if grad and t.dtype.is_floating_point else t for t in (t.clone() for t in tensors)]
    try:
        wanted = [y for y in pytree.tree_leaves(module(*leaves)) if isinstance(y, torch.Tensor) and y.numel() > 0]
    except RuntimeError:  # PyTorch's own: the sample takes more than the tensors say, such as storage
        return None
    if not wanted or any(y.is_complex() for y in wanted):
        return None
    program = _export(module, tuple(tensors))
    refuse([program])
    graph = tutti.Graph()
    feeds = {f"x{i}": as_array(narrow(t)) for i, t in enumerate(tensors)}
    values = {k: graph.feed(k, dtype_name(v), list(v.shape)) for k, v in feeds.items()}
    users = iter(values.values())
    placed = {}
    for spec in program.graph_signature.input_specs:
        name = getattr(spec.arg, "name", None)
        if spec.kind.name == "USER_INPUT":
            placed[name] = next(users)
        else:
            placed[name] = graph.constant(as_array(narrow(program.constants[spec.target].detach())))
    results, _ = Lowering(types.SimpleNamespace(graph=graph, seed=None, step=None)).run(program, placed)
    results = [r for r in results if isinstance(r, _core.Value) and 0 not in r.shape]
    if len(results) != len(wanted):
        return f"{len(results)} results, expected {len(wanted)}"
    rng = np.random.default_rng(0)
    pairs, total = [], None
    for i, (r, y) in enumerate(zip(results, wanted)):
        graph.set_state(f"y{i}", r)
        if is_float(r) and y.requires_grad:
            d = rng.uniform(-1, 1, tuple(y.shape)).astype(np.float32)
            term = ops.sum(r * graph.constant(d))
            total = term if total is None else total + term
            pairs.append((y, torch.from_numpy(d)))
    wrt = [k for k, t in zip(values, leaves) if t.requires_grad]
    if total is not None:
        for k, g in zip(wrt, tutti.gradients(total, [values[k] for k in wrt], zeros=True)):
            graph.set_state("d" + k, g)
    run = tutti.Program(graph, device)
    run.run(**feeds)
    for i, y in enumerate(wanted):
        if why := close(run[f"y{i}"], y):
            return f"result {i} {why}"
    if total is not None:
        torch.autograd.backward([y for y, _ in pairs], [d.to(y.dtype) for y, d in pairs])
        for k, t in zip(values, leaves):
            if t.requires_grad:
                g = t.grad.to_dense() if t.grad is not None else torch.zeros_like(t)  # of embeddings it may be sparse
                if why := close(run["d" + k], g):
                    return f"gradient to {k} {why}"
    return ""


def entries(core):
    """OpInfos by the core ATen name they are about."""
    found = collections.defaultdict(list)
    for info in op_db:
        for name in {info.aten_name, info.name.split(".")[-1], *(a.name for a in info.aliases)}:
            if name in core:
                found[name].append(info)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", help="only these names")
    parser.add_argument("--device", default="reference")
    parser.add_argument("--samples", type=int, default=6, help="per operator")
    parser.add_argument("--table", action="store_true", help="write docs/ATEN.md")
    o = parser.parse_args()
    warnings.simplefilter("ignore")
    core = core_names()
    infos, failed, rows = entries(set(core)), 0, []
    handled = {name.split(".")[0] for name in HANDLERS}
    for name in o.ops or core:
        counts, complaints, missing, declined = collections.Counter(), [], set(), set()
        for info in infos.get(name, []):
            torch.manual_seed(0)
            try:
                dtype = next(t for t in (torch.float32, torch.int64, torch.bool) if t in info.dtypes)
                samples = info.sample_inputs("cpu", dtype, requires_grad=False)
                samples, rest = list(itertools.islice(samples, o.samples)), samples
                getattr(rest, "close", lambda: None)()
            except Exception:  # noqa: BLE001  (some entries make none of that dtype)
                continue
            for sample in samples:
                try:
                    why = judge(info, sample, o.device)
                except UnsupportedError as e:
                    missing |= {m[0] for m in e.operations}
                    continue
                except tutti.InvalidError as e:
                    declined.add(e.message)
                    continue
                except Exception as e:  # noqa: BLE001
                    why = f"{type(e).__name__}: {str(e).splitlines()[0][:160]}"
                if why is None:
                    continue
                counts["pass" if not why else "fail"] += 1
                if why:
                    complaints.append(why)
        state = ("fails" if complaints else "agrees" if counts["pass"] else "lacks " + ", ".join(sorted(missing)) if missing
                 else "declines" if declined else "handler, no sample" if name in handled else "no sample")
        failed += bool(complaints)
        print(f"{state[:40]:40} {name:36} {counts['pass']:3} of {sum(counts.values()):3}  "
              f"{(complaints or sorted(declined) or [''])[0]}", flush=True)
        rows.append((name, state + "".join("; not: " + d for d in sorted(declined)), counts["pass"], counts["fail"]))
    print(collections.Counter(state.split(" ")[0] for _, state, _, _ in rows))
    if o.table:
        lines = ["# PyTorch's core operators", "",
                 "What `tutti.from_torch` makes of each core ATen operator, by PyTorch's own samples (OpInfo): value and gradients on",
                 f"`{o.device}` against PyTorch {torch.__version__.split('+')[0]}. Made by `tests/python/opinfo.py --table`. Others decompose into these.", "",
                 "| operator | | samples that agree |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {state} | {passed} of {passed + bad} |" for name, state, passed, bad in rows]
        (ROOT / "docs/ATEN.md").write_text("\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
