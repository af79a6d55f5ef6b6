"""Runs the pieces of a part, each for its time, and keeps what they said."""
import datetime
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

import figures
import results
from machine import Machine
from pieces import PARTS
from process import Process

GPU_KINDS = ("discrete", "integrated")
RETRIES = 4  # of a stage
LEAST = 2  # seconds that are worth a start
LOGS = {"CUBLASLT_LOG_LEVEL": "5", "CUBLASLT_LOG_FILE": "{log}.cublaslt.%i", "CUDNN_LOGLEVEL_DBG": "3", "CUDNN_LOGDEST_DBG": "{log}.cudnn.%i",
        "TUTTI_TRACE": "dispatch,kernels", "CUDA_LAUNCH_BLOCKING": "1"}


class Interrupted(Exception):
    """A signal asked for an end."""


class Job:
    """One start of a piece; `word` is what {each} stands for, `of` the record of the failed first start."""

    def __init__(self, stage, piece, word="", of=None):
        self.stage, self.piece, self.word, self.of = stage, piece, word, of
        self.name = f"{piece.name}/{word.split('.', 1)[-1]}" if word else piece.name  # of a test, without its suite

    def file_name(self):
        plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in f"{self.stage.name}.{self.name}")
        return plain + (".again" if self.of else "")


