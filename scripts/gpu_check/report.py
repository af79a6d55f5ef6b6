"""What a run has found so far, on the screen and in its two files."""

import datetime
import os
import time

import figures
import results


class Report:
    """The records of one part. The document is replaced in one step, so that it is whole at any time."""

    def __init__(self, part, machine, logs, out):
        self.part, self.machine, self.logs, self.out = part, machine, logs, out
        self.begun, self.written = time.monotonic(), 0.0
        self.date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        self.records, self.gpus, self.ended = [], [], ""
        os.makedirs(logs, exist_ok=True)
        os.makedirs(out, exist_ok=True)

    def tell(self, record):
        self.records.append(record)
        why = record.get("why", "")
        state = f"FAILED ({record.get('exit')})" if record["status"] == "failed" else record["status"]
        line = f"{record['stage']:<11} {record['name']:<44} {state:<11} {record.get('seconds', 0):5.1f} s"
        print(f"{line}  {why}".rstrip(), flush=True)
        if time.monotonic() - self.written > 1:
            self.write()

    def count(self, status):
        return sum(r["status"] == status for r in self.records)

    def code(self):
        """The exit code."""
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
        counts = ", ".join(f"{self.count(status)} {status}" for status in ("ok", "failed", "skipped"))
        seconds = time.monotonic() - self.begun
        return lines + [f"gpu-check {self.part}: {counts}, {seconds:.0f} s; GPUs: {', '.join(self.gpus) or 'none'}"]

    def path(self, ending):
        return os.path.join(self.out, f"gpu-check-{self.part}.{ending}")

    def write(self):
        document = {
            "part": self.part,
            "date": self.date,
            "exit": self.code(),
            "ended": self.ended,
            "summary": self.summary(),
            "machine": self.machine.described(),
            "pieces": self.records,
        }
        results.write_whole(self.path("json"), results.document_bytes(document))
        self.written = time.monotonic()

    def archive(self):
        results.write_whole(self.path("tar.gz"), results.archive_bytes(self.logs, "\n".join(self.summary()) + "\n"))
