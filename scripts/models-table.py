#!/usr/bin/env python3
"""Writes docs/MODELS.md: every model of `tutti models` at its default size, from runs on this machine.

Each model trains --steps steps on --device in f32 and is evaluated (loss and metrics); on every other device it takes a few
steps for the time of one, after others that compile its kernels. With --python (one that has PyTorch) `tutti bench` puts PyTorch's step beside it, in turn, the faster
of eager with a fused optimizer and torch.compile. All figures go to docs/results/DATE-models.json, which --from reads instead
of running anything, but with --others the steps on the other devices.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]


def tutti(options, *args):
    run = subprocess.run([options.binary, *args, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    document = json.loads(run.stdout) if run.stdout else {}
    if run.returncode != 0:
        raise RuntimeError(f"tutti {' '.join(args)}: {document.get('error', run.stderr.strip())}")
    return document


def beside_torch(options, names):
    """Per model: our and PyTorch's milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "bench.json"
        subprocess.run([options.binary, "bench", "--models", ",".join(names), "--ops", "none", "--device", options.device, "--peer",
                        "torch", "--python", options.python, "--precision", "f32", "--time", str(options.time), "--json",
                        str(file)], check=True)
        document = json.loads(file.read_text())
    out = {}
    for r in document["results"]:
        if r["status"] == "measured":
            side = "torch_ms" if r["lane"].startswith("torch") else "ms"
            out.setdefault(r["case"].split(":")[0], {})[side] = r["ms"]["median"]
    return out


def step_ms(options, name, device):
    """Milliseconds of a step on a device, or why there are none."""
    def run(steps):
        return tutti(options, "train", name, "--steps", str(steps), "--no-eval", "--quiet", "--device", device)["step_ms_median"]
    try:
        run(1)  # compiles the kernels
        ms = run(3)
        return ms if ms > 3000 else run(max(3, min(60, int(4000 / ms))))
    except RuntimeError as e:
        return str(e)


def other_devices(options):
    usable = [d["id"] for d in tutti(options, "devices")["devices"] if d["usable"]]
    return [d for d in usable if d != options.device and not d.startswith("reference")]


def measure(options):
    models = [m for m in tutti(options, "models")["models"] if not options.models or m["name"] in options.models.split(",")]
    others = other_devices(options)
    peers = beside_torch(options, [m["name"] for m in models]) if options.python else {}
    rows = []
    for m in models:
        size = m["sizes"][0]
        row = {"name": m["name"], "doc": m["doc"], "size": size["name"], "parameters": size["parameters"], "batch": size["batch"],
               "data": size["data"], "ops": m["ops"], **peers.get(m["name"], {})}
        run = tutti(options, "train", m["name"], "--steps", str(options.steps), "--device", options.device, "--quiet")
        row |= {"steps": run["steps"], "first_loss": run["losses"][0], "loss": run["loss"], "test_loss": run["test_loss"],
                "metrics": run["metrics"] or {}, "optimizer": run["optimizer"]}
        row.setdefault("ms", run["step_ms_median"])
        row["ms_of"] = {d: step_ms(options, m["name"], d) for d in others}
        print(f"{row['name']}: loss {row['first_loss']:.4f} -> {row['loss']:.4f}, {row['ms']:.1f} ms, "
              f"PyTorch {row.get('torch_ms', float('nan')):.1f} ms", flush=True)
        rows.append(row)
    info = {d["id"]: d["name"] for d in tutti(options, "devices")["devices"] if d["usable"]}
    return {"date": datetime.date.today().isoformat(), "device": options.device, "devices": info, "others": others, "models": rows}


def number(ms):
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 10 else f"{ms:.2f}"


