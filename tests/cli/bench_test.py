"""Benchmarks: what is measured and said, with devices and with peers; the page; what is refused."""
import csv
import json
import os
import pathlib
import resource
import signal
import stat
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import harness
from harness import BINARY, environment, tutti

DEVICES = [d for d in ["onednn:0", "reference:0"] if d in harness.usable_devices()]
QUICK = ["bench", "--quick", "--device", ",".join(DEVICES)]
MEASURED = {"kind", "case", "detail", "precision", "lane", "status", "reason", "ms", "repetitions", "runs", "flops",
            "bytes", "gflops", "gb_per_s", "share_of_peaks", "bound", "first_ms", "planned_bytes", "peak_bytes", "peer",
            "ratio_to_peer"}
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = BINARY.parent.parent / "share/tutti/bench"

FAKE_PEER = """#!{python}
import json, sys
print(json.dumps({{"engine": "Fake 1", "devices": [{{"kind": "cpu", "name": "made up"}}]}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "open":
        if request["case"].get("op") == "{declines}":
            answer = {{"error": "not that one", "declined": True}}
        else:
            answer = {{"number": 1, "first_s": 0.5}}
    elif request["do"] == "run":
        if "{dies}":
            sys.exit(3)
        answer = {{"seconds": request["runs"] * 0.001}}
    else:
        answer = {{}}
    print(json.dumps(answer), flush=True)
"""


