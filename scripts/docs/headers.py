#!/usr/bin/env python3
"""Copies the public C++ headers, those that cmake/TuttiInstall.cmake installs, into a folder, for Doxygen: headers.py FOLDER."""
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def public_headers():
    """Paths of the installed headers, relative to the root."""
    text = (ROOT / "cmake/TuttiInstall.cmake").read_text(encoding="utf-8")
    engine = re.search(r"set\(engine_headers(.*?)\)", text, re.S)[1].split()
    patterns = re.search(r"file\(GLOB_RECURSE sdk_headers RELATIVE \S+ (.*?)\)", text, re.S)[1].split()
    folders = re.findall(r"install\(DIRECTORY (\w+/\w+) .*FILES_MATCHING", text)
    found = {ROOT / name for name in engine}
    for pattern in patterns:
        found.update((ROOT / pattern).parent.rglob(pathlib.Path(pattern).name))
    for folder in [*folders, "include"]:
        found.update((ROOT / folder).rglob("*.h"))
    return sorted(path.relative_to(ROOT) for path in found)


def main(out):
    out = pathlib.Path(out)
    shutil.rmtree(out, ignore_errors=True)
    for path in public_headers():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, out / path)


if __name__ == "__main__":
    main(sys.argv[1])
