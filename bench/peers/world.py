#!/usr/bin/env python3
"""Data parallel training on one machine: N ranks of `tutti train` beside PyTorch's DistributedDataParallel over Gloo.

    PYTHON bench/peers/world.py [--models mlp,cnn,resnet18:cifar,gpt:char] [--ranks 2] [--link 4gbit] --json FILE

PYTHON is that of scripts/python-env.sh --torch. Every rank has one thread; the sides run in turn. Per model: the median ms of a step
of one process and of N ranks with the same batch, and the part of it that rank 0 of Tutti waits for transfers.
--link: as root, in a network namespace whose loopback device has that rate in all (both directions share it), MPI and Gloo over TCP.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
OVER_TCP = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo", "GLOO_SOCKET_IFNAME": "lo"}
MLP = [1024, 2048, 512, 10]
# Batch of a step over all ranks, and options of `tutti train`.
CASES = {"mlp": (128, ["--layers", ",".join(map(str, MLP)), "--data", f"synthetic:{MLP[0]}:10:4096:64"]), "cnn": (64, []),
         "resnet18:cifar": (32, ["--data", "synthetic:3x32x32:10:2048:64"]), "gpt:char": (8, [])}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(CASES))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--link", help="rate as tc writes it, such as 4gbit")
    parser.add_argument("--tutti", default=str(ROOT / "build/release/bin/tutti"))
    parser.add_argument("--no-peer", action="store_true", help="only Tutti")
    parser.add_argument("--json", help="write the figures there")
    return parser.parse_args()


def tutti(o, model, ranks):
    """Median ms of a step, and ms that rank 0 waits in it."""
    name, _, size = model.partition(":")
    batch, more = CASES[model]
    words = [o.tutti, "train", name, *(["--size", size] if size else []), "--batch", str(batch), *more, "--steps", str(o.steps), "--threads",
             "1", "--device", "onednn", "--no-eval", "--json", "--quiet"]
    if ranks > 1:
        words = ["mpiexec", "-n", str(ranks), *words]
    done = json.loads(subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, **OPEN_MPI}).stdout)
    ms = done["step_ms_median"]
    return ms, 1000 * done["world"]["seconds_waited"] / done["steps"] if ranks > 1 else 0.0


def ddp_worker(model, rank, ranks, port, steps):
    """One rank of PyTorch; rank 0 prints the median ms of a step."""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F

    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    import peer_torch
    import zoo
    torch.set_num_threads(1)
    torch.manual_seed(1)
    name, _, size = model.partition(":")
    batch = CASES[model][0] // ranks
    if name in ("mlp", "cnn"):
        layered = types.SimpleNamespace(model=name, sizes=MLP, activation="relu", dropout=0)
        module, labels = peer_torch.make_model(layered), zoo.classes(batch)
        columns = {"x": torch.randn(batch, *((MLP[0],) if name == "mlp" else (1, 28, 28)))}
        loss = lambda m, c: F.cross_entropy(m(c["x"]), labels)  # noqa: E731
    else:
        twin = zoo.model(name)
        module, columns, loss = twin.make(size), twin.draw(size, batch, 0), twin.loss
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
        module = torch.nn.parallel.DistributedDataParallel(module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-6, fused=True)
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss(module, columns).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    if rank == 0:
        print(1000 * statistics.median(times[steps // 5:]))
    if ranks > 1:
        dist.destroy_process_group()


def ddp(o, model, ranks, port):
    words = [sys.executable, __file__, "--worker", model]
    ranks_of = [subprocess.Popen([*words, str(r), str(ranks), str(port), str(o.steps)], stdout=subprocess.PIPE, text=True)
                for r in range(ranks)]
    texts = [p.communicate()[0] for p in ranks_of]
    if any(p.returncode for p in ranks_of):
        raise RuntimeError(f"PyTorch's {model} failed")
    return float(texts[0])


def measure(o):
    rows = []
    for m, model in enumerate(o.models.split(",")):
        seen = {key: [] for key in ("one", "ranks", "waited", "peer_one", "peer_ranks")}
        for k in range(o.rounds):
            seen["one"].append(tutti(o, model, 1)[0])
            ms, waited = tutti(o, model, o.ranks)
            seen["ranks"].append(ms)
            seen["waited"].append(waited)
            if not o.no_peer:
                seen["peer_one"].append(ddp(o, model, 1, 0))
                seen["peer_ranks"].append(ddp(o, model, o.ranks, 29000 + 100 * m + k))
        row = {"model": model, **{key: round(statistics.median(v), 3) for key, v in seen.items() if v}}
        row["efficiency"] = round(row["one"] / o.ranks / row["ranks"], 3)
        if not o.no_peer:
            row["peer_efficiency"] = round(row["peer_one"] / o.ranks / row["peer_ranks"], 3)
            row["ratio"] = round(row["ranks"] / row["peer_ranks"], 3)
        rows.append(row)
        print("  ".join(f"{k} {v}" for k, v in row.items()), flush=True)
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps({"ranks": o.ranks, "link": o.link, "rows": rows}, indent=1) + "\n")
    return 0


def main():
    if sys.argv[1:2] == ["--worker"]:
        model, rank, ranks, port, steps = sys.argv[2:7]
        return ddp_worker(model, int(rank), int(ranks), int(port), int(steps))
    o = options()
    if o.link and os.environ.get("BENCH_LINK") != o.link:
        setup = f"ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate {o.link} burst 512kb latency 50ms && exec \"$@\""
        os.environ.update(OVER_TCP, BENCH_LINK=o.link)
        os.execvp("unshare", ["unshare", "-n", "sh", "-c", setup, "sh", sys.executable, __file__, *sys.argv[1:]])
    return measure(o)


if __name__ == "__main__":
    sys.exit(main())
