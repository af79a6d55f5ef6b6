"""`tutti report-device`: one file about a device, without names; a faulty device misses its levels."""
import getpass
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import unittest

import harness


class ReportDevice(harness.Case):
    def report(self, code, *args, **variables):
        path = self.folder / "report.json"
        result = harness.tutti("report-device", "--quick", "--output", path, *args, env=harness.environment(**variables))
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(path.read_text()), result.stderr

    def test_every_part_of_the_reference(self):
        found, said = self.report(0, "--device", "reference", "--parts", "conformance,parity,lockstep,states")
        self.assertEqual(found["tutti_device_report"], 1)
        [device] = found["devices"]
        self.assertEqual(device["levels"], {"loads": True, "infers": True, "trains": True, "trains_everything": True, "exact": None})
        self.assertIn("reference:0: loads yes, infers yes, trains yes, trains_everything yes, exact not run", said)
        cells = {op["op"]: op["cells"] for op in device["parts"]["parity"]["ops"]}
        self.assertIn({"dtype": "f32", "direction": "backward"}, [{k: c[k] for k in ("dtype", "direction")} for c in cells["matmul"]])
        self.assertEqual(sum(c["pass"] for op in cells.values() for c in op), device["parts"]["parity"]["pass"])
        self.assertEqual([m["model"] for m in device["parts"]["lockstep"]["models"]], ["cnn", "gpt", "mlp"])
        [run] = device["parts"]["states"]["runs"]
        self.assertEqual((run["state"], run["equal"]), (run["expected"], True))

    def test_the_states_are_those_of_the_docs(self):
        page = pathlib.Path(harness.__file__).parents[2] / "docs/EXACT.md"
        table = dict(re.findall(r"^\| (\w+) \| \d+ \| `([0-9a-f]{16})` \|$", page.read_text(), re.M))
        source = pathlib.Path(harness.__file__).parents[2] / "cli/device_report/parts.cpp"
        self.assertEqual(table, dict(re.findall(r'\{"(\w+)", \d+, "([0-9a-f]{16})"\}', source.read_text())))

    def faulty(self, fault):
        """A folder with the reference as the plugin `planted`, with this fault in its numerics."""
        plugins = self.folder / "secret-project" / "plugins"
        plugins.mkdir(parents=True, mode=0o700)
        shutil.copy(os.environ["PLANTED"], plugins / "planted.so")
        (plugins / "planted.so.txt").write_text(fault)
        (plugins / "planted.json").write_text(json.dumps(
            {"tutti_manifest": 1, "name": "planted", "version": "1.0", "abi": [1, 1], "kind": "software",
             "priority": 1, "library": "planted.so", "description": "with a fault"}))
        return plugins

    def test_a_fault_is_a_missed_level(self):
        plugins = self.faulty("gather")
        found, said = self.report(1, "--device", "planted", "--parts", "parity", TUTTI_PLUGIN_PATH=str(plugins))
        [device] = found["devices"]
        self.assertFalse(device["levels"]["infers"])
        self.assertIn("infers NO", said)
        [cell] = [c for op in device["parts"]["parity"]["ops"] for c in op["cells"] if op["op"] == "gather" and c["direction"] == "forward"
                  and c["dtype"] == "f32"]
        self.assertGreater(cell["fail"], 0)
        self.assertIn("tutti parity --device planted:0 --case gather:", cell["replay"])
        site = self.folder / "site"
        script = pathlib.Path(harness.__file__).parents[2] / "scripts/site.sh"
        subprocess.run([script, "--output", site, self.folder / "report.json"], check=True)
        self.assertIn(f'<code>{cell["replay"]}</code>', (site / "report-planted-0.html").read_text())
        self.assertRegex((site / "index.html").read_text(), r'<th>gather</th><td class="number no" title="\d+ fail')
        (self.folder / "none.json").write_text("{}")
        refused = subprocess.run([script, "--output", site, self.folder / "none.json"], capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("none.json: not a report of `tutti report-device`", refused.stderr)

    def test_no_names(self):
        home = self.folder / "home-of-someone"
        home.mkdir(mode=0o700)
        plugins = self.faulty("decline")
        found, _ = self.report(1, "--device", "planted", "--parts", "conformance", TUTTI_PLUGIN_PATH=str(plugins), HOME=str(home))
        text = json.dumps(found)
        for name in [str(self.folder), "secret-project", "home-of-someone", socket.gethostname(), *({getpass.getuser()} - {"root"})]:
            self.assertNotIn(name, text)

    def test_bad_options(self):
        self.fails(2, ["--parts pariti: must be of: conformance, parity, lockstep"], "report-device", "--parts", "pariti")
        self.fails(2, ["--timeout"], "report-device", "--timeout", "0")
        self.fails(2, ["--output", "no-such-folder"], "report-device", "--output", str(self.folder / "no-such-folder/a.json"))


if __name__ == "__main__":
    unittest.main()
