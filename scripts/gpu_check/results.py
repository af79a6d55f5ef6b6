"""The two files of a run: a JSON document and an archive of what was printed, each under a bound, each whole at any time."""

import io
import json
import os
import re
import tarfile

LIMIT = 15 << 20  # bytes of a file
PRINTED = 1 << 20  # bytes of one output in the archive
TOLD = 6_000  # characters of one output in the document


def cut(text, most):
    """Head and tail of a text, or of bytes."""
    if len(text) <= most:
        return text
    note = f"\n… {len(text) - most} more …\n"
    return text[: most // 4] + (note.encode() if isinstance(text, bytes) else note) + text[-(most - most // 4) :]


def read(path, most=1 << 20):
    """Head and tail of a file, as bytes; b"" where there is none."""
    try:
        with open(path, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            if size <= most:
                return f.read()
            head = f.read(most // 4)
            f.seek(size - (most - most // 4))
            return head + f"\n… {size - most} more bytes …\n".encode() + f.read()
    except OSError:
        return b""


def text_of(path, most=1 << 20):
    return read(path, most).decode("utf-8", "replace")


def diagnostics(out, err):
    """What a failed process said that is worth reading: the failed tests of a gtest program, else the ends of both outputs."""
    if "[==========]" in out:
        tests = re.findall(r"\[ RUN      \].*?(?:\[       OK \]|\[  SKIPPED \]|\[  FAILED  \]|\Z)[^\n]*\n?", out, re.S)
        failed = [t for t in tests if "[       OK ]" not in t and "[  SKIPPED ]" not in t]
        out = "".join(failed) or out
    return "\n".join(part for part in (cut(out, TOLD), cut(err, TOLD)) if part.strip())


NO_REASON = re.compile(r"try: |\d+ of \d+ cases after|lockstep: step|\[")  # remedies and progress


def reason(out, err, document):
    """One line: why a process failed."""
    failures = document.get("failures") if isinstance(document, dict) else None
    if failures:
        return f"{len(failures)} cases, first {failures[0].get('case')}: {failures[0].get('why')}"[:400].replace("\n", " ")
    test = re.search(r": Failure\n(.*?)(?=\n\[|\n\n|\Z)", out, re.S)
    if test:
        return " ".join(test[1].split())[:400]
    lines = [
        line.strip() for text in (err, out) for line in text.splitlines() if line.strip() and not NO_REASON.match(line.strip())
    ]
    named = [line for line in lines if re.match(r"tutti: |cuda: |.*[Ee]rror", line)]
    return (named[0] if named else last_line(err) or last_line(out))[:400]


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line[:400] for line in reversed(lines) if not NO_REASON.match(line)), lines[-1][:400] if lines else "")


def write_whole(path, data):
    """Replaces the file in one step."""
    with open(path + ".part", "wb") as f:
        f.write(data)
    os.replace(path + ".part", path)


def document_bytes(document):
    """The document as JSON under the bound: where it is too long, its long texts are cut shorter."""
    most = TOLD
    while True:
        data = json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "replace")
        if len(data) <= LIMIT or most < 50:
            return data
        most //= 4
        document = shortened(document, most)


def shortened(value, most):
    if isinstance(value, dict):
        return {k: shortened(v, most) for k, v in value.items()}
    if isinstance(value, list):
        return [shortened(v, most) for v in value[: max(most, 10)]]
    return cut(value, most) if isinstance(value, str) else value


def archive_bytes(folder, summary):
    """The summary and all files of `folder`, cut where they are long, as .tar.gz under the bound."""
    most = PRINTED
    while True:
        to = io.BytesIO()
        with tarfile.open(fileobj=to, mode="w:gz", compresslevel=6) as tar:
            for name, data in [("summary.txt", summary.encode("utf-8", "replace"))] + [
                (os.path.join("logs", f), read(os.path.join(folder, f), most)) for f in sorted(os.listdir(folder)) if os.path.isfile(os.path.join(folder, f))
            ]:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        if to.tell() <= LIMIT or most < 50:
            return to.getvalue()
        most //= 4