class Run:
    """A part on a machine. Fills `records`, one per piece, and the two files under `out`."""

    def __init__(self, part, stages, machine, out, scale=1.0, signals=()):
        self.signals = signals  # those that asked for an end
        self.part, self.stages, self.machine, self.out, self.scale = part, stages, machine, out, scale
        self.date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.begun = time.monotonic()
        self.facts, self.missing, self.gpus = machine.facts(), {}, []
        self.logs = os.path.join(machine.work, "logs")
        os.makedirs(self.logs, exist_ok=True)
        os.makedirs(out, exist_ok=True)
        self.records, self.running, self.written, self.ended = [], [], 0.0, ""
        self.seen = {}  # labels of `same` and `near` → their last stage
        for stage in stages:
            for piece in stage.pieces:
                for label in ("same", "near"):
                    if getattr(piece, label):
                        self.seen[label, getattr(piece, label)] = stage

    # ---- what came out
    def tell(self, record):
        self.records.append(record)
        why = record.get("why", "")
        state = {"failed": f"FAILED ({record.get('exit')})"}.get(record["status"], record["status"])
        print(f"{record['stage']:<11} {record['name']:<44} {state:<11} {record.get('seconds', 0):5.1f} s{'  ' + why if why else ''}", flush=True)
        if time.monotonic() - self.written > 1:
            self.write()

    def skip(self, job, why):
        if job.piece.fact:
            self.missing[job.piece.env.get("TUTTI_PLUGINS", job.piece.fact)] = why
        self.tell({"stage": job.stage.name, "name": job.name, "status": "skipped", "why": why})

    def count(self, status):
        return sum(r["status"] == status for r in self.records)

    def code(self):
        if self.count("failed"):
            return 1
        if not self.gpus and not self.ended:
            return 2
        return 3 if self.count("skipped") or self.ended else 0

    def summary(self):
        """What a reader wants first comes last, where the end of an output is kept."""
        skipped = {}
        for r in self.records:
            if r["status"] == "skipped":
                skipped.setdefault((r["stage"], r["why"]), []).append(r["name"])
        lines = [line for r in self.records for line in figures.lines(r)]
        for (stage, why), names in skipped.items():
            more = f" and {len(names) - 6} more" if len(names) > 6 else ""
            lines.append(f"skipped {stage}: {', '.join(names[:6])}{more}: {why}")
        lines += [f"FAILED {r['stage']}/{r['name']}: {r['why']}" for r in self.records if r["status"] == "failed"]
        lines += [self.ended] if self.ended else []
        return lines + [f"gpu-check {self.part}: {self.count('ok')} ok, {self.count('failed')} failed, {self.count('skipped')} skipped, "
                        f"{time.monotonic() - self.begun:.0f} s; GPUs: {', '.join(self.gpus) or 'none'}"]

    def write(self):
        """The document; replaced in one step, so that it is whole at any time."""
        document = {"part": self.part, "date": self.date, "exit": self.code(), "ended": self.ended, "summary": self.summary(),
                    "machine": self.machine.described(), "pieces": self.records}
        results.write_whole(os.path.join(self.out, f"gpu-check-{self.part}.json"), results.document_bytes(document))
        self.written = time.monotonic()

    def archive(self):
        results.write_whole(os.path.join(self.out, f"gpu-check-{self.part}.tar.gz"),
                            results.archive_bytes(self.logs, "\n".join(self.summary()) + "\n"))

    # ---- one piece
    def filled(self, text, job, left):
        known = {**self.facts, "each": job.word, "left": str(max(1, int(left) - 8))}
        return re.sub(r"\{(\w+)\}", lambda m: str(known.get(m[1], m[0])), text)

    def start(self, job, left):
        log = os.path.join(self.logs, job.file_name())
        limit = min(job.piece.limit * self.scale, left)
        env = {**self.machine.env, **{k: self.filled(v, job, limit) for k, v in job.piece.env.items()}}
        if job.of:
            env.update({k: v.replace("{log}", log) for k, v in LOGS.items()})
        command = [self.filled(word, job, limit) for word in job.piece.command]
        try:
            job.process = Process(command, env, log + ".out", log + ".err", limit, self.machine.work)
        except OSError as e:
            if job.piece.optional:
                return self.skip(job, f"{command[0]}: {e.strerror}")
            return self.tell({"stage": job.stage.name, "name": job.name, "status": "failed", "exit": 127, "why": f"{command[0]}: {e.strerror}"})
        job.command, job.added = command, {**job.piece.env, **(LOGS if job.of else {})}
        self.running.append(job)
        return None

    def finished(self, job, code):
        """Judges a process that has ended."""
        p, piece = job.process, job.piece
        out, err = results.text_of(p.out), results.text_of(p.err)
        if job.of is not None:  # the second start of a failed piece
            job.of["again"] = {"exit": code, "seconds": round(p.seconds(), 1), "why": p.why, "text": results.told(out, err),
                               "logs": self.library_logs(job)}
            print(f"{job.stage.name:<11} {job.name:<44} again: exit {code}", flush=True)
            return None
        record = {"stage": job.stage.name, "name": job.name, "status": "ok", "exit": code, "seconds": round(p.seconds(), 2)}
        try:
            record["result"] = json.loads(out)
        except ValueError:
            pass
        trace = figures.of_trace(err)
        if trace:
            record["trace"] = trace
        skipped = "[  SKIPPED ]" in out and "[       OK ]" not in out
        if p.why or (code != 0 and piece.fact != "devices" and not (piece.partial and code == piece.partial)):
            record.update(status="skipped" if piece.optional and not p.why else "failed", text=results.told(out, err),
                          why=p.why or results.reason(out, err, record.get("result")) or f"exit code {code}")
        elif skipped or code == piece.partial != 0:
            record.update(status="skipped", why=results.last_line(err) if code else self.skip_reason(out))
        elif piece.each and "[==========]" in out and "[       OK ]" in out:
            record["text"] = results.cut(out, 2000)  # what a test printed may be the point of it
        if piece.fact:
            self.learn(job, record)
        self.tell(record)
        return record

    @staticmethod
    def skip_reason(out):
        body = out.split("[ RUN      ]", 1)[-1].split("[  SKIPPED ]", 1)[0].splitlines()
        return next((line.strip() for line in reversed(body) if line.strip() and ".cpp:" not in line), "it skipped itself")

    def library_logs(self, job):
        prefix = job.file_name() + ".cu"
        return {f: results.cut(results.text_of(os.path.join(self.logs, f)), 4000) for f in sorted(os.listdir(self.logs)) if f.startswith(prefix)}

    def learn(self, job, record):
        """What later pieces need to know."""
        fact = job.piece.fact
        if fact != "devices":
            if record["status"] == "ok":
                self.facts[fact] = True
            else:
                self.missing[fact] = record["why"]
            return
        plugin, listed = job.piece.env["TUTTI_PLUGINS"], record.get("result")
        if not isinstance(listed, dict):
            if record["status"] == "ok":
                said = results.told(results.text_of(job.process.out), results.text_of(job.process.err))
                record.update(status="failed", why=results.last_line(said) or "it printed no JSON", text=said)
            self.missing[plugin] = f"tutti devices: {record['why']}"
            return
        usable = [d["id"] for d in listed["devices"] if d["usable"] and d["kind"] in GPU_KINDS]
        if usable:
            self.facts[plugin] = usable[0]
            self.gpus.append(usable[0])
            return
        reasons = [d["unusable"] or f"{d['id']} is no GPU ({d['kind']})" for d in listed["devices"]]
        reasons += [q["problem"] for q in listed["plugins"] if q["problem"] and q["name"] == plugin]
        self.missing[plugin] = "no device: " + (reasons or ["the plugin offers none"])[0]
        record.update(status="skipped", why=self.missing[plugin])

    # ---- a stage
    def jobs(self, stage):
        for piece in stage.pieces:
            words = [""]
            if piece.each and not self.lacks(piece):
                words = self.machine.packed["ops"] if piece.each == "ops" else self.machine.packed["tests"].get(piece.each, [])
            for word in words:
                yield Job(stage, piece, word)

    def lacks(self, piece):
        """"" or why the piece cannot run here."""
        for need in piece.needs:
            if need not in self.facts:
                return self.missing.get(need, f"{need.replace('_', '-')} is not here")
        return ""

    def guarded(self, step, job, *more):
        """A fault of this program itself costs the piece alone."""
        try:
            return step(job, *more)
        except Exception as e:  # pylint: disable=broad-except
            self.tell({"stage": job.stage.name, "name": job.name, "status": "failed", "exit": -1, "why": f"gpu-check itself: {e!r}",
                       "text": traceback.format_exc()})
            return None

    def stage(self, stage, deadline):
        waiting, again, retries = list(self.jobs(stage)), [], RETRIES
        while waiting or self.running or again:
            for job in list(self.running):
                code = job.process.done()
                if code is None:
                    continue
                self.running.remove(job)
                record = self.guarded(self.finished, job, code)
                if record and record["status"] == "failed" and job.piece.again and retries:
                    retries -= 1
                    again.append(Job(stage, job.piece, job.word, record))
            if self.signals:
                raise Interrupted(self.signals[0])
            while len(self.running) < stage.at_once and (waiting or again):
                job = (waiting or again).pop(0)
                why = "" if job.of else self.lacks(job.piece)
                left = deadline - time.monotonic()
                if left < LEAST * self.scale:
                    why = why or "the stage's time is up"
                if why:
                    if not job.of:
                        self.skip(job, why)
                    continue
                self.guarded(self.start, job, left)
            time.sleep(0.01)
        self.compare(stage)

    def compare(self, stage):
        """Equal bits and close losses of pieces whose last one was in this stage."""
        for (kind, label), last in self.seen.items():
            if last is not stage:
                continue
            names = [(s.name, p.name) for s in self.stages for p in s.pieces if getattr(p, kind) == label]
            ran = [r for r in self.records if (r["stage"], r["name"]) in names and r["status"] == "ok" and isinstance(r.get("result"), dict)]
            ran.sort(key=lambda r: names.index((r["stage"], r["name"])))
            record = {"stage": stage.name, "name": f"{kind}-{label}", "status": "ok"}
            if len(ran) < 2:
                record.update(status="skipped", why="fewer than two of its runs ended well")
            else:
                why = (figures.same_bits if kind == "same" else figures.near_losses)(ran)
                if why:
                    record.update(status="failed", exit=1, why=why)
            self.tell(record)

    def all(self):
        """Every stage; a stage's time is its budget and what those before it left."""
        deadline = self.begun
        current = None
        try:
            for stage in self.stages:
                current = stage
                deadline += stage.budget * self.scale
                self.stage(stage, deadline)
                self.write()
                self.archive()
        except Interrupted as e:
            self.ended = f"ended by {e}"
            for job in self.running:
                job.process.end(self.ended)
                self.tell({"stage": job.stage.name, "name": job.name, "status": "skipped", "why": self.ended})
            done = {(r["stage"], r["name"]) for r in self.records}
            for stage in self.stages[self.stages.index(current):]:
                for job in self.jobs(stage):
                    if (stage.name, job.name) not in done:
                        self.records.append({"stage": stage.name, "name": job.name, "status": "skipped", "why": self.ended})
        self.write()
        self.archive()
        return self.code()


def find_archive():
    """The pack beside this program, as in build/gpu, or that of this source tree."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for path in (os.path.join(here, "pack.tar.xz"), os.path.join(here, "..", "build", "gpu", "pack.tar.xz")):
        if os.path.exists(path):
            return os.path.normpath(path)
    return ""


def main(part, out, scale):
    archive = find_archive()
    if not archive:
        print("gpu-check: there is no pack.tar.xz; scripts/gpu-check.sh pack makes it", file=sys.stderr)
        return 2

    signals = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: signals.append(signal.Signals(n).name))
    work = tempfile.mkdtemp(prefix="gpu-check-")
    out = os.path.abspath(out or os.path.dirname(archive) + "-out")
    try:
        run = Run(part, PARTS[part], Machine(archive, work), out, scale, signals)
        code = run.all()
        print("\n".join([""] + run.summary()))
        print(f"gpu-check: {out}/gpu-check-{part}.json and .tar.gz; exit code {code}", flush=True)
        return code
    finally:
        shutil.rmtree(work, ignore_errors=True)
