"""The runner of gpu-check over pieces of a test's own: nothing holds it up, and what it leaves is whole."""

import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import unittest
import unittest.mock

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "gpu_check"
sys.path.insert(0, str(SCRIPTS))
import figures  # noqa: E402
import machine  # noqa: E402
import pack  # noqa: E402
import process  # noqa: E402
import results  # noqa: E402
import run  # noqa: E402
from pieces import PARTS, Piece, Stage  # noqa: E402

DEVICES = json.dumps({"devices": [{"id": "cuda:0", "usable": True, "kind": "discrete", "unusable": ""}], "plugins": []})


class Made:
    """A machine without a pack."""

    def __init__(self, work, ops=("a", "b", "c"), tests=None):
        self.work, self.packed, self.env = str(work), {"ops": list(ops), "tests": tests or {}}, dict(os.environ)

    def facts(self):
        return {"python": sys.executable, "work": self.work}

    def described(self):
        return {"system": "made up"}


def python(name, code, limit=5, **more):
    more.setdefault("needs", ())
    return Piece(name, "{python} -S -E -c " + shlex.quote(textwrap.dedent(code)), limit, **more)


GPU = python("devices", f"print('''{DEVICES}''')", fact="devices", env={"TUTTI_PLUGINS": "cuda"})


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "work").mkdir()

    def go(self, *stages, scale=1.0, signals=(), **more):
        """The exit code and the document of a run over these stages; both files must be whole."""
        with open(os.devnull, "w", encoding="utf-8") as null:
            out, sys.stdout = sys.stdout, null
            try:
                code = run.Run(
                    "first", list(stages), Made(self.folder / "work", **more), str(self.folder / "out"), scale, signals=signals
                ).all()
            finally:
                sys.stdout = out
        document = json.loads((self.folder / "out/gpu-check-first.json").read_text())
        with tarfile.open(self.folder / "out/gpu-check-first.tar.gz") as tar:
            self.names = tar.getnames()
            self.texts = {m.name: tar.extractfile(m).read().decode() for m in tar.getmembers()}
        self.assertEqual(document["exit"], code)
        self.assertEqual(sorted(os.listdir(self.folder / "out")), ["gpu-check-first.json", "gpu-check-first.tar.gz"])
        self.pieces = {p["name"]: p for p in document["pieces"]}
        return code, document


