"""What became of a process: a record, and what it teaches."""

import json

import figures
import results

GPU_KINDS = ("discrete", "integrated")


def judged(job, code):
    """The record of a piece whose process has ended."""
    p, piece = job.process, job.piece
    out, err = results.text_of(p.out), results.text_of(p.err)
    record = {"stage": job.stage.name, "name": job.name, "status": "ok", "exit": code, "seconds": round(p.seconds(), 2)}
    try:
        record["result"] = json.loads(out)
    except ValueError:
        pass
    trace = figures.of_trace(err)
    if trace:
        record["trace"] = trace
    if code == 0 and "json" in piece.command and "result" not in record:
        code, p.why = 1, p.why or "it printed no JSON"
    in_part = piece.partial and code == piece.partial
    fine = code == 0 or in_part or (piece.fact == "devices" and isinstance(record.get("result"), dict))
    if p.why or not fine:
        record.update(
            status="skipped" if piece.optional and not p.why else "failed",
            command=job.command,
            text=results.diagnostics(out, err),
            why=p.why or results.reason(out, err, record.get("result")) or f"exit code {code}",
        )
    elif in_part:
        record.update(status="skipped", why=results.last_line(err))
    elif "[  SKIPPED ]" in out and "[       OK ]" not in out:
        record.update(status="skipped", why=skip_reason(out))
    elif "[==========]" in out:
        record["text"] = results.cut(out, 2000)  # what a test printed may be the point of it
    return record


def skip_reason(out):
    body = out.split("[ RUN      ]", 1)[-1].split("[  SKIPPED ]", 1)[0].splitlines()
    return next((line.strip() for line in reversed(body) if line.strip() and ".cpp:" not in line), "it skipped itself")


def learned(piece, record):
    """(the fact's name, what it is or None, why it is not). A list of devices without a GPU is a skipped piece."""
    if piece.fact != "devices":
        return piece.fact, record["status"] == "ok" or None, record.get("why")
    plugin = piece.env["TUTTI_PLUGINS"]
    if record["status"] != "ok":
        return plugin, None, f"tutti devices: {record['why']}"
    listed = record["result"]
    usable = [d["id"] for d in listed["devices"] if d["usable"] and d["kind"] in GPU_KINDS]
    if usable:
        return plugin, usable[0], None
    reasons = [d["unusable"] or f"{d['id']} is no GPU ({d['kind']})" for d in listed["devices"]]
    reasons += [q["problem"] for q in listed["plugins"] if q["problem"] and q["name"] == plugin]
    why = "no device: " + (reasons or ["the plugin offers none"])[0]
    record.update(status="skipped", why=why)
    return plugin, None, why