class Bench(harness.Case):
    def fake_peer(self, declines="", dies=""):
        path = self.folder / "peer"
        path.write_text(FAKE_PEER.format(python=sys.executable, declines=declines, dies=dies))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def test_json(self):
        document = self.json(*QUICK, "--models", "mlp,cnn", "--ops", "matmul,add", "--batch", "8")
        self.assertEqual((document["tutti_bench"], document["settings"]["quick"]), (1, True))
        self.assertEqual(set(document["machine"]), {"cpu", "cores", "memory_bytes", "system"})
        self.assertEqual([lane["id"] for lane in document["lanes"]], DEVICES)
        for lane in document["lanes"]:
            self.assertEqual([c["bytes"] for c in lane["peaks"]["copies"]], [3 * 4 * 64 ** 2, 3 * 4 * 256 ** 2])
            self.assertTrue(all(c["gb_per_s"] > 0 for c in lane["peaks"]["copies"]))
            self.assertEqual([p["precision"] for p in lane["peaks"]["products"]], ["f32"])
            self.assertGreater(lane["peaks"]["products"][0]["gflops"], 0)
        self.assertEqual([(r["case"], r["lane"]) for r in document["results"]],
                         [(c, d) for c in ("mlp", "cnn", "matmul", "add") for d in DEVICES])
        for r in document["results"]:
            self.assertEqual(r["status"], "measured", r)
            self.assertEqual(set(r) - {"batch", "samples_per_s"}, MEASURED)
            self.assertEqual("batch" in r, r["kind"] == "model")
            ms = r["ms"]
            self.assertTrue(0 < ms["least"] <= ms["q1"] <= ms["median"] <= ms["q3"] <= ms["most"], ms)
            self.assertGreaterEqual(r["runs"], r["repetitions"])
            self.assertGreaterEqual(r["repetitions"], 1)
            self.assertEqual(r["planned_bytes"], r["peak_bytes"], r)
            self.assertGreater(r["share_of_peaks"], 0)
            self.assertIsNone(r["ratio_to_peer"])
        # 64-32-10: forward and the weights' gradients over both layers, the inputs' gradient over the second
        products = 2 * 8 * ((64 * 32 + 32 * 10) * 2 + 32 * 10)
        self.assertEqual({r["flops"] for r in document["results"] if r["case"] == "mlp"}, {products})
        self.assertEqual({(r["flops"], r["bytes"]) for r in document["results"] if r["case"] == "matmul"},
                         {(2 * 64 ** 3, 3 * 4 * 64 ** 2)})

    def page_of(self, path):
        text = path.read_text()
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        for outside in ("http:", "https:", "src=", "url(", "@import", "<script", "<link"):
            self.assertNotIn(outside, text)
        return text, xml.etree.ElementTree.fromstring(text)

    def test_files(self):
        page, table, document = self.folder / "b.html", self.folder / "b.csv", self.folder / "b.json"
        result = self.done(*QUICK, "--models", "mlp", "--ops", "matmul", "--report", page, "--csv", table, "--json",
                           document)
        for word in ("peaks", "training step of mlp 64-32-10, batch 16, f32", "matmul 64x64x64, f32", *DEVICES):
            self.assertIn(word, result.stdout)
        self.assertIn("measuring", result.stderr)
        found = json.loads(document.read_text())["results"]
        with table.open() as lines:
            rows = list(csv.DictReader(lines))
        self.assertEqual([(r["case"], r["lane"]) for r in rows], [(r["case"], r["lane"]) for r in found])
        for row, r in zip(rows, found):
            self.assertAlmostEqual(float(row["median_ms"]), r["ms"]["median"], delta=1e-9)
            self.assertEqual(int(row["runs"]), r["runs"])
        text, tree = self.page_of(page)
        self.assertEqual(len(tree.findall(".//svg")), len(DEVICES), "a roofline per device")
        for svg in tree.findall(".//svg"):
            self.assertTrue(svg.get("aria-label"))
        self.assertEqual(len(tree.findall(".//table[@class='bars']")), 2)
        self.assertNotIn("History", text)

    def test_history(self):
        runs = self.folder / "runs"
        runs.mkdir()
        args = [*QUICK, "--models", "mlp"]
        self.done(*args, "--json", runs / "new.json")
        old = json.loads((runs / "new.json").read_text())
        for name, changes in {"old": {"date": "2020-01-01T00:00:00Z"},
                              "elsewhere": {"date": "2020-01-02T00:00:00Z",
                                            "machine": {**old["machine"], "cpu": "another"}}}.items():
            (runs / f"{name}.json").write_text(json.dumps({**old, **changes}))
        (runs / "broken.json").write_text("{")
        page = self.folder / "b.html"
        result = self.done(*args, "--history", runs, "--report", page)
        self.assertIn("broken.json: not a result of", result.stderr)
        text, tree = self.page_of(page)
        self.assertIn("1 runs of other machines", text)
        self.assertIn("2020-01-01", text)
        self.assertNotIn("2020-01-02", text)
        lines = [p for p in tree.findall(".//polyline") if p.get("class").startswith("line ")]
        self.assertEqual([len(p.get("points").split()) for p in lines], [3] * len(DEVICES), "three runs of each device")

    def test_precisions_stay_apart(self):
        document = self.json(*QUICK, "--ops", "matmul", "--precision", "f32,bf16", "--peer", "torch", "--python",
                             self.fake_peer())
        seen = [(r["precision"], r["lane"]) for r in document["results"]]
        self.assertEqual(seen, [(p, lane) for p in ("f32", "bf16") for lane in (*DEVICES, "torch:cpu")])
        for r in document["results"]:
            if r["ratio_to_peer"] is None:
                continue
            peer = next(p for p in document["results"]
                        if (p["lane"], p["precision"]) == (r["peer"], r["precision"]))
            self.assertAlmostEqual(r["ratio_to_peer"], r["ms"]["median"] / peer["ms"]["median"])

    def test_declined_is_shown(self):
        result = tutti(*QUICK, "--ops", "matmul", "--precision", "tf32", "--json")
        self.assertEqual(result.returncode, 1, "nothing was measured")
        for r in json.loads(result.stdout)["results"]:
            self.assertEqual(r["status"], "declined")
            self.assertIn("tf32", r["reason"])

    def test_peer(self):
        args = [*QUICK, "--models", "mlp", "--ops", "add,matmul", "--peer", "torch", "--python"]
        document = self.json(*args, self.fake_peer(declines="add"))
        self.assertEqual(document["lanes"][-1], {"id": "torch:cpu", "peer": True, "name": "made up", "driver": "Fake 1",
                                                 "kind": "cpu"})
        mine = {(r["case"], r["lane"]): r for r in document["results"]}
        self.assertEqual(mine["add", "torch:cpu"]["status"], "declined")
        self.assertEqual(mine["add", "torch:cpu"]["reason"], "not that one")
        self.assertIsNone(mine["add", DEVICES[0]]["ratio_to_peer"])
        model = mine["mlp", "torch:cpu"]
        self.assertAlmostEqual(model["ms"]["median"], 1)
        self.assertAlmostEqual(model["first_ms"], 500)
        self.assertEqual(model["flops"], mine["mlp", DEVICES[0]]["flops"])
        for device in DEVICES:
            self.assertAlmostEqual(mine["mlp", device]["ratio_to_peer"], mine["mlp", device]["ms"]["median"])

    def test_a_peer_that_dies_takes_nothing_along(self):
        result = tutti(*QUICK, "--ops", "matmul,exp", "--peer", "torch", "--python", self.fake_peer(dies="yes"),
                       "--json")
        self.assertEqual(result.returncode, 1)
        for r in json.loads(result.stdout)["results"]:
            self.assertEqual(r["status"], "failed" if r["lane"] == "torch:cpu" else "measured")
            if r["status"] == "failed":
                self.assertIn("it has ended", r["reason"])

    def test_a_peer_that_is_not_there(self):
        result = self.done(*QUICK, "--ops", "add", "--peer", "torch", "--python", self.folder / "none")
        self.assertIn("cannot run", result.stderr)
        self.assertIn("--python or TUTTI_PYTHON", result.stdout)
        (self.folder / "torch.py").write_text("raise ImportError('no such thing here')")
        env = environment(PYTHONPATH=str(self.folder), TUTTI_PYTHON=sys.executable)
        result = self.done(*QUICK, "--ops", "add", "--peer", "torch", env=env)
        self.assertIn("not installed: no such thing here", result.stderr)
        self.assertIn("continuing without it", result.stderr)

    def test_the_real_peer_where_it_is_installed(self):
        if subprocess.run([sys.executable, "-c", "import torch, numpy"], capture_output=True, check=False).returncode:
            self.skipTest("this Python has no PyTorch")
        document = self.json(*QUICK, "--models", "mlp,cnn", "--ops", "all", "--peer", "torch", "--python", sys.executable)
        for r in document["results"]:
            self.assertEqual(r["status"], "measured", r)

    def test_list(self):
        text = self.done("bench", "--list").stdout
        for word in ("mlp", "cnn", "matmul", "conv2d_dw", "M x N x K"):
            self.assertIn(word, text)
        document = self.json("bench", "--list")
        self.assertLessEqual({"cnn", "gpt", "lstm", "mlp", "orientation", "resnet18"}, set(document["models"]))
        self.assertEqual(document["precisions"], ["f32", "tf32", "bf16", "f16"])
        self.assertIn({"op": "matmul", "shape": "M x N x K", "usual": "512x512x512"}, document["ops"])

    def test_a_full_disk_takes_no_figures_along(self):
        """The run is over when its files are written: what they cannot hold is still shown."""
        args = [*QUICK, "--ops", "add", "--report", self.folder / "b.html", "--csv", self.folder / "b.csv"]

        def full():  # the page does not fit, the other file does
            resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        result = tutti(*args, preexec_fn=full)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("add 64x64, f32", result.stdout)
        self.assertRegex(result.stderr, r"tutti: --report .*b\.html: cannot write")
        result = tutti(*args, "--json", preexec_fn=full)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(json.loads(result.stdout)["tutti_bench"], 1)
        self.assertEqual(os.listdir(self.folder), ["b.csv"])

    def test_no_peer_no_column(self):
        args = [*QUICK, "--ops", "add", "--report", self.folder / "b.html"]
        for more, columns in ([], 10), (["--peer", "torch", "--python", self.fake_peer()], 11):
            result = self.done(*args, *more)
            row = next(line for line in result.stdout.split("add 64x64, f32")[1].splitlines() if DEVICES[0] in line)
            self.assertEqual(row.endswith(" -"), False, row)
            self.assertEqual("/peer" in result.stdout, columns == 11)
            tree = self.page_of(self.folder / "b.html")[1]
            table = next(t for t in tree.findall(".//table") if t.get("class") == "all")
            self.assertEqual(len(table.findall("thead/tr/th")), columns)
            for line in table.findall("tbody/tr"):
                self.assertEqual(sum(int(cell.get("colspan", "1")) for cell in line), columns)

    def test_bad_input(self):
        self.fails(2, ["unknown model 'rnn'", "cnn, ", "lstm, mlp"], "bench", "--models", "mlp,rnn")
        self.fails(2, ["unknown op 'nop'", "matmul", "gather"], "bench", "--ops", "nop")
        self.fails(2, ["M x N x K", "matmul:512x512x512"], "bench", "--ops", "matmul:2x2")
        self.fails(2, ["f8", "bf16"], "bench", "--precision", "f8")
        self.fails(2, ["unknown device 'nothing:0'"], "bench", "--device", "nothing:0")
        self.fails(2, ["unknown peer 'keras'", "torch, jax or tinygrad"], "bench", "--peer", "keras")
        self.fails(2, ["--repetitions 0"], "bench", "--repetitions", "0")
        self.fails(2, ["--time 0"], "bench", "--time", "0")
        self.fails(2, ["--layers 64"], "bench", "--models", "mlp", "--layers", "64")
        self.fails(2, ["--batch 0"], "bench", "--batch", "0")
        self.fails(2, ["no such folder"], "bench", "--report", self.folder / "b.html", "--history", self.folder / "no")
        self.fails(2, ["does not exist"], "bench", "--report", self.folder / "no/where.html")
        self.fails(2, ["is a folder"], "bench", "--csv", self.folder)
        self.fails(2, ["--csv /dev/full", "not a regular file"], "bench", "--csv", "/dev/full")
        self.fails(2, ["--json and --csv both write to"], "bench", "--json", self.folder / "x", "--csv",
                   f"{self.folder}/./x")
        twice = tutti("bench", "--json", "-", "--csv", "-")
        self.assertIn("--json and --csv both write to stdout", json.loads(twice.stdout)["error"])
        self.fails(2, ["--threads -1"], "bench", "--ops", "add", "--threads", "-1")
        if "onednn:0" in DEVICES:
            refused = self.fails(2, ["100000"], "bench", "--ops", "add", "--threads", "100000", "--device", "onednn:0")
            self.assertNotIn("measuring", refused.stderr)
        self.fails(2, ["unknown model 'rnn'"], "bench", "--models", "rnn", "--json", self.folder / "b.json")
        for spelling in (["--json"], ["--json", "-"], ["--json=-"]):  # the document's place is the errors' place
            refused = tutti("bench", "--models", "rnn", *spelling, cwd=self.folder)
            self.assertIn("unknown model 'rnn'", json.loads(refused.stdout)["error"])
        self.assertEqual(os.listdir(self.folder), [])

    def test_scripts_lie_where_they_are_sought(self):
        for name in ("peer_rounds", "rounds_torch", "rounds_jax", "rounds_tinygrad", "zoo_tinygrad", "peer_torch", "zoo/resnet18"):
            self.assertTrue((SCRIPTS / f"{name}.py").is_file(), name)