class Runs(Case):
    def test_exit_codes(self):
        good, bad = python("good", "print('fine')"), python("bad", "import sys; sys.exit('no good')")
        self.assertEqual(self.go(Stage("s", 9, [GPU, good]))[0], 0)
        self.assertEqual(self.go(Stage("s", 9, [GPU, good, bad]))[0], 1)
        self.assertEqual(self.pieces["bad"]["why"], "no good")
        self.assertEqual(self.go(Stage("s", 9, [good]))[0], 2, "no GPU")
        self.assertEqual(self.go(Stage("s", 9, [GPU, python("more", "", needs=("torch",))]))[0], 3)
        self.assertEqual(self.pieces["more"]["why"], "torch is not here")

    def test_a_piece_that_hangs_is_ended_with_all_it_started(self):
        pid = self.folder / "pid"
        hang = python(
            "hang",
            f"""
            import os, signal, subprocess, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            code = "import os, time; os.setpgid(0, 0); open('{pid}', 'w').write(str(os.getpid())); time.sleep(99)"
            subprocess.Popen([{sys.executable!r}, "-c", code])
            time.sleep(99)""",
            limit=0.7,
            again=False,
        )
        begun = time.monotonic()
        code, _ = self.go(Stage("s", 30, [GPU, hang, python("after", "")]))
        self.assertLess(time.monotonic() - begun, 30)  # of 99
        self.assertEqual((code, self.pieces["hang"]["why"], self.pieces["after"]["status"]), (1, "ended after 0.7 s", "ok"))
        time.sleep(0.1)
        self.assertFalse(
            any("zombie" not in line for line in self.state(int(pid.read_text()))), "its child, in a group of its own, lives"
        )

    @staticmethod
    def state(number):
        try:
            return [line for line in pathlib.Path(f"/proc/{number}/status").read_text().splitlines() if line.startswith("State:")]
        except OSError:
            return []

    def test_no_stage_eats_the_next_ones(self):
        slow = [python(f"slow{k}", "import time; time.sleep(9)", again=False) for k in range(3)]
        begun = time.monotonic()
        self.go(Stage("one", 6, [GPU, *slow]), Stage("two", 9, [python("last", "")]), scale=0.2)
        self.assertLess(time.monotonic() - begun, 9)  # which one of them would take
        self.assertEqual(self.pieces["slow2"]["why"], "the stage's time is up")
        self.assertEqual(self.pieces["last"]["status"], "ok")

    def test_several_at_once_each_op_in_a_process_of_its_own(self):
        begun = time.monotonic()
        self.go(Stage("s", 9, [python("op", "import time; time.sleep(2); print('{each}')", each="ops")], at_once=4), ops="abcd")
        self.assertLess(time.monotonic() - begun, 8)  # which they would take in turn
        self.assertEqual({f"op/{x}" for x in "abcd"}, set(self.pieces))
        self.assertEqual(self.texts["logs/s.op-a.out"], "a\n")

    def test_what_failed_runs_again_with_the_libraries_logs_on(self):
        bad = python(
            "bad",
            """
            import os, sys
            path = os.environ.get("CUBLASLT_LOG_FILE", "").replace("%i", "7")
            if path: open(path, "w").write("cublasLtMatmul was called")
            sys.exit(os.environ.get("TUTTI_TRACE", "without"))""",
        )
        self.go(Stage("s", 9, [GPU, bad]))
        self.assertEqual(self.pieces["bad"]["why"], "without")
        self.assertEqual(self.pieces["bad"]["again"]["text"].strip(), "dispatch,kernels")
        self.assertEqual(list(self.pieces["bad"]["again"]["logs"].values()), ["cublasLtMatmul was called"])

    def test_only_some_failures_run_again(self):
        self.go(Stage("s", 20, [python("op", "raise SystemExit(1)", each="ops")], at_once=4), ops="abcdefg")
        self.assertEqual(sum("again" in p for p in self.pieces.values()), run.RETRIES)

    def test_a_failed_test_says_why_in_the_document(self):
        said = (
            "[==========] Running\\n[ RUN      ] A.b\\n[       OK ] A.b (1 ms)\\n[ RUN      ] A.c\\nx.cpp:7: Failure\\nExpected: 1\\n"
            "[  FAILED  ] A.c (2 ms)\\n"
        )
        self.go(Stage("s", 9, [GPU, python("t", f"print('{said}'); raise SystemExit(1)", each="t")]), tests={"t": ["A.c"]})
        self.assertIn("x.cpp:7: Failure\nExpected: 1", self.pieces["t/c"]["text"])
        self.assertNotIn("A.b", self.pieces["t/c"]["text"])

    def test_a_crash_is_repeated_in_a_debugger_with_an_empty_cache(self):
        (self.folder / "gdb").write_text("#!/bin/sh\necho \"$@\" with $TUTTI_CACHE\n")
        (self.folder / "gdb").chmod(0o755)
        with unittest.mock.patch.object(Made, "facts", lambda m: {"python": sys.executable, "work": m.work, "debugger": str(self.folder / "gdb")}):
            self.go(Stage("s", 9, [GPU, python("crash", "import os; os.abort()"), python("wrong", "raise SystemExit(5)")]))
        self.assertRegex(self.pieces["crash"]["again"]["text"], r"-batch .*-ex run .*--args \S+ .* with \S+s\.crash\.again\.cache")
        self.assertNotIn("-batch", self.pieces["wrong"]["again"]["text"])

    def test_a_program_that_prints_no_json_where_it_should_has_failed(self):
        piece = Piece("quiet", "{python} -c pass --json", needs=(), again=False)
        self.go(Stage("s", 9, [GPU, piece]))
        self.assertEqual((self.pieces["quiet"]["status"], self.pieces["quiet"]["why"]), ("failed", "it printed no JSON"))

    def test_a_test_that_skips_itself_is_skipped(self):
        said = "[==========] Running\\n[ RUN      ] A.c\\nx.cpp:7: Skipped\\ndeclined: all 3 shapes\\n[  SKIPPED ] A.c (2 ms)\\n"
        self.go(Stage("s", 9, [GPU, python("t", f"print('{said}')", each="t")]), tests={"t": ["A.c"]})
        self.assertEqual((self.pieces["t/c"]["status"], self.pieces["t/c"]["why"]), ("skipped", "declined: all 3 shapes"))

    def test_a_signal_ends_it_and_both_files_are_whole(self):
        signals = []
        signal.signal(signal.SIGALRM, lambda *_: signals.append("SIGALRM"))
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        begun = time.monotonic()
        code, document = self.go(
            Stage("s", 60, [GPU, python("long", "import time; time.sleep(50)", 50), python("next", "")]), signals=signals
        )
        self.assertLess(time.monotonic() - begun, 25)  # of 50
        self.assertEqual((code, document["ended"]), (3, "ended by SIGALRM"))
        self.assertEqual([self.pieces[n]["status"] for n in ("long", "next")], ["skipped", "skipped"])

    def test_output_without_end_is_cut_and_ends_the_piece(self):
        most, process.MOST_PRINTED = process.MOST_PRINTED, 1 << 20
        self.addCleanup(setattr, process, "MOST_PRINTED", most)
        self.go(Stage("s", 9, [GPU, python("flood", "while True: print('x' * 1000)", again=False)]))
        self.assertEqual(self.pieces["flood"]["why"], "ended: it printed without end")
        self.assertLess(len(self.texts["logs/s.flood.out"]), results.PRINTED + 100)

    def test_a_program_that_is_missing(self):
        self.go(
            Stage(
                "s",
                9,
                [GPU, Piece("gone", "/no/such/program", needs=()), Piece("maybe", "/no/such/program", needs=(), optional=True)],
            )
        )
        self.assertEqual([self.pieces[n]["status"] for n in ("gone", "maybe")], ["failed", "skipped"])

    def test_devices_that_hang_are_the_reason_of_all_that_is_skipped(self):
        hang = python(
            "devices-cuda", "import time; time.sleep(99)", 0.5, fact="devices", env={"TUTTI_PLUGINS": "cuda"}, again=False
        )
        code, _ = self.go(Stage("s", 9, [hang]), Stage("t", 9, [python("op", "", each="ops", needs=("cuda",))]))
        self.assertEqual((code, self.pieces["op"]["why"]), (1, "tutti devices: ended after 0.5 s"))


