"""Writes static pages from reports of `tutti report-device`: an overview, and a page per device (scripts/site.sh --help)."""
import argparse
import pathlib
import shutil
import sys

import device_page
import overview
import reports

HERE = pathlib.Path(__file__).parent


def main():
    parser = argparse.ArgumentParser(prog="scripts/site.sh", description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, default=reports.ROOT / "build/agreement", help="the folder to write (default: build/agreement)")
    parser.add_argument("reports", nargs="*", type=pathlib.Path, help="files of `tutti report-device` (default: docs/results/devices/*.json)")
    options = parser.parse_args()
    files = options.reports or sorted((reports.ROOT / "docs/results/devices").glob("*.json"))
    try:
        devices = [device for file in files for device in reports.read(file)]
        if not devices:
            raise reports.Invalid("no report: docs/results/devices holds none; write one with `tutti report-device`")
    except reports.Invalid as e:
        print(f"site: {e}", file=sys.stderr)
        return 2
    options.output.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "style.css", options.output)
    (options.output / "index.html").write_text(overview.page(devices))
    for device in devices:
        (options.output / device.page).write_text(device_page.page(device))
    print(f"site: {options.output / 'index.html'}: {len(devices)} devices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
