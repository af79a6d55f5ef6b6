"""Runs the pieces of a part, each for its time, and keeps what they said."""

import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback

import figures
import judge
import results
from machine import Machine
from process import Process
from report import Report

RETRIES = 4  # of a stage
LEAST = 2  # seconds that are worth a start
LOGS = {
    "CUBLASLT_LOG_LEVEL": "5",
    "CUBLASLT_LOG_FILE": "{log}.cublaslt.%i",
    "CUDNN_LOGLEVEL_DBG": "3",
    "CUDNN_LOGDEST_DBG": "{log}.cudnn.%i",
    "TUTTI_TRACE": "dispatch,kernels",
    "CUDA_LAUNCH_BLOCKING": "1",
}
DEBUGGED = ["-batch", "-ex", "set confirm off", "-ex", "run", "-ex", "thread apply all bt 30", "--args"]


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
    """A part on a machine: fills a report."""

    def __init__(self, part, stages, machine, out, scale=1.0, signals=()):
        self.stages, self.machine, self.scale = stages, machine, scale
        self.signals = signals  # those that asked for an end
        self.facts, self.missing = machine.facts(), {}
        self.logs = self.facts["logs"] = os.path.join(machine.work, "logs")
        self.report = Report(part, machine, self.logs, out)
        self.running = []
        self.last = {}  # labels of `same` and `near` → their last stage
        for stage in stages:
            for piece in stage.pieces:
                self.last.update({(kind, getattr(piece, kind)): stage for kind in ("same", "near") if getattr(piece, kind)})

    def skip(self, job, why):
        if job.piece.fact:
            self.missing[job.piece.env["TUTTI_PLUGINS"] if job.piece.fact == "devices" else job.piece.fact] = why
        self.report.tell({"stage": job.stage.name, "name": job.name, "status": "skipped", "why": why})

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
        command = [self.filled(word, job, limit) for word in shlex.split(job.piece.command)]
        if job.of and job.of["exit"] < 0 and "debugger" in self.facts:  # it crashed: where, and does it with an empty cache?
            env["TUTTI_CACHE"] = log + ".cache"
            command = [self.facts["debugger"], *DEBUGGED, *command]
        job.command = " ".join([f"{k}={env[k]}" for k in job.piece.env] + [shlex.quote(word) for word in command])
        try:
            job.process = Process(command, env, log + ".out", log + ".err", limit, self.machine.work)
        except OSError as e:
            if job.piece.optional:
                return self.skip(job, f"{command[0]}: {e.strerror}")
            return self.report.tell(
                {"stage": job.stage.name, "name": job.name, "status": "failed", "exit": 127, "why": f"{command[0]}: {e.strerror}"}
            )
        self.running.append(job)
        return None

    def finished(self, job, code):
        """Judges a process that has ended."""
        if job.of is None:
            record = judge.judged(job, code)
            if job.piece.fact:
                self.learn(job.piece, record)
            self.report.tell(record)
            return record
        p = job.process  # the second start of a failed piece
        job.of["again"] = {
            "exit": code,
            "seconds": round(p.seconds(), 1),
            "why": p.why,
            "logs": self.library_logs(job),
            "text": results.diagnostics(results.text_of(p.out), results.text_of(p.err)),
        }
        print(f"{job.stage.name:<11} {job.name:<44} again: exit {code}", flush=True)
        return None

    def library_logs(self, job):
        prefix = job.file_name() + ".cu"
        return {
            f: results.cut(results.text_of(os.path.join(self.logs, f)), 4000)
            for f in sorted(os.listdir(self.logs))
            if f.startswith(prefix)
        }

    def learn(self, piece, record):
        """What later pieces need to know."""
        word, found, why = judge.learned(piece, record)
        if found:
            self.facts[word] = found
        else:
            self.missing[word] = why
        if found and piece.fact == "devices":
            self.report.gpus.append(found)

    # ---- a stage
    def jobs(self, stage):
        for piece in stage.pieces:
            words = [""]
            if piece.each and not self.lacks(piece):
                packed = self.machine.packed
                words = packed.get(piece.each) or packed["tests"].get(piece.each, [])
            for word in words:
                yield Job(stage, piece, word)

    def lacks(self, piece):
        """ "" or why the piece cannot run here."""
        for need in piece.needs:
            if need not in self.facts:
                return self.missing.get(need, f"{need.replace('_', '-')} is not here")
        return ""

    def guarded(self, step, job, *more):
        """A fault of this program itself costs the piece alone."""
        try:
            return step(job, *more)
        except Exception as e:  # pylint: disable=broad-except
            self.report.tell(
                {
                    "stage": job.stage.name,
                    "name": job.name,
                    "status": "failed",
                    "exit": -1,
                    "why": f"gpu-check itself: {e!r}",
                    "text": traceback.format_exc(),
                }
            )
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
            while len(self.running) < min(stage.at_once, max(2, os.cpu_count() or 2)) and (waiting or again):
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
        """Equal bits and close losses of pieces whose last one was in this stage; those with `each`, word by word."""
        for (kind, label), last in self.last.items():
            if last is not stage:
                continue
            names = [(s.name, p.name) for s in self.stages for p in s.pieces if getattr(p, kind) == label]
            by_word = {}
            for r in self.report.records:
                name, _, word = r["name"].partition("/")
                if (r["stage"], name) in names:
                    by_word.setdefault(word, []).append(r)
            for word, records in (by_word or {"": []}).items():
                ran = [r for r in records if r["status"] == "ok" and isinstance(r.get("result"), dict)]
                ran.sort(key=lambda r: names.index((r["stage"], r["name"].partition("/")[0])))
                self.compared(stage, f"{kind}-{label}" + (f"/{word}" if word else ""), kind, ran)

    def compared(self, stage, name, kind, ran):
        record = {"stage": stage.name, "name": name, "status": "ok"}
        if len(ran) < 2:
            record.update(status="skipped", why="fewer than two of its runs ended well")
        else:
            why = (figures.same_bits if kind == "same" else figures.near_losses)(ran)
            if why:
                record.update(status="failed", exit=1, why=why)
        self.report.tell(record)

    def all(self):
        """Every stage; a stage's time is its budget and what those before it left."""
        deadline = self.report.begun
        current = None
        try:
            for stage in self.stages:
                current = stage
                deadline += stage.budget * self.scale
                self.stage(stage, deadline)
                self.report.write()
                self.report.archive()
        except Interrupted as e:
            self.report.ended = f"ended by {e}"
            for job in self.running:
                job.process.end(self.report.ended)
                self.report.tell({"stage": job.stage.name, "name": job.name, "status": "skipped", "why": self.report.ended})
            done = {(r["stage"], r["name"]) for r in self.report.records}
            for stage in self.stages[self.stages.index(current) :]:
                for job in self.jobs(stage):
                    if (stage.name, job.name) not in done:
                        self.report.records.append(
                            {"stage": stage.name, "name": job.name, "status": "skipped", "why": self.report.ended}
                        )
        self.report.write()
        self.report.archive()
        return self.report.code()


def find_archive():
    """The pack beside this program, as in build/gpu, or that of this source tree."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for path in (os.path.join(here, "pack.tar.xz"), os.path.join(here, "..", "build", "gpu", "pack.tar.xz")):
        if os.path.exists(path):
            return os.path.normpath(path)
    return ""


def main(part, stages, out, scale):
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
        try:
            run = Run(part, stages, Machine(archive, work), out, scale, signals)
        except Exception as e:  # pylint: disable=broad-except
            print(f"gpu-check: {archive} cannot be unpacked, or {out} not be made: {e!r}", file=sys.stderr)
            return 2
        code = run.all()
        print("\n".join([""] + run.report.summary()))
        print(f"gpu-check: {out}/gpu-check-{part}.json and .tar.gz; exit code {code}", flush=True)
        return code
    finally:
        shutil.rmtree(work, ignore_errors=True)