class Comparisons(Case):
    def trained(self, name, state, losses, **more):
        return python(name, f"print('''{json.dumps({'state_hash': state, 'losses': losses})}''')", **more)

    def test_equal_bits(self):
        self.go(
            Stage("a", 5, [GPU, self.trained("x", "1", [1.0], same="m")]), Stage("b", 5, [self.trained("y", "1", [1.0], same="m")])
        )
        self.assertEqual(self.pieces["same-m"]["status"], "ok")
        code, _ = self.go(Stage("a", 5, [GPU, self.trained("x", "1", [1.0], same="m"), self.trained("y", "2", [1.0], same="m")]))
        self.assertEqual((code, self.pieces["same-m"]["why"]), (1, "x: 1; y: 2"))

    def test_close_losses(self):
        def near(losses):
            return self.go(
                Stage("a", 5, [GPU, self.trained("x", "1", [2.0, 1.0], near="m"), self.trained("y", "2", losses, near="m")])
            )[0]

        self.assertEqual(near([2.01, 0.99]), 0)
        self.assertEqual(near([2.01, 1.2]), 1)
        self.assertEqual(near([]), 1)
        self.assertEqual(near([float("nan"), 1.0]), 1)

    def test_equal_bits_word_by_word(self):
        def of(name, state):
            return self.trained(name, state, [1.0], same="m", each="ops", needs=())

        self.go(Stage("a", 9, [GPU, of("x", "1"), of("y", "1")]))
        self.assertEqual([self.pieces[f"same-m/{word}"]["status"] for word in "abc"], ["ok"] * 3)
        code, _ = self.go(Stage("a", 9, [GPU, of("x", "1"), of("y", "2")]))
        self.assertEqual((code, self.pieces["same-m/b"]["why"]), (1, "x/b: 1; y/b: 2"))

    def test_fewer_than_two_is_no_comparison(self):
        self.assertEqual(self.go(Stage("a", 5, [GPU, self.trained("x", "1", [1.0], same="m")]))[0], 3)