class Tables(harness.Case):
    """The programs behind scripts/bench-load.sh, bench-shapes.sh and bench-modules.sh."""

    def script(self, name, *words):
        clean = {k: v for k, v in environment().items() if k != "TUTTI_PYTHON"}
        return subprocess.run([sys.executable, str(ROOT / "bench" / name), *map(str, words)], capture_output=True, text=True, cwd=self.folder,
                              env=clean)

    def test_wrong_options(self):
        for name, option, value, known in [("load.py", "--cases", "mlp-785", "mlp-784"), ("load.py", "--loads", "none", "two at once"),
                                           ("load.py", "--rounds", "0", "above 0"), ("load.py", "--tutti", "no/such", "does not exist"),
                                           ("load.py", "--from", "no/such", "No such file"), ("peers/shapes.py", "--precision", "f64", "f32, bf16"),
                                           ("peers/shapes.py", "--threads", "9999", "may use"), ("peers/shapes.py", "--from", "no/such", "No such"),
                                           ("peers/modules.py", "--modules", "resnet51", "resnet50"), ("peers/modules.py", "--time", "0", "above 0")]:
            done = self.script(name, option, value)
            self.assertEqual(done.returncode, 2, f"{name} {option} {value}: {done.stderr}")
            self.assertIn(known, done.stderr)
            self.assertIn(value, done.stderr)

    def test_scripts_explain_themselves(self):
        for name in ("load", "modules", "shapes", "peers"):
            done = subprocess.run([str(ROOT / f"scripts/bench-{name}.sh"), "--help"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("--json", done.stdout)

    @unittest.skipUnless("onednn:0" in DEVICES, "trains on onednn")
    def test_load(self):
        """A few steps alone and beside another process; the page comes from the figures."""
        done = self.script("load.py", "--anyway", "--cases", "mlp-784", "--loads", "alone,1 spinner", "--rounds", "1", "--scale", "0.01",
                           "--tutti", BINARY, "--json", "load.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((self.folder / "load.json").read_text())
        self.assertEqual(set(report["machine"]), {"cpu", "features", "cpus", "idle"})
        self.assertEqual({load: sorted(sides) for load, sides in report["ms"]["mlp-784"].items()},
                         {load: ["tutti", "tutti, passive"] for load in ("alone", "1 spinner")})
        self.assertTrue(all(ms > 0 for sides in report["ms"]["mlp-784"].values() for times in sides.values() for ms in times))
        self.assertIn("| 1 spinner |", done.stdout)
        self.assertEqual(self.script("load.py", "--from", "load.json").stdout, done.stdout)

    def test_shapes(self):
        """Forward, gradient of the input and gradient of the weight; the table from a file."""
        done = self.script("peers/shapes.py", "--models", "mlp", "--list", "--tutti", BINARY, "--device", DEVICES[0])
        self.assertEqual(done.returncode, 0, done.stderr)
        for shape in ("1x64x784x512 a b^T", "1x64x256x512 a b", "1x512x64x784 a^T b"):
            self.assertIn(f"{shape}: mlp:default\n", done.stdout)
        rows = [{"precision": "f32", "shape": [1, 2, 3, 4, 0, 0], "models": ["mlp"], "rates": {"as stored": 100, "own": 110}},
                {"precision": "f32", "shape": [5, 2, 3, 4, 0, 0], "models": ["mlp"], "rates": {"as stored": 100, "own": 90}}]
        (self.folder / "s.json").write_text(json.dumps({"date": "today", "threads": 1, "rows": rows, "machine": {
            "cpu": "a CPU", "features": ["avx2"], "cpus": 2}}))
        text = self.script("peers/shapes.py", "--from", "s.json").stdout
        self.assertIn("a CPU (avx2), 2 CPUs", text)
        self.assertIn("| 5 x 2x3x4 | a b | 100 | 0.90 | 1 |", text)
        self.assertIn("own 1.00 (1 of 2 above 1.05)", text)


if __name__ == "__main__":
    unittest.main()
