#!/usr/bin/env python3
"""Judges tutti.from_torch's importer, operator by operator: values and gradients against PyTorch.

For every core ATen operator: the first samples of its OpInfo entries in float32 and those of aten_samples.py, exported, lowered
and run on a device; floats to 1e-4 of the largest element, integers and bools exactly. Gradients by one random cotangent.
Prints a line per operator. Exits 1 where a sample disagrees, where a supported operator agrees in none, and where docs/ATEN.md says
otherwise of how it is supported. --table writes that file.
"""
import argparse
import collections
import os
import pathlib
import re
import sys
import types
import warnings

try:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError as e:
    print(f"PyTorch and expecttest are needed: scripts/python-env.sh --torch ({e})")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

import numpy as np
from torch.utils import _pytree as pytree

import aten_samples
import tutti
from tutti import _core, ops
from tutti.errors import UnsupportedError
from tutti.graphs import dtype_name
from tutti.torch.importer import Lowering, refuse
from tutti.torch.registry import HANDLERS, cast
from tutti.torch.trace import export
from tutti.data import as_array

TABLE = pathlib.Path(__file__).resolve().parents[2] / "docs/ATEN.md"


def core_names():
    """Core ATen operators by name, without those that compute gradients."""
    names = {n.split("::")[1].split(".")[0] for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")}
    packets = {n: getattr(torch.ops.aten, n, None) for n in names if not n.endswith("_backward")}
    return sorted(n for n, p in packets.items() if isinstance(p, torch._ops.OpOverloadPacket)
                  and any(torch.Tag.core in getattr(p, overload).tags for overload in p.overloads()))


class Called(torch.nn.Module):
    """One sample's call, its tensors as inputs."""

    def __init__(self, function, args, kwargs):
        super().__init__()
        self.function = function
        flat, self.spec = pytree.tree_flatten((args, kwargs))
        self.places = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]
        self.flat = [None if isinstance(x, torch.Tensor) else x for x in flat]
        self.tensors = [flat[i].detach().clone() for i in self.places]

    def forward(self, *tensors):
        flat = list(self.flat)
        for i, t in zip(self.places, tensors):
            flat[i] = t
        args, kwargs = pytree.tree_unflatten(flat, self.spec)
        return self.function(*args, **kwargs)


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


def theirs(module, differentiate):
    """PyTorch's results, the cotangents of those that have gradients, and the gradients; None where it has none itself."""
    finite = all(bool(torch.isfinite(t).all()) for t in module.tensors if t.is_floating_point())
    leaves = [t.clone() for t in module.tensors]
    for t in leaves:
        t.requires_grad_(differentiate and finite and t.is_floating_point())
    results = [y for y in pytree.tree_leaves(module(*leaves)) if isinstance(y, torch.Tensor) and y.numel() > 0]
    rng = np.random.default_rng(0)
    seeds = [rng.uniform(-1, 1, tuple(y.shape)).astype(np.float32) if y.requires_grad else None for y in results]
    gradients = {}
    if any(d is not None for d in seeds):
        pairs = [(y, torch.from_numpy(d).to(y.dtype)) for y, d in zip(results, seeds) if d is not None]
        try:
            torch.autograd.backward(*zip(*pairs))
        except RuntimeError as e:
            if "not implemented" not in str(e):
                raise
            return results, [None] * len(seeds), {}
        for i, t in enumerate(leaves):
            if t.requires_grad:
                gradients[i] = t.grad.to_dense() if t.grad is not None else torch.zeros_like(t)  # of embeddings it may be sparse
    return results, seeds, gradients