class Parts(unittest.TestCase):
    def test_fit_into_nine_minutes(self):
        for name in ("first", "speed"):
            self.assertLessEqual(sum(stage.budget for stage in PARTS[name]), 9 * 60 - 15, name)

    def test_names_are_files_and_pieces_are_filled(self):
        facts = {
            name: "x"
            for name in (
                "tutti",
                "bin",
                "tests",
                "bench",
                "python",
                "work",
                "logs",
                "cuda",
                "vulkan",
                "opencl",
                "torch",
                "compute_sanitizer",
                "sanitizer_works",
                "ncu",
                "fashion_mnist",
                "each",
                "left",
            )
        }
        for part, stages in PARTS.items():
            names = [(s.name, p.name) for s in stages for p in s.pieces]
            self.assertEqual(len(names), len(set(names)), part)
            for piece in (p for s in stages for p in s.pieces):
                for text in [piece.command, *piece.env.values()]:
                    text.format(**facts)
                self.assertLessEqual(set(piece.needs), set(facts), piece.name)


class Results(Case):
    def test_files_stay_under_the_bound(self):
        limit, results.LIMIT = results.LIMIT, 200_000
        self.addCleanup(setattr, results, "LIMIT", limit)
        data = results.document_bytes({"pieces": [{"text": "é" * 5000} for _ in range(200)]})
        self.assertLessEqual(len(data), results.LIMIT)
        self.assertEqual(len(json.loads(data)["pieces"]), 200)
        for k in range(20):
            (self.folder / f"{k}.out").write_bytes(os.urandom(100_000))
        self.assertLessEqual(len(results.archive_bytes(str(self.folder), "")), results.LIMIT)

    def test_reasons_are_neither_remedies_nor_progress(self):
        self.assertEqual(
            results.reason("", "a:0: step\ntutti: cuda: it broke\n  try: something else\n", None), "tutti: cuda: it broke"
        )
        self.assertEqual(
            results.reason("", "4 of 4 cases after 0 s\n", {"failures": [{"case": "add.f32", "why": "far\noff"}]}),
            "1 cases, first add.f32: far off",
        )
        self.assertEqual(
            results.reason("[ RUN      ] A.b\nx.cpp:3: Failure\nExpected: 1\n  Which is: 2\n\n[  FAILED  ] A.b (0 ms)\n", "", None),
            "Expected: 1 Which is: 2",
        )
        self.assertEqual(
            results.reason("", "Traceback\nModuleNotFoundError: No module named 'x'\n", None),
            "ModuleNotFoundError: No module named 'x'",
        )

    def test_traces_are_summed(self):
        trace = (
            "tutti debug [dispatch] cuda: node 2 matmul → library (rendered: why (not))\n"
            "tutti debug [dispatch] cuda: node 3 matmul → library\n"
            "tutti debug [dispatch] cuda: node 2: library: cuBLASLt has no algorithm for it\n"
            "tutti debug [dispatch] cuda: cuBLASLt product f32: algorithm 2 of 3 (1: 3.0 us; 2: 1.0 us)\n"
            "tutti debug [kernels] cuda:       1.5 us  matmul in fc1\ntutti debug [kernels] cuda:       2.0 us  matmul in fc1\n"
        )
        found = figures.of_trace(trace)
        self.assertEqual(found["kernels_us"], [[3.5, 2, "matmul in fc1"]])
        self.assertEqual(found["took"], {"matmul → library": 2})
        self.assertEqual(found["declined"], {"matmul: rendered: why (not)": 1, "library: cuBLASLt has no algorithm for it": 1})
        self.assertEqual(len(found["algorithms"]), 1)