def markdown(document):
    others = f"; steps on other devices than {document['device']} on {document['others_date']}" if "others_date" in document else ""
    lines = ["# The models", "",
             "`tutti train NAME` trains any of these models on default data; `tutti models` lists their other sizes. Each model is one file in",
             "`train/models` and is tested in lockstep with the float64 reference on every device. All but `mlp` and `cnn` have a PyTorch",
             "counterpart with the same parameter names in `bench/peers/zoo`; in float64 the losses of 20 steps, and the weights after them,",
             "agree with it to 1e-9 (`tests/golden/models_test.cpp`). Models missing from the tables were not measured.", "",
             *textwrap.wrap(f"Made by `scripts/models-table.py` on {document['date']}, in f32{others}. Devices: "
                            + ", ".join(f"`{d}` ({document['devices'][d]})" for d in [document["device"], *document["others"]]) + ".",
                            128, break_long_words=False, break_on_hyphens=False), "",
             "| model | description | parameters | data, batch size, optimizer | steps | training loss, first → last | test loss; metrics |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for r in document["models"]:
        metrics = ", ".join(f"{k} {100 * v:.1f} %" for k, v in sorted(r["metrics"].items()))
        test = f"{r['test_loss']:.3f}" if r["test_loss"] is not None else "-"
        lines.append(f"| `{r['name']}` | {r['doc']} | {r['parameters']:,} | `{r['data'].replace('made-up-', 'synthetic-')}`, {r['batch']}, {r['optimizer']} | "
                     f"{r['steps']} | {r['first_loss']:.3f} → {r['loss']:.3f} | {test}{'; ' + metrics if metrics else ''} |")
    torch = any("torch_ms" in r for r in document["models"])
    lines += ["", "Milliseconds per training step" + (f". Runs of {document['device']} and PyTorch (the faster of eager and `torch.compile`) "
              "alternated" if torch else "") + ":", "",
              "| model | " + document["device"] + (" | PyTorch | ratio" if torch else "") +
              "".join(f" | {d}" for d in document["others"]) + " | number of distinct ops | ops that not every model has |",
              "| --- | ---" + (" | --- | ---" if torch else "") + " | ---" * len(document["others"]) + " | --- | --- |"]
    everywhere = set.intersection(*(set(r["ops"]) for r in document["models"]))
    for r in document["models"]:
        cells = [f"`{r['name']}`", number(r["ms"])]
        if torch:
            theirs = r.get("torch_ms")
            cells += [number(theirs), f"{r['ms'] / theirs:.2f}"] if theirs else ["-", "-"]
        for d in document["others"]:
            ms = r["ms_of"][d]
            cells.append(number(ms) if isinstance(ms, float) else "not run: " + ms.split(": ", 1)[1][:60])
        lines.append("| " + " | ".join([*cells, str(len(r["ops"])), ", ".join(sorted(set(r["ops"]) - everywhere))]) + " |")
    lines += ["", "Ops that every model has: " + ", ".join(sorted(everywhere)) + "."]
    return "\n".join(lines) + "\n" + SEEN


SEEN = """
## Pictures

Made by `scripts/models-pictures.py` from data that the models were not trained on.

| | |
| --- | --- |
| ![autoencoder](pictures/autoencoder.png) | `autoencoder`, 3 epochs: images, and below each its reconstruction from 32 numbers |
| ![unet](pictures/unet.png) | `unet`, 1 epoch: an image, the true class of every pixel, and the predicted class |
| ![vae](pictures/vae.png) | `vae`, 10 epochs: samples drawn from noise |
| ![diffusion](pictures/diffusion.png) | `diffusion`, 4000 steps: samples drawn from noise in 1000 steps |

Training losses of Tutti and PyTorch, starting from the same weights and with the same samples in the same order
(`bench/peers/curves.py`):

![training losses of five models in Tutti and PyTorch](results/2026-11-22-curves.svg)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build/release/bin/tutti"))
    parser.add_argument("--device", default="onednn:0", help="where they train (onednn:0)")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--models", help="only these, separated by commas; for a try")
    parser.add_argument("--python", help="one that has PyTorch, which runs beside it")
    parser.add_argument("--time", type=float, default=4, help="seconds per measurement beside PyTorch")
    parser.add_argument("--from", dest="source", type=pathlib.Path, help="an earlier result in place of runs")
    parser.add_argument("--others", action="store_true", help="with --from: measure the steps on the other devices anew")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / f"docs/results/{datetime.date.today().isoformat()}-models.json")
    options = parser.parse_args()
    document = json.loads(options.source.read_text()) if options.source else measure(options)
    if options.others:
        document["others_date"] = datetime.date.today().isoformat()
        for row in document["models"]:
            row["ms_of"] = {d: step_ms(options, row["name"], d) for d in document["others"]}
            print(row["name"], row["ms_of"], flush=True)
    if options.others or not options.source:
        rows = ",\n".join("  " + json.dumps(r, ensure_ascii=False) for r in document["models"])
        head = {k: v for k, v in document.items() if k != "models"}
        options.out.write_text(json.dumps(head, indent=1)[:-2] + ',\n "models": [\n' + rows + "\n ]\n}\n")
    (ROOT / "docs/MODELS.md").write_text(markdown(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
