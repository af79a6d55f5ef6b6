"""Conformance must name each fault of the mock plugin, and find nothing wrong with it otherwise."""
import json
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli"))
import harness
from harness import tutti

MOCK = os.environ["MOCK"]
HEADER = pathlib.Path(__file__).resolve().parent / "faults.h"

# fault: (checks to run, the check that must fail, what its finding says)
EXPECTED = {
    "decline:matmul": ("op.matmul", "op.matmul", "no kernel for matmul"),
    "wrong_size": ("memory.*", "memory.reported", "bytes, expected 2"),
    "large_size": ("memory.*", "memory.reported", "bytes, expected 11258999"),
    "fail_alloc:1": ("run.result", "run.result", "prepare: TUTTI_NO_MEMORY: no memory for the arena"),
    "fail_run:3": ("run.result", "run.result", "run: TUTTI_INTERNAL: the driver refused run 3"),
    "late_error": ("run.result", "run.result", "wait: TUTTI_INTERNAL: a kernel of run 1 failed"),
    "corrupt:matmul": ("op.matmul", "op.matmul", "case matmul:0:all:f32: y0: 1 of 15 elements differ, worst at 0"),
    "hang": ("run.result", "run.result", "did not return within 2 s"),
    "lost": ("run.result", "run.result", "TUTTI_DEVICE_LOST: the device is gone"),
    "leak": ("memory.*", "memory.release", "in use after release"),
    "keep_states": ("memory.forgotten", "memory.forgotten", "in use after the state was freed"),
    "leak_memory": ("memory.*", "memory.returned", "the process grows by"),
    "nondeterministic": ("model.same_mlp", "model.same_mlp", "differ in state"),
    "shared": ("memory.*", "memory.reopened", "in use in a new session"),
    "stale_read": ("run.*", "run.result", "of the state is"),
    "stale_feed": ("run.*", "run.result", "of the state is"),
    "null_feed": ("run.result", "run.result", "gave no memory for a feed"),
    "any_option": ("open.options", "open.options", "unknown option: expected TUTTI_INVALID"),
    "any_ticket": ("arguments.wait", "arguments.wait", "never handed out: expected TUTTI_INVALID"),
    "any_size": ("arguments.*", "arguments.read", "where the state has"),
    "dirty_state": ("arguments.read", "arguments.read", "not zero"),
    "bad_product:row": ("product.shapes", "product.shapes", "[1, 37] times [37, 19]: element 0 of 19"),
    "bad_product:large": ("product.shapes", "product.shapes", "[450, 9] times [9, 451]"),
    "bad_product:ta": ("product.shapes", "product.shapes", "transposed times"),
    "bad_product:long": ("product.shapes", "product.shapes", "[5, 1025] times"),
    "bad_product:both": ("product.shapes", "product.shapes", "transposed times [11, 40] transposed"),
    "bad_product:batch": ("product.batches", "product.batches", "[4, 5, 6] times [6, 7]"),
    "finite": ("product.special", "product.special", "with nan in it: element"),
    "devices:2,second": ("product.devices", "product.devices", "mock:1"),
    "patient": ("run.timeout", "run.timeout", "wait of 0 ns took 3"),
    "shared_scratch": ("product.sessions", "product.sessions", "while another session is open"),
    "late_free": ("memory.released", "memory.released", "the process grows by"),
    "lost_write": ("run.write_in_flight", "run.write_in_flight", "written while runs were in flight"),
    "abort_oom": ("memory.refused", "memory.refused", "ABRT"),
    "no_driver": ("init.devices", "init.devices", "no driver"),
    "bad_memory:0": ("init.devices", "init.devices", "memory_total is 0 bytes"),
    "bad_memory:9000000000000000000": ("init.devices", "init.devices", "memory_total is 9000000000000000000 bytes"),
    "crash_op:matmul": ("op.matmul", "op.matmul", "SEGV"),
    "hang_op:matmul": ("op.matmul", "op.matmul", "did not return within 2 s"),
    "exit_op:matmul": ("op.matmul", "op.matmul", "ended with exit code 0"),
    "sticky:matmul": ("op.matmul", "op.matmul", "an illegal memory access"),
    "crash_init": ("init.start", "init.start", "SEGV"),
    "crash_devices": ("init.devices", "init.devices", "SEGV"),
    "exit_devices": ("init.devices", "init.devices", "ended with exit code 0"),
    "hang_devices": ("init.devices", "init.devices", "did not return within 2 s"),
    "malformed_list": ("init.devices", "init.devices", "elements of 8 bytes"),
    "crash_open": ("open.session", "open.session", "SEGV"),
    "exit_open": ("open.session", "open.session", "ended with exit code 0"),
    "hang_open": ("open.session", "open.session", "did not return within 2 s"),
    "crash_run": ("run.result", "run.result", "SEGV"),
    "abort": ("run.result", "run.result", "ABRT"),
    "exit": ("run.result", "run.result", "ended with exit code 0"),
    "crash_end": ("init.start", "process.end", "SEGV"),
    "print": ("run.result", "process.quiet", "run.result: \"mock: running"),
    "print_error": ("run.result", "process.quiet", "mock: opening device 0"),
    "throw": ("run.result", "run.result", "threw an exception across the C boundary: out of mock memory"),
    "init_error": ("init.*", "init.start", "no driver of version 7 found"),
    "ignore_required": ("programs.required", "programs.required", "required bits 0x1"),
    "refuse_dtype": ("programs.unknown_dtype", "programs.unknown_dtype", "expected a verdict per node"),
    "ignore_numerics": ("programs.unknown_numerics", "programs.unknown_numerics", "unknown numerics"),
    "fixed_stride": ("growth.larger", "growth.larger", ""),
    "small_struct": ("growth.exact", "growth.exact", "SEGV"),
    "large_error": ("arguments.read", "arguments.read", "wrote past the end of the TuttiError"),
    "bad_error": ("arguments.read", "arguments.read", "without a message"),
    "endless_error": ("arguments.read", "arguments.read", "not NUL-ended"),
    "wrong_code": ("arguments.read", "arguments.read", "its error holds TUTTI_OK"),
    "strange_code": ("arguments.read", "arguments.read", "code 99"),
    "no_reason": ("programs.unknown_op", "programs.unknown_op", "without a reason"),
    "any_device": ("open.foreign_device", "open.foreign_device", "expected TUTTI_INVALID"),
    "no_range": ("negotiation.*", "negotiation.below", "did not report its own range"),
    "any_version": ("negotiation.*", "negotiation.above", "returned a table"),
    "null_function": ("negotiation.table", "negotiation.table", "lacks the function usage"),
    "bad_device": ("init.devices", "init.devices", "unknown kind 99"),
}
# Right, though slow; or told apart from a failure.
HARMLESS = {"sleep:20": "run.result", "no_device": "*", "devices:2": "run.result"}
NULLS = ["check", "compile", "prepare", "stage", "run", "usage", "read", "write"]


