"""Reports of `tutti report-device`, checked when they are read."""
import dataclasses
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEVELS = {"loads": "loads", "infers": "infers", "trains": "trains", "trains_everything": "trains everything", "exact": "exact"}
PLUGINS = ("cuda", "onednn", "cpu", "opencl", "vulkan")


class Invalid(Exception):
    """A file that is no report; the text names it and what is wrong."""


@dataclasses.dataclass
class Device:
    """A device of a report, with what the report says of its machine."""
    report: dict
    device: dict
    page: str

    def __getattr__(self, key):
        return self.device[key]

    @property
    def plugin(self):
        return self.device["id"].split(":")[0]

    def part(self, key):
        """The part's results; None where it did not run or did not finish."""
        part = self.device["parts"].get(key)
        return None if part is None or "error" in part else part


def read(path):
    """The devices of a report. Raises Invalid."""
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError) as e:
        raise Invalid(f"{path}: {e}") from e
    if not isinstance(report, dict) or report.get("tutti_device_report") != 1:
        raise Invalid(f"{path}: not a report of `tutti report-device` (\"tutti_device_report\" must be 1)")
    try:
        devices = []
        for device in report["devices"]:
            name = re.sub(r"[^a-z0-9]+", "-", f"{path.stem}-{device['id']}".lower())
            for key in ("name", "driver", "kind", "parts"):
                _ = device[key]
            _ = [device["levels"][level] for level in LEVELS], report["machine"]["cpu"], report["machine"]["system"]
            devices.append(Device(report, device, f"{name}.html"))
    except (KeyError, TypeError) as e:
        raise Invalid(f"{path}: the key {e} is missing; write the report again with `tutti report-device`") from e
    return devices
