"""tutti parity in processes of its own: what one op does to its process costs no other op a case."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli"))
import harness
from harness import BINARY, tutti

MOCK = pathlib.Path(os.environ["MOCK"])
OPS = "add,exp,matmul,max_pool2d,relu,sum"
QUICK = ["parity", "--device", "mock", "--quick"]


def environment(faults="", folder=MOCK.parent):
    return harness.environment(TUTTI_PLUGIN_PATH=str(folder), TUTTI_MOCK=faults)


def run(faults, *more):
    """The document of the mock's parity and what stderr said."""
    result = tutti(*QUICK, "--ops", OPS, "--json", *more, env=environment(faults))
    assert result.stdout.startswith("{"), result.stdout + result.stderr
    return json.loads(result.stdout), result.stderr


def outcomes(document, device="mock:0"):
    """By op: (passed, failed)."""
    return {o["op"]: (o["devices"][device]["pass"], o["devices"][device]["fail"]) for o in document["ops"]}


def why(document):
    return {f["case"]: f["why"] for f in document["failures"]}


def processes():
    """By id: parent and command line of all processes that are alive."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if folder.name.isdigit() and state != "Z":
                found[int(folder.name)] = int(parent), (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:
            pass
    return found


def until(true):
    deadline = time.monotonic() + 20
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return true()


class Processes(harness.Case):
    def setUp(self):
        super().setUp()
        self.sound = outcomes(run("")[0])
        self.assertEqual(sorted(self.sound), OPS.split(","))
        self.assertTrue(all(passed >= 2 and not failed for passed, failed in self.sound.values()), self.sound)

    def blamed(self, document, op):
        """Only this op's cases fail; returns their messages, in order."""
        self.assertIs(document["ok"], False)
        found = outcomes(document)
        for other in self.sound:
            if other != op:
                self.assertEqual(found[other], self.sound[other])
        self.assertEqual(sum(found[op]), sum(self.sound[op]))
        failures = why(document)
        self.assertTrue(failures and all(case.startswith(op + ":") for case in failures), failures)
        return list(failures.values())

    def test_the_same_as_in_one_process(self):
        here, apart = run("corrupt:relu")[0], run("corrupt:relu", "--jobs", "3")[0]
        for document in (here, apart):
            del document["devices"][0]["seconds"]
        self.assertGreater(here["devices"][0]["fail"], 0)
        self.assertEqual(here, apart)

    def test_a_crash(self):
        first, *rest = self.blamed(run("crash_op:relu", "--jobs", "2")[0], "relu")
        died = "died of signal 11 (SIGSEGV: Segmentation fault)"
        self.assertEqual(first, "the process " + died)
        self.assertEqual(set(rest), {f"not run: the process of relu {died} in relu:0:forward:f32"})

    def test_a_silent_end(self):
        first, *rest = self.blamed(run("exit_op:max_pool2d", "--jobs", "2")[0], "max_pool2d")
        self.assertEqual(first, "the process ended with exit code 0")
        self.assertIn("in max_pool2d:0:forward:f32", rest[0])

    def test_a_hang(self):
        start = time.monotonic()
        first, *rest = self.blamed(run("hang_op:exp", "--jobs", "2", "--timeout", "2")[0], "exp")
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(first, "the process did not return within 2 s")
        self.assertIn("in exp:0:forward:f32", rest[0])

    def test_errors_that_stick(self):
        """In one process they spoil all that comes after."""
        here, _ = run("sticky:max_pool2d", "--jobs", "0")
        self.assertGreater(outcomes(here)["sum"][1], 0)
        for text in self.blamed(run("sticky:max_pool2d", "--jobs", "1")[0], "max_pool2d"):
            self.assertIn("an illegal memory access was encountered", text)

    def test_all_at_once(self):
        document, _ = run("crash_op:add,exit_op:matmul,sticky:relu,hang_op:exp", "--jobs", "4", "--timeout", "2")
        found = outcomes(document)
        for op, sound in self.sound.items():
            if op in ("max_pool2d", "sum"):
                self.assertEqual(found[op], sound)
            else:
                self.assertEqual(found[op], (0, sum(sound)), op)

    def test_a_device_that_hangs_everywhere_is_left_alone(self):
        document, _ = run("hang", "--jobs", "1", "--timeout", "1")
        self.assertEqual(sum(text == "the process did not return within 1 s" for text in why(document).values()), 3)
        self.assertIn("not run: 3 processes on mock:0 did not return", why(document).values())

    def test_a_crash_at_the_end_is_told(self):
        document, log = run("crash_end", "--jobs", "2")
        self.assertEqual((document["ok"], outcomes(document)), (False, self.sound))
        remark = "the worker process of relu on mock:0 died of signal 11 (SIGSEGV: Segmentation fault) after its last case"
        self.assertIn(remark, document["remarks"])
        self.assertIn(remark, log)

    def test_expected_crashes(self):
        folder = self.folder / "plugins"
        folder.mkdir(mode=0o700)
        (folder / MOCK.name).symlink_to(MOCK)
        manifest = json.loads((MOCK.parent / "mock.json").read_text())
        manifest["expected_failures"] = [{"case": "relu:*", "reason": "the driver crashes"}]
        (folder / "mock.json").write_text(json.dumps(manifest))
        result = tutti(*QUICK, "--ops", "relu", "--jobs", "1", "--json", env=environment("crash_op:relu", folder))
        self.assertEqual(result.returncode, 0, result.stderr)
        entry = json.loads(result.stdout)["expected_failures"][0]
        self.assertEqual(entry["why"],
                         "the driver crashes: the process died of signal 11 (SIGSEGV: Segmentation fault)")

    def test_records(self):
        """--record and --against see the same results from processes."""
        for jobs in ("0", "2"):
            tutti(*QUICK, "--ops", OPS, "--jobs", jobs, "--record", self.folder / jobs, env=environment())
        self.assertEqual((self.folder / "0").read_bytes(), (self.folder / "2").read_bytes())
        again = ["parity", "--device", "mock", "--against", self.folder / "2", "--json"]
        for jobs in ("0", "2"):
            result = tutti(*again, "--jobs", jobs, env=environment("corrupt:relu"))
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertEqual({p["case"].split(":")[0] for p in json.loads(result.stdout)["devices"][0]["parted"]},
                             {"relu"})
        result = tutti(*again, "--jobs", "2", env=environment("crash_op:relu"))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("died of signal 11", json.loads(result.stdout)["devices"][0]["parted"][0]["why"])

    def test_every_device_of_a_plugin(self):
        for jobs in ("0", "2"):
            document, _ = run("devices:2", "--jobs", jobs)
            self.assertEqual([d["id"] for d in document["devices"]], ["mock:0", "mock:1"])
            self.assertEqual(outcomes(document, "mock:1"), self.sound)

    def test_processes_end_with_their_parent(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number=number):
                parent = subprocess.Popen([str(BINARY), *QUICK, "--ops", OPS, "--jobs", "2"], stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True, env=environment("hang,print_error"))
                self.addCleanup(parent.stderr.close)
                self.addCleanup(parent.kill)
                for _ in range(2):  # from there on they hang, and write nothing that could fail
                    self.assertIn("mock: opening device 0", parent.stderr.readline())
                started = {p for p, (above, line) in processes().items() if above == parent.pid and "--job" in line}
                self.assertEqual(len(started), 2)
                parent.send_signal(number)
                self.assertEqual(parent.wait(30), -number if number == signal.SIGKILL else 130)
                self.assertTrue(until(lambda: not started & set(processes())))

    def test_bad_input(self):
        for said, *wrong in (("--jobs -1", "--jobs", "-1"), ("--jobs 257", "--jobs", "257"),
                             ("--timeout 0", "--jobs", "2", "--timeout", "0"), ("add --jobs", "--timeout", "5"),
                             ("excludes", "--jobs", "2", "--model", "mlp"), ("invalid job", "--job", "{}")):
            self.fails(2, [said], *QUICK, *wrong, env=environment())


if __name__ == "__main__":
    unittest.main()