class Packing(Case):
    def test_paths_of_the_packing_machine_are_found(self):
        (self.folder / "a").write_bytes(b"\0/src/tree/tests/data\0/src/tree/tests/x.cpp\0/src/tree/core/y.h:12\0")
        self.assertEqual(pack.paths_inside(str(self.folder), {"/src/tree"}), ["a: /src/tree/tests/data"])

    def test_absolute_run_time_paths_are_found(self):
        if subprocess.run(["sh", "-c", "command -v cc readelf"], stdout=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("no cc or readelf")
        subprocess.run(
            [
                "cc",
                "-shared",
                "-o",
                self.folder / "l.so",
                "-x",
                "c",
                "/dev/null",
                "-Wl,--enable-new-dtags,-rpath,$ORIGIN/lib:/opt/x",
            ],
            check=True,
        )
        self.assertEqual(pack.paths_inside(str(self.folder), {"/src/tree"}), ["l.so: run-time path /opt/x"])

    def test_what_is_too_large_to_travel_is_named(self):
        travel = [(1 << 20, "small"), (40 << 20, "build/gpu/large"), (20 << 20, "middle")]
        self.assertEqual(pack.total_of(travel, 61 << 20), 61 << 20)
        with self.assertRaisesRegex(pack.Failed, "61.0 MiB, more than 60; the largest:\n +40.0 MiB  build/gpu/large\n +20.0 MiB"):
            pack.total_of(travel, 60 << 20)

    def test_a_library_is_new_enough_or_not(self):
        library = self.folder / "libstdc++.so.6"
        library.write_bytes(b"GLIBCXX_3.4.9\0GLIBCXX_3.4.28\0CXXABI_1.3.12\0")
        self.assertEqual(machine.newest_version(library, "GLIBCXX"), (3, 4, 28))
        self.assertFalse(machine.too_old(library, {"GLIBCXX": [3, 4, 28], "CXXABI": [1, 3, 9]}))
        self.assertTrue(machine.too_old(library, {"GLIBCXX": [3, 4, 29], "CXXABI": [1, 3, 9]}))
        self.assertTrue(machine.too_old(self.folder / "none", {"GLIBCXX": [3, 4, 29]}))


class CommandLine(unittest.TestCase):
    def call(self, *arguments):
        done = subprocess.run([sys.executable, "-B", str(SCRIPTS), *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_help_lists_every_part(self):
        code, text = self.call("--help")
        self.assertEqual(code, 0)
        for part in [*PARTS, "pack"]:
            self.assertIn(f" {part} ", text)

    def test_a_pack_that_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(SCRIPTS, f"{folder}/gpu_check", ignore=shutil.ignore_patterns("__pycache__"))
            program = [sys.executable, "-B", f"{folder}/gpu_check", "first", "--out", f"{folder}/out"]
            for text, said in (("", "scripts/gpu-check.sh pack makes it"), ("no archive", "pack.tar.xz cannot be unpacked")):
                if text:
                    pathlib.Path(folder, "pack.tar.xz").write_text(text)
                done = subprocess.run(program, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, said in done.stderr), (2, True), done.stderr)

    def test_wrong_arguments(self):
        for arguments in (
            [],
            ["frist"],
            ["first", "--out"],
            ["first", "speed"],
            ["first", "--scale", "x"],
            ["first", "--scale", "0"],
        ):
            code, text = self.call(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn("gpu-check: ", text)


if __name__ == "__main__":
    unittest.main()