def judge(sample, device):
    """What is wrong ("" where values and gradients agree), and whether there are gradients. None: nothing to compare."""
    function, args, kwargs, differentiate = sample
    module = Called(function, args, kwargs)
    if any(t.numel() == 0 or t.is_complex() for t in module.tensors):
        return None
    try:
        wanted, seeds, gradients = theirs(module, differentiate)
    except RuntimeError:  # PyTorch's own: the sample takes more than the tensors say, such as storage
        return None
    if not wanted or any(y.is_complex() for y in wanted):
        return None
    program = export(module, tuple(module.tensors))
    refuse([program])
    graph = tutti.Graph()
    feeds = {f"x{i}": as_array(narrow(t)) for i, t in enumerate(module.tensors)}
    values = {k: graph.feed(k, dtype_name(v), list(v.shape)) for k, v in feeds.items()}
    users = iter(values.values())
    placed = {}
    for spec in program.graph_signature.input_specs:
        name = getattr(spec.arg, "name", None)
        if spec.kind.name == "USER_INPUT":
            placed[name] = next(users)
        else:
            placed[name] = graph.constant(as_array(narrow(program.constants[spec.target].detach())))
    builder = types.SimpleNamespace(graph=graph, seed=graph.constant(np.array([7, 0], np.uint32)),
                                    step=graph.constant(np.array(0, np.int32)))
    results, _ = Lowering(builder).run(program, placed)
    results = [r for r in results if isinstance(r, _core.Value) and 0 not in r.shape]
    if len(results) != len(wanted):
        return f"{len(results)} results, expected {len(wanted)}", False
    terms = [ops.sum(cast(r, "f32") * graph.constant(d)) for r, d in zip(results, seeds) if d is not None]
    for i, r in enumerate(results):
        graph.set_state(f"y{i}", r)
    if gradients:
        wrt = [values[f"x{i}"] for i in gradients]
        for i, g in zip(gradients, tutti.gradients(sum(terms[1:], terms[0]), wrt, zeros=True)):
            graph.set_state(f"d{i}", g)
    run = tutti.Program(graph, device)
    run.run(**feeds)
    for i, y in enumerate(wanted):
        if why := close(run[f"y{i}"], y):
            return f"result {i} {why}", bool(gradients)
    for i, g in gradients.items():
        if why := close(run[f"d{i}"], g):
            return f"gradient to x{i} {why}", True
    return "", bool(gradients)


def entries(core):
    """OpInfos by the core ATen name they are about."""
    found = collections.defaultdict(list)
    for info in op_db:
        for name in {info.aten_name, info.name.split(".")[-1], *(a.name for a in info.aliases)}:
            if name in core:
                found[name].append(info)
    return found


def samples_of(infos, count):
    """(function, arguments, keywords, whether it has gradients), `count` of every entry."""
    for info in infos:
        torch.manual_seed(0)
        differentiate = info.supports_autograd and info.name != "_native_batch_norm_legit"  # whose statistics take none
        try:
            dtype = next(t for t in (torch.float32, torch.int64, torch.bool) if t in info.dtypes)
            samples = list(info.sample_inputs("cpu", dtype, requires_grad=False))[:count]
        except Exception:  # noqa: BLE001  (some entries make none of that dtype)
            continue
        for s in samples:
            yield info.op, (s.input, *s.args), s.kwargs, differentiate


Verdict = collections.namedtuple("Verdict", "how agree gradients total whose declined complaints")


