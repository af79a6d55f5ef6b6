"""What the pieces' results say together: equal bits, close losses, times by kernel, reasons for declining, rates."""

import re
from collections import defaultdict

NEAR = 0.05  # relative difference of losses between precisions


def same_bits(records):
    """ "" or how the pieces' final states part."""
    found = defaultdict(list)
    for r in records:
        found[r["result"].get("state_hash")].append(r["name"])
    if None in found:
        return f"no state_hash of {' '.join(found[None])}"
    return "" if len(found) == 1 else "; ".join(f"{' '.join(names)}: {value}" for value, names in found.items())


def near_losses(records):
    """ "" or which losses are far from the first piece's."""
    first = records[0]["result"].get("losses", [])
    far = []
    for r in records[1:]:
        losses = r["result"].get("losses", [])
        pairs = list(zip(losses, first))
        if (
            not losses
            or len(losses) != len(first)
            or not all(isinstance(a, float) and abs(a - b) <= NEAR * abs(b) for a, b in pairs)
        ):
            far.append(f"{r['name']}: {losses}")
    return "; ".join(far) and f"{'; '.join(far)}; {records[0]['name']}: {first}"


def kernel_times(trace):
    """From TUTTI_TRACE=kernels: the longest launches, each summed over those of one name: [microseconds, launches, name]."""
    sums = defaultdict(lambda: [0.0, 0])
    for us, name in re.findall(r"\[kernels\] \S+ +([\d.]+) us  (.+)", trace):
        sums[name][0] += float(us)
        sums[name][1] += 1
    longest = sorted(((round(us, 1), n, name) for name, (us, n) in sums.items()), reverse=True)
    return [list(entry) for entry in longest[:40]]


def decisions(trace):
    """From TUTTI_TRACE=dispatch: who took how many nodes of each op, the reasons of who declined, and the algorithms."""
    took, declined, algorithms = defaultdict(int), defaultdict(int), []
    for line in re.findall(r"\[dispatch\] \S+ (.*)", trace):
        node = re.match(r"node \d+ (\S+) → ([^(]*?)(?: \((.*)\))?$", line)
        late = re.match(r"node \d+: (.*)", line)
        if node:
            took[f"{node[1]} → {node[2]}"] += 1
            if node[3]:
                declined[f"{node[1]}: {node[3]}"] += 1
        elif late:
            declined[late[1]] += 1
        elif "algorithm" in line:
            algorithms.append(line)
    return {"took": dict(took), "declined": dict(declined), "algorithms": algorithms}


def of_trace(trace):
    """The summary of a traced run; {} where nothing was traced."""
    if "[kernels]" not in trace and "[dispatch]" not in trace:
        return {}
    return {"kernels_us": kernel_times(trace), **decisions(trace)}


def lines(record):
    """Figures of a piece that are worth a line each."""
    try:
        return list(reported(record))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as e:  # a program whose document is not what it was
        return [f"{record['stage']}/{record['name']}: its result is not understood: {e!r}"]


def reported(record):
    result, name = record.get("result"), f"{record['stage']}/{record['name']}"
    if not isinstance(result, dict):
        return
    if "tutti_bench" in result:
        for c in result["results"]:
            what = f"{name}: {c['case']} {c['detail']} {c['precision']}"
            if c["status"] != "measured":
                yield f"{what}: {c['status']}, {c['reason']}"
                continue
            rate = f"{c['gflops'] / 1e3:.1f} TFLOP/s, " if c["gflops"] else ""
            share = f", {100 * c['share_of_peaks']:.0f} % of the device's own peaks" if c["share_of_peaks"] else ""
            yield f"{what}: {c['ms']['median']:.4f} ms, {rate}{c['gb_per_s']:.0f} GB/s{share}"
        return
    for c in result.get("results", []):
        ours, theirs = (c["step_ms_median"][side]["median"] for side in ("tutti", "peer"))
        yield f"{name}: {c['case']}: {ours:.4f} ms, {c['peer']} {theirs:.4f} ms: {theirs / ours:.2f} times as fast"
    if "step_ms_median" in result and "compile_ms" in result:
        first = (result["compile_ms"] + result["step_ms_median"]) / 1e3
        accuracy = f", accuracy {100 * result['accuracy']:.2f} %" if result["accuracy"] else ""
        yield f"{name}: loss {result['loss']}, first step after {first:.3f} s, {result['step_ms_median']:.4f} ms per step{accuracy}"
    trace = record.get("trace", {})
    for us, launches, kernel in trace.get("kernels_us", [])[:5]:
        yield f"{name}: {us:9.1f} us in {launches} × {kernel}"
    for why, count in trace.get("declined", {}).items():
        yield f"{name}: declined {count} ×: {why[:200]}"
