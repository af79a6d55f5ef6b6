"""Adds to a wheel what belongs to its third-party software, from the table of THIRD_PARTY.md: the licences' texts, where the system
keeps them as Debian does, and a list of components in CycloneDX's format (PEP 770): third_party.py METADATA_FOLDER VERSION ONEDNN_VERSION
SYSROOT SYSTEM (the third and fourth empty: a wheel without oneDNN; a wheel for this machine, with its libraries). SYSTEM: Linux or Windows."""
import importlib.metadata
import json
import pathlib
import shutil
import subprocess
import sys
import urllib.parse

TABLE = pathlib.Path(__file__).with_name("THIRD_PARTY.md")


def rows():
    """Name, what the row's wheels have ("with" or "without" oneDNN, "for" Windows; "": no matter), SPDX licence, Debian package or ""."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")][2:]
    for line in lines:
        name, licence, _, package = (cell.strip() for cell in line.strip().strip("|").split("|"))
        name, _, wheels = name.partition(", in wheels ")
        yield name.split(" (")[0], wheels.partition(" ")[0], licence, package


def debian_version(package, sysroot):
    """The version of a Debian package that is installed here or unpacked in the sysroot, or "" where there is none."""
    try:
        asked = ["dpkg-query", f"--admindir={sysroot}/var/lib/dpkg", "-W", "-f=${db:Status-Status} ${Version}", package]
        status, _, version = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.partition(" ")
    except OSError:
        return ""
    return version if status == "installed" else ""


def component(name, wheels, licence, package, onednn, sysroot, system):
    """A component of the list, or None where the wheel does not have it."""
    if name == "oneDNN":
        version = onednn
    elif name.startswith("nanobind"):
        version = importlib.metadata.version("nanobind")
    else:
        version = debian_version(package, sysroot)
        if not version or (wheels and wheels not in ("with" if onednn else "without", "for" if system == "Windows" else "")):
            return None
    made = {"type": "library", "name": name, "version": version, "licenses": [{"expression": licence}]}
    if package:
        made["purl"] = f"pkg:deb/debian/{package}@{urllib.parse.quote(version)}"
    return made if version else None


def main(metadata, tutti, onednn, sysroot, system):
    metadata = pathlib.Path(metadata)
    texts, lists = metadata / "licenses/third_party", metadata / "sboms"
    texts.mkdir(parents=True, exist_ok=True)
    lists.mkdir(parents=True, exist_ok=True)
    found = []
    for name, wheels, licence, package in rows():
        if made := component(name, wheels, licence, package, onednn, sysroot, system):
            found.append(made)
            text = pathlib.Path(f"{sysroot}/usr/share/doc", package, "copyright")
            if package and text.exists():
                shutil.copyfile(text, texts / f"{package}.txt")
    about = {"type": "library", "name": "tuttiml", "version": tutti, "licenses": [{"expression": "Apache-2.0"}],
             "purl": f"pkg:pypi/tuttiml@{tutti}"}
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": about}, "components": found}
    (lists / "tuttiml.cdx.json").write_text(json.dumps(bom, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