def examine(name, infos, count, device):
    """All samples of an operator. Supported is one that agrees in some and disagrees in none."""
    samples = [] if name in aten_samples.UNDETERMINED else list(samples_of(infos, count))
    own = aten_samples.SAMPLES.get(name, [])
    whose = " and ".join(["PyTorch's"] * bool(samples) + ["own"] * bool(own))
    agree, gradients, refused_own, complaints, declined = 0, 0, 0, [], []
    for at, sample in enumerate(samples + own):
        try:
            found = judge(sample, device)
        except UnsupportedError as e:
            declined.append(", ".join(m[0] for m in e.operations))
            refused_own += at >= len(samples)
            continue
        except tutti.InvalidError as e:
            declined.append(e.message)
            refused_own += at >= len(samples)
            continue
        except Exception as e:  # noqa: BLE001
            found = f"{type(e).__name__}: {str(e).splitlines()[0][:160]}", False
        if found is None and at < len(samples):
            continue
        why, with_gradient = found or ("PyTorch itself computes nothing of it", False)
        agree, gradients = agree + (not why), gradients + (not why and with_gradient)
        complaints += [why] if why else []
    total = agree + len(complaints)
    handled = any(h.split(".")[0] == name for h in HANDLERS)
    how = "op" if handled else "decomposed" if total else "not"
    if how != "not" and refused_own:
        complaints.append(f"{refused_own} of our own samples refused: {declined[-1]}")
    if how != "not" and not agree:
        complaints.append("no sample agrees")
    if (how == "not") != (name in aten_samples.NOT):
        complaints.append(f'"{how}" is not what aten_samples.NOT says')
    if how == "not" and not any(f"{name}.default" in d for d in declined):
        complaints.append("no sample shows that it is refused")
    return Verdict(how, agree, gradients, total, whose, sorted(set(declined)), complaints)


def table(verdicts, device, samples):
    count = collections.Counter(v.how for v in verdicts.values())
    version = torch.__version__.split("+")[0]
    lines = [f"""# PyTorch's core operators

Of {len(verdicts)} core ATen operators, {count["op"]} are converted to Tutti's ops by a handler ("op"), {count["decomposed"]} are decomposed by PyTorch into operators that
have one ("decomposed"); not supported ("not"): {count["not"]}. Other ATen operators also have handlers or are decomposed.
Shapes are fixed when the module is exported: sizes and strides are then constants.

Made by `tests/python/opinfo.py --table --samples {samples}`, which compares with PyTorch {version} on the device `{device}`.
A sample agrees if its values do and, if PyTorch can differentiate it, its gradients. Samples are from PyTorch's OpInfo
("PyTorch's") or from `tests/python/aten_samples.py` ("own"). "But not" is followed by the reasons for which some samples are
not supported.

| operator | how | samples that agree | with gradients | samples |
| --- | --- | --- | --- | --- |"""]
    for name, v in verdicts.items():
        note = f": {aten_samples.NOT[name]}" if v.how == "not" else f"; but not: {', '.join(v.declined)}" if v.declined else ""
        counts = "| | |" if v.how == "not" else f"{v.agree} of {v.total} | {v.gradients} | {v.whose} |"
        lines.append(f"| `{name}` | {v.how}{note} | {counts}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ops", nargs="*", help="only these names")
    parser.add_argument("--device", default="reference")
    parser.add_argument("--samples", type=int, default=6, help="of every OpInfo entry")
    parser.add_argument("--table", action="store_true", help="write docs/ATEN.md")
    o = parser.parse_args()
    warnings.simplefilter("ignore")
    core, verdicts, failed = core_names(), {}, 0
    infos = entries({*core, *aten_samples.MORE})
    written = dict(re.findall(r"^\| `(\w+)` \| (\w+)", TABLE.read_text(), re.M)) if TABLE.exists() and not o.table else {}
    for name in o.ops or dict.fromkeys([*core, *aten_samples.SAMPLES, *aten_samples.MORE]):
        v = verdicts[name] = examine(name, infos[name], o.samples, o.device)
        if name in core and not o.table and v.how != written.get(name):
            v.complaints.append(f"docs/ATEN.md says \"{written.get(name, 'nothing')}\"")
        failed += bool(v.complaints)
        print(f"{'FAILS' if v.complaints else v.how:10} {name:36} {v.agree:3} of {v.total:3}, {v.gradients:3} with gradients  "
              f"{'; '.join(v.complaints or v.declined)[:200]}", flush=True)
    print(dict(collections.Counter(v.how for v in verdicts.values())), f"{failed} fail")
    if o.table:
        TABLE.write_text(table({n: v for n, v in verdicts.items() if n in core}, o.device, o.samples))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
