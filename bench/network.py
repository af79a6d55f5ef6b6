#!/usr/bin/env python3
"""The network model of `tutti plan --network`: fitted to sums over ranks measured here, and drawn for many ranks.

    python3 bench/network.py [--ranks 2,4] [--link 4gbit] [--steps 0] [--json FILE]
    python3 bench/network.py --svg FILE

Measures sums over ranks of one machine, fits latency and rate to three sizes with the fewest ranks, and prints them as --network takes
them, with the error of the model for other sizes and numbers of ranks. --steps N: also `tutti plan --network` with them beside N steps
of `tutti train`. --link: as root, in a network namespace whose loopback device has that rate in all, MPI over TCP.
--svg measures nothing: it draws the predicted weak scaling of GPT-2 on three networks.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
OVER_TCP = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}
FITTED = [1 << 18, 1 << 20, 1 << 24]  # bytes
OTHERS = [1 << 16, 1 << 22]
LEAST = 1e-6  # seconds of latency; --network takes no 0
PIECE = 4 << 20  # as in cli/network_plan.cpp
STEP = ["mlp", "--layers", "1024,2048,512,10", "--data", "synthetic:1024:10:4096:64", "--batch", "128", "--threads", "1", "--device", "onednn"]
# Of the picture: rate and latency of a link as PARALLELISM.md has them, and one H100 with 4 samples of 1,024 tokens in bf16 (tutti plan --roofline h100).
NETWORKS = {"300 GB/s, 3 µs": (300e9, 3e-6), "50 GB/s, 5 µs": (50e9, 5e-6), "1.25 GB/s, 50 µs": (1.25e9, 50e-6)}
STEP_SECONDS, SAMPLES, WIDTH, BLOCKS, TOKENS, VOCABULARY = 9.2e-3, 4, 768, 12, 1024, 50257
COLORS = ["#2563eb", "#16a34a", "#ea580c"]


def terms(ranks, size):
    """Factors of the latency and of 1 / rate in the seconds of a sum in a ring."""
    return 2 * (ranks - 1) * max(1, math.ceil(size / PIECE)), 2 * (ranks - 1) * size / ranks


def fit(ranks, sums):
    """Latency and rate with the least sum of squared logarithms of model over measured, by a grid that becomes finer."""
    def error(latency, slowness):
        return sum(math.log((a * latency + b * slowness) / t) ** 2 for (a, b), t in ((terms(ranks, size), t) for size, t in sums))

    best, width = (1e-4, 1e-9), 1e4
    while width > 1.001:
        tries = [tuple(x * width ** (k / 4) for x, k in zip(best, (i, j))) for i in range(-4, 5) for j in range(-4, 5)]
        best = min(tries, key=lambda x: error(*x))
        width **= 0.7
    return max(best[0], LEAST), 1 / best[1]


def text_of(latency, rate):
    return f"{rate / 1e6:.4g}MB/s,{latency * 1e6:.4g}us"


def run(words, ranks):
    words = ["mpiexec", "-n", str(ranks), *map(str, words)] if ranks else list(map(str, words))
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **OPEN_MPI}).stdout)


def measure(o):
    counts = [int(n) for n in o.ranks.split(",")]
    report = {"link": o.link, "rows": [], "steps": []}
    sums = {n: run([o.build / "bin/world_sums", *sorted(FITTED + OTHERS)], n)["sums"] for n in counts}
    latency, rate = fit(counts[0], [s for s in sums[counts[0]] if s[0] in FITTED])
    report["network"] = text_of(latency, rate)
    print(f"fitted to {counts[0]} ranks: --network {report['network']}")
    for n, rows in sums.items():
        for size, seconds in rows:
            a, b = terms(n, size)
            error = (a * latency + b / rate) / seconds - 1
            report["rows"].append({"ranks": n, "bytes": size, "ms": 1000 * seconds, "error": error, "fitted": n == counts[0] and size in FITTED})
            print(f"{n} ranks, {size:9} bytes: {1000 * seconds:8.3f} ms, model {100 * error:+.0f} %" + " (fitted)" * report["rows"][-1]["fitted"])
    for n in counts if o.steps else []:
        tutti = o.build / "bin/tutti"
        plan = run([tutti, "plan", *STEP, "--world", n, "--network", report["network"], "--no-search", "--json"], 0)["plans"][0]["predicted"]
        done = run([tutti, "train", *STEP, "--steps", o.steps, "--no-eval", "--quiet", "--json"], n)
        row = {"ranks": n, "predicted_ms": plan["step_ms"], "ms": done["step_ms_median"], "error": plan["step_ms"] / done["step_ms_median"] - 1}
        report["steps"].append(row)
        print("{ranks} ranks: a step takes {ms:.1f} ms, predicted {predicted_ms:.1f} ms".format(**row))
    if o.json:
        o.json.write_text(json.dumps(report, indent=1) + "\n")


def buckets():
    """(bytes, seconds after the begin of the step) of GPT-2's gradients in the order of the backward pass, which takes two thirds of the
    time, in proportion to the products that a matrix is in."""
    block = [(4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (WIDTH, WIDTH), (WIDTH, 3 * WIDTH)]
    matrices = [(VOCABULARY, WIDTH), *(block * BLOCKS)]
    work = [a * b for a, b in matrices]
    done, all_buckets = 0, []
    for (a, b), w in zip(matrices, work):
        done += w
        all_buckets.append([4 * a * b, STEP_SECONDS * (1 / 3 + 2 / 3 * done / sum(work))])
    # The tied embedding is also read first: its gradient is final last, and with it that of the positions.
    head = all_buckets.pop(0)[0]
    return [*all_buckets, [head, STEP_SECONDS], [4 * TOKENS * WIDTH, STEP_SECONDS]]


def efficiency(ranks, network, all_buckets):
    """Of the time of a step on one rank; buckets are sent in order, each when it is final (cli/network_plan.cpp)."""
    if ranks == 1:
        return 1.0
    rate, latency = network
    free = 0.0
    for size, ready in all_buckets:
        a, b = terms(ranks, size)
        free = max(free, ready) + a * latency + b / rate
    return STEP_SECONDS / max(free, STEP_SECONDS)


def draw(file):
    wide, high, left, top, bottom = 640, 360, 56, 44, 48
    counts, all_buckets = [2 ** k for k in range(11)], buckets()

    def at(k, share):
        return left + k / 10 * (wide - left - 130), high - bottom - share * (high - top - bottom)

    parts = [f'<text x="{left}" y="18" font-size="13" font-weight="bold">GPT-2 124M, weak scaling: predicted, not measured</text>',
             f'<text x="{left}" y="33">{SAMPLES} samples of {TOKENS} tokens per rank; {1000 * STEP_SECONDS:.1f} ms without communication (one H100, '
             'predicted); f32 gradients in rings</text>']
    for share in (0, 0.25, 0.5, 0.75, 1):
        (x, y), (end, _) = at(0, share), at(10, share)
        parts.append(f'<path d="M{x:.1f} {y:.1f}L{end:.1f} {y:.1f}" stroke="#ddd"/><text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">'
                     f'{100 * share:.0f} %</text>')
    for k, n in enumerate(counts):
        x, y = at(k, 0)
        parts.append(f'<text x="{x:.1f}" y="{y + 15:.1f}" text-anchor="middle">{n:,}</text>')
    parts.append(f'<text x="{(left + wide - 130) / 2:.0f}" y="{high - 10}" text-anchor="middle">ranks (efficiency: time of one rank\'s step over that of '
                 'all)</text>')
    table = {}
    for color, (name, network) in zip(COLORS, NETWORKS.items()):
        table[name] = [efficiency(n, network, all_buckets) for n in counts]
        points = [at(k, share) for k, share in enumerate(table[name])]
        parts.append(f'<polyline points="{" ".join("%.1f,%.1f" % p for p in points)}" fill="none" stroke="{color}" stroke-width="2" '
                     'stroke-dasharray="6 3"/>')
        key = wide - 120, top + 16 + 18 * len(table)
        parts.append('<path d="M%d %dh20" stroke="%s" stroke-width="2" stroke-dasharray="6 3"/><text x="%d" y="%d">%s</text>'
                     % (*key, color, key[0] + 25, key[1] + 4, name))
        print(f"{name:18}" + "  ".join(f"{n}: {100 * share:.0f} %" for n, share in zip(counts, table[name])))
    file.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" font-family="sans-serif" font-size="10">'
                    f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    p.add_argument("--ranks", default="2,4")
    p.add_argument("--link", help="rate as tc writes it, such as 4gbit")
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("--json", type=pathlib.Path)
    p.add_argument("--svg", type=pathlib.Path)
    o = p.parse_args()
    if o.svg:
        draw(o.svg)
    elif o.link and os.environ.get("BENCH_LINK") != o.link:
        setup = f"ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate {o.link} burst 512kb latency 50ms && exec \"$@\""
        os.environ.update(OVER_TCP, BENCH_LINK=o.link)
        os.execvp("unshare", ["unshare", "-n", "sh", "-c", setup, "sh", sys.executable, __file__, *sys.argv[1:]])
    else:
        measure(o)
    return 0


if __name__ == "__main__":
    sys.exit(main())
