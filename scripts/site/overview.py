"""The first page: devices and levels, models by device, reference runs, and what was never run."""
from device_page import OUTCOMES, op_cell
from html_text import cell, document, esc, table, yes_no
from reports import LEVELS, PLUGINS


def counts(part):
    if part is None:
        return cell("not run", "none")
    ran = part["pass"] + part["fail"] + part["unsupported"]
    return cell(f"{part['pass']} of {ran}", "number " + ("yes" if part["pass"] == ran else "no"))


def heading(device):
    return f"<a href=\"{device.page}\">{esc(device.id)}</a><br><span class=\"soft\">{esc(device.name[:40])}" \
           f"{'<br>quick: fewer cases' if device.report['quick'] else ''}</span>"


def devices_table(devices):
    rows = []
    for d in devices:
        rows.append((heading(d), [*(yes_no(d.levels[level]) for level in LEVELS), counts(d.part("parity")), counts(d.part("exact")),
                                  cell(esc(d.report["machine"]["cpu"])), cell(esc(d.report["date"]))]))
    return table(["device", *LEVELS.values(), "parity", "exact parity", "CPU", "date"], rows)


def ops_table(devices):
    """Every op on every device, all dtypes and directions together."""
    names = list(dict.fromkeys(op["op"] for d in devices if d.part("parity") for op in d.part("parity")["ops"]))
    rows = []
    for name in names:
        cells = []
        for d in devices:
            found = next((op for op in (d.part("parity") or {"ops": []})["ops"] if op["op"] == name), None)
            total = {key: sum(c[key] for c in found["cells"]) for key in OUTCOMES} if found else None
            cells.append(op_cell(total))
        rows.append((esc(name), cells))
    return table(["op", *(f"<a href=\"{d.page}\">{esc(d.id)}</a>" for d in devices)], rows)


def model_cell(device, model):
    lockstep, bench = device.part("lockstep"), device.part("bench")
    entry = next((m for m in lockstep["models"] if m["model"] == model), None) if lockstep else None
    ms = next((m.get("ms") for m in bench["models"] if m["model"] == model), None) if bench else None
    text = "" if ms is None or device.report["quick"] else f"{ms:.0f} ms" if ms >= 100 else f"{ms:.3g} ms"  # quick: other sizes
    if entry is None:
        return cell(text or "not run", "number none")
    return cell(text or ("agrees" if entry["ok"] else "differs"), "number " + ("yes" if entry["ok"] else "no"),
                entry.get("error", "") or "; ".join(entry.get("failures", [])))


def models_table(devices):
    models = sorted({m["model"] for d in devices if d.part("lockstep") for m in d.part("lockstep")["models"]})
    return table(["model", *(esc(d.id) for d in devices)], [(esc(m), [model_cell(d, m) for d in devices]) for m in models])


def runs_table(devices):
    known = {}
    for d in devices:
        for run in (d.part("states") or {"runs": []})["runs"]:
            known[run["model"], run["steps"]] = run["expected"]
    rows = []
    for (model, steps), expected in known.items():
        cells = [cell(steps, "number"), cell(f"<code>{expected}</code>")]
        for d in devices:
            run = next((r for r in (d.part("states") or {"runs": []})["runs"] if (r["model"], r["steps"]) == (model, steps)), None)
            cells.append(cell("not run", "none") if run is None else cell("equal", "yes") if run["equal"] else
                         cell(f"<code>{esc(run.get('state', 'failed'))}</code>", "no", run.get("error", "")))
        rows.append((esc(model), cells))
    return table(["model", "steps", "state of the reference", *(esc(d.id) for d in devices)], rows)


def never_run(devices):
    """Plugins without any report, and without one of hardware of their own."""
    lines = []
    for plugin in PLUGINS:
        mine = [d for d in devices if d.plugin == plugin]
        if not mine:
            lines.append(f"{plugin}: no report of any device")
        elif all(d.kind == "software" for d in mine):
            lines.append(f"{plugin}: reports of software devices alone, none of a GPU")
        lines += [f"{esc(d.id)}: {part}" for d in mine for part in ("conformance", "parity", "lockstep", "exact", "states", "bench") if not d.part(part)]
    return "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>\n" if lines else "<p>Nothing.</p>\n"


def page(devices):
    return document("What agrees", f"""<h1>What agrees</h1>
<p>Devices that ran Tutti's checks, as their owners reported them. Every op and its gradients are compared with float64, whole
training steps too; with exact numerics, bits are compared. To add a device, run <code>tutti report-device</code> and attach the file
to an issue.</p>
{devices_table(devices)}
<p class="soft">loads: the plugin passes the checks of the ABI. infers: every op agrees with float64 or is listed by the plugin as an
exception. trains: the training steps of the models agree. trains everything: all gradients too. exact: every bit of every op and of
the reference runs equals the reference's.</p>
<h2>Models</h2>
<p>Green: training steps agree with float64 (tiny size). The figure is the median time of a step in f32, at the default size, by
<code>tutti bench</code>.</p>
{models_table(devices)}
<h2>Reference runs</h2>
<p><code>tutti train MODEL --size tiny --steps N --numerics exact --no-eval</code> prints this state on every device.</p>
{runs_table(devices)}
<h2>Never run</h2>
{never_run(devices)}
<h2>Ops</h2>
<p>Cases that agree with float64: all dtypes, forward and backward. A device's page has them apart, with the command that repeats a failure.</p>
{ops_table(devices)}""")
