"""tutti conformance: on this project's own plugins, and as a command."""
import json
import os
import pathlib
import shutil
import sys
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli"))
import harness
from harness import tutti

MOCK = pathlib.Path(os.environ["MOCK"])
PLUGINS = harness.BINARY.parent.parent / "lib/tutti/plugins"
# What a device that compiles kernels is asked for unless TUTTI_TEST_ALL is set.
LIGHT = "negotiation.*,init.*,open.*,arguments.*,programs.*,growth.*,run.*,memory.*,threads.*,device.*,op.add,op.matmul,op.adam," \
        "model.memory_mlp,model.memory_cnn,model.memory_gpt,model.memory_lstm,model.memory_resnet18"


class Conformance(harness.Case):
    def holds(self, plugin):
        library = PLUGINS / f"libtutti_{plugin}.so"
        if not library.exists():
            self.skip_without(plugin, f"the {plugin} plugin is off")
        compiles = plugin not in ("reference", "onednn", "cpu")
        light = ["--only", LIGHT] if compiles and "TUTTI_TEST_ALL" not in os.environ else []
        result = tutti("conformance", library, "--json", "-", "--timeout", "600", *light)  # a slow machine is no fault
        document = json.loads(result.stdout)
        wrong = [c for c in document["checks"] if (c["outcome"] == "fail" and c["must"]) or (c["outcome"] == "unsupported" and not c["no_device"])]
        self.assertEqual(wrong, [])
        self.assertEqual(result.returncode, 3 if document["incomplete"] else 0, result.stderr)
        if document["incomplete"]:
            self.assertIn("INCOMPLETE", result.stderr)
            self.skip_without(plugin, f"{plugin}: no device; {document['pass']} checks that need none pass")
        return document["checks"]

    def test_reference(self):
        self.holds("reference")

    def test_onednn(self):
        checks = self.holds("onednn")
        self.assertEqual([c["id"] for c in checks if c["outcome"] == "fail"], ["product.denormals"])  # flushed on purpose

    def test_cpu(self):
        checks = self.holds("cpu")
        self.assertEqual([c["id"] for c in checks if c["outcome"] == "fail"], ["product.denormals"])  # flushed on purpose

    def test_opencl(self):
        self.holds("opencl")

    def test_vulkan(self):
        self.holds("vulkan")

    def test_cuda(self):
        self.holds("cuda")

    def plugin(self, **changes):
        """A folder with the mock and its manifest, changed."""
        folder = self.folder / "plugins"
        folder.mkdir(mode=0o700)
        shutil.copy(MOCK, folder)
        manifest = json.loads((MOCK.parent / "mock.json").read_text())
        (folder / "mock.json").write_text(json.dumps({**manifest, **changes}))
        return folder / MOCK.name

    def test_files(self):
        out, junit = self.folder / "out.json", self.folder / "out.xml"
        result = tutti("conformance", MOCK, "--only", "negotiation.*,programs.required,op.add", "--json", out, "--junit", junit,
                       env=harness.environment(TUTTI_MOCK="ignore_required"))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^negotiation +7 +0 +0 +0 ")
        self.assertRegex(result.stdout, r"(?m)^fail programs\.required$")
        self.assertIn("mock FAILS: the must-pass list does not hold", result.stdout)
        document = json.loads(out.read_text())
        self.assertEqual((document["plugin"], document["device"], document["fail"]), ("mock", "Mock device", 1))
        suites = {s.get("name"): s for s in xml.parse(junit).getroot()}
        self.assertEqual(list(suites), ["negotiation", "programs", "op", "process"])
        self.assertEqual((suites["programs"].get("failures"), suites["op"].get("failures")), ("1", "0"))
        self.assertIn("expected TUTTI_DECLINED", suites["programs"].find("testcase/failure").get("message"))

    def test_document_on_stdout(self):
        document = self.json("conformance", MOCK, "--only", "op.add")
        self.assertEqual((document["ok"], document["plugin"]), (True, "mock"))

    def test_list(self):
        lines = self.done("conformance", "--list", "--only", "memory.*").stdout.splitlines()
        self.assertEqual(len(lines), 11)
        self.assertTrue(lines[0].startswith("memory.reported "))
        checks = self.json("conformance", "--list", "--only", "memory.*")["checks"]
        self.assertEqual([c["id"] for c in checks], [line.split()[0] for line in lines])
        self.assertEqual(set(checks[0]), {"id", "doc", "must"})

    def test_expected_failures(self):
        """They count for the must-pass list, and one that passes is a failure."""
        library = self.plugin(expected_failures=[{"case": "programs.required", "reason": "made up"},
                                                 {"case": "matmul:1:*", "reason": "no second sample"}])
        args = ["conformance", library, "--only", "programs.required,op.matmul", "--json", "-"]
        faults = "ignore_required,corrupt:matmul"
        document = json.loads(tutti(*args, env=harness.environment(TUTTI_MOCK=faults)).stdout)
        outcomes = {c["id"]: (c["outcome"], c["why"]) for c in document["checks"]}
        self.assertEqual(outcomes["programs.required"][0], "expected_failure")
        self.assertIn("made up", outcomes["programs.required"][1])
        self.assertEqual(outcomes["op.matmul"][0], "fail")  # its first sample is not listed
        result = tutti(*args)
        self.assertEqual(result.returncode, 1)
        outcomes = {c["id"]: (c["outcome"], c["why"]) for c in json.loads(result.stdout)["checks"]}
        self.assertIn("the manifest expects it to fail (made up)", outcomes["programs.required"][1])
        self.assertIn("expects it to fail (no second sample)", outcomes["op.matmul"][1])

    def test_expected_failures_that_may_pass(self):
        library = self.plugin(expected_failures=[{"case": "programs.required", "reason": "made up", "may_pass": True},
                                                 {"case": "matmul:*", "reason": "some shapes", "may_pass": True}])
        args = ["conformance", library, "--only", "programs.required,op.matmul", "--json", "-"]
        for faults, expected in (("", ("pass", "pass")),
                                 ("ignore_required,corrupt:matmul", ("expected_failure", "expected_failure"))):
            result = tutti(*args, env=harness.environment(TUTTI_MOCK=faults))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            outcomes = {c["id"]: c["outcome"] for c in json.loads(result.stdout)["checks"]}
            self.assertEqual((outcomes["programs.required"], outcomes["op.matmul"]), expected)

    def test_the_manifest_is_held_too(self):
        result = tutti("conformance", self.plugin(version="9.9", abi=[1, 4]), "--only", "negotiation.*")
        self.assertEqual(result.returncode, 1)
        self.assertIn('that of its manifest is "9.9"', result.stdout)
        self.assertIn("supports versions 1 to 1, but its manifest says 1 to 4", result.stdout)

    def test_bad_usage(self):
        other = self.folder / "library.so"
        shutil.copy(MOCK, other)
        self.fails(2, ["no plugin given"], "conformance")
        self.fails(2, ["No such file"], "conformance", self.folder / "no/such.so", "--json", self.folder / "out.json")
        for spelling in (["--json"], ["--json", "-"], ["--json=-"]):  # the document's place is the errors' place
            refused = tutti("conformance", self.folder / "no/such.so", *spelling)
            self.assertIn("No such file", json.loads(refused.stdout)["error"])
        self.fails(2, ["no/such.so", "No such file"], "conformance", self.folder / "no/such.so")
        self.fails(2, ["no manifest in the same folder names this library"], "conformance", other)
        self.fails(2, ["is not a file"], "conformance", self.folder)
        self.fails(2, ["no check matches 'nothing'"], "conformance", MOCK, "--only", "nothing")
        self.fails(2, ["--timeout 0"], "conformance", MOCK, "--timeout", "0")
        self.fails(2, ["--timeout 1e+300", "86400"], "conformance", MOCK, "--timeout", "1e300")
        self.fails(2, ["--device-index 7: the plugin lists 1: 0"], "conformance", MOCK, "--device-index", "7")
        for more in [], ["--list"]:
            self.fails(2, [f"{other} was interpreted as the file of --json", "--json=-"], "conformance", *more, "--json", other)
        self.assertEqual(other.read_bytes(), MOCK.read_bytes())
        self.fails(2, ["no plugin given: out was interpreted as the file of --json"], "conformance", "--json", "out")
        self.fails(2, ["--json and --junit both write to"], "conformance", MOCK, "--json", other.with_suffix(".x"), "--junit",
                   other.with_suffix(".x"))
        self.fails(2, ["cannot be written"], "conformance", MOCK, "--junit", self.folder / "no/where.xml")
        library = self.plugin()
        library.write_text("not a library")
        self.fails(2, ["cannot be loaded", "not a shared library"], "conformance", library)
        library.write_bytes(MOCK.read_bytes()[:MOCK.stat().st_size // 2])
        self.fails(2, ["cannot be loaded", "truncated"], "conformance", library)
        fake = harness.BINARY.parent.parent / "tests/fakes/loader_no_symbol.so"
        if fake.exists():
            shutil.copy(fake, library)
            self.fails(2, ["does not export the symbol tutti_plugin"], "conformance", library)
        library.chmod(0o777)
        self.fails(2, ["not loaded", "can be written by everybody"], "conformance", library)


if __name__ == "__main__":
    unittest.main()