def run(fault, only, *more):
    """The document of a run, and its exit code."""
    result = tutti("conformance", MOCK, "--only", only, "--json", "-", *more, env=harness.environment(TUTTI_MOCK=fault))
    assert result.stdout.startswith("{"), result.stdout + result.stderr
    return json.loads(result.stdout), result.returncode


def failed(document):
    return {c["id"]: c["why"] for c in document["checks"] if c["outcome"] in ("fail", "unsupported")}


class Faults(unittest.TestCase):
    def test_every_fault_has_an_expectation(self):
        names = re.findall(r'^    \{"(\w+)", "', HEADER.read_text(), re.MULTILINE)
        covered = {key.split(":")[0] for key in [*EXPECTED, *HARMLESS]} | {"accepts_bad_arguments", "flush", "second"}
        self.assertEqual(set(names), covered)
        self.assertGreater(len(names), 40)

    def test_each_is_named(self):
        for fault, (only, check, text) in EXPECTED.items():
            with self.subTest(fault=fault):
                timeout = ["--timeout", "2"] if fault.startswith("hang") else []
                document, code = run(fault, only, *timeout)
                self.assertEqual(code, 1, document)
                found = failed(document)
                self.assertIn(check, found, document)
                self.assertIn(text, found[check])

    def test_denormals_are_reported_beside_the_must_pass_list(self):
        document, code = run("flush", "product.denormals")
        self.assertEqual((code, document["must_pass_holds"]), (0, True))
        self.assertIn("a denormal number of f32, became 0", failed(document)["product.denormals"])

    def test_nulls_that_are_accepted(self):
        found = failed(run("accepts_bad_arguments", "arguments.*")[0])
        for call in NULLS:
            self.assertIn("arguments." + call, found)

    def test_healthy(self):
        document, code = run("", "*")
        self.assertEqual((code, failed(document)), (0, {}))
        self.assertGreater(len(document["checks"]), 120)
        self.assertTrue(document["ok"])

    def test_a_plugin_that_hangs_everywhere_is_left_alone(self):
        found = failed(run("hang", "run.*", "--timeout", "1")[0])
        self.assertEqual(sum("did not return within 1 s" in why for why in found.values()), 3)
        self.assertEqual(sum("not run: 3 checks did not return" in why for why in found.values()), 7)

    def test_slow_is_right(self):
        self.assertEqual(run("sleep:20", "run.result")[1], 0)

    def test_a_second_device_is_right(self):
        self.assertEqual(run("devices:2", "run.result")[1], 0)

    def test_no_device(self):
        document, code = run("no_device", "*")
        self.assertEqual(code, 3)
        self.assertEqual((document["ok"], document["must_pass_holds"], document["incomplete"]), (False, True, True))
        outcomes = {c["id"]: c["outcome"] for c in document["checks"]}
        self.assertEqual((outcomes["negotiation.below"], outcomes["run.result"]), ("pass", "unsupported"))

    def test_a_typing_error_in_a_test_shows(self):
        self.assertIn("unknown fault 'corupt'", failed(run("corupt:matmul", "init.*")[0])["init.start"])


if __name__ == "__main__":
    unittest.main()
