"""Plants files in an empty tree, one at a time: the checker must name each violation, and nothing else."""
import os
import subprocess
import sys
import tempfile
import unittest

CHECKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/check-dependencies.py")


def run(files):
    """The checker's exit code and text for a tree with these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run([sys.executable, CHECKER, "--root", root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


class CheckDependencies(unittest.TestCase):
    def test_names_each_violation(self):
        for path, include in [
            ("core/abi/a.h", '"core/base/dtype.h"'),
            ("core/base/a.h", '"core/runtime/session.h"'),
            ("core/base/a.h", "<nlohmann/../graph/graph.h>"),
            ("core/runtime/a.cpp", '"graph/graph.h"'),
            ("graph/ops/a.cpp", '"train/run/trainer.h"'),
            ("nn/a.cpp", '"cli/command.h"'),
            ("nn/a.cpp", '"graph/lower/compile.h"'),
            ("train/a.cpp", '"sdk/plugin.h"'),
            ("train/task/a.cpp", '"train/step/programs.h"'),
            ("train/step/a.cpp", '"train/io/weights.h"'),
            ("train/io/a.cpp", '"train/run/trainer.h"'),
            ("sdk/a.cpp", '"graph/graph.h"'),
            ("sdk/a.cpp", '"core/runtime/registry.h"'),
            ("kernels/a.cpp", '"sdk/program.h"'),
            ("backends/onednn/a.cpp", '"graph/ops.h"'),
            ("backends/onednn/a.cpp", '"core/runtime/session.h"'),
            ("backends/onednn/a.cpp", '"backends/reference/reference.h"'),
            ("backends/cpu/a.cpp", '"backends/onednn/b.h"'),
            ("backends/reference/a.cpp", '"train/run/trainer.h"'),
            ("backends/reference/a.cpp", '"graph/lower/lower.h"'),
            ("plugins/onednn/a.cpp", '"backends/reference/reference.h"'),
            ("plugins/onednn/a.cpp", '"graph/graph.h"'),
            ("cli/a.cpp", '"sdk/plugin.h"'),
            ("cli/a.cpp", '"backends/onednn/b.h"'),
            ("cli/a.cpp", "<tests/train/files.h>"),
            ("examples/a.cpp", '"cli/command.h"'),
        ]:
            with self.subTest(path=path, include=include):
                code, text = run({path: f"// x\n#include {include}\n"})
                self.assertEqual(code, 1, text)
                self.assertIn(f"{path}:2: includes ", text)
                self.assertIn("1 violations", text)

    def test_the_operating_system_has_a_room(self):
        for header in ("unistd.h", "sys/mman.h", "csignal", "dlfcn.h", "windows.h", "linux/futex.h"):
            for path in ("cli/a.cpp", "core/base/a.h", "kernels/cpu/a.cpp", "backends/reference/a.cpp"):
                with self.subTest(path=path, header=header):
                    code, text = run({path: f"#include <{header}>\n"})
                    self.assertEqual(code, 1, text)
                    self.assertIn(f"{path}:1: includes <{header}> of the operating system", text)
        allowed = {"core/os/posix/a.cpp": "#include <unistd.h>\n", "tests/a.cpp": "#include <unistd.h>\n",
                   "backends/cuda/a.cpp": "#include <dlfcn.h>\n", "cli/a.cpp": '#include "core/os/file.h"\n#include <ctime>\n'}
        self.assertEqual(run(allowed)[0], 0)
        self.assertEqual(run({"core/os/a.cpp": '#include "core/base/status.h"\n'})[0], 1)

    def test_sees_through_relative_paths(self):
        code, text = run({"graph/g.h": "", "sdk/a.cpp": '#  include "../graph/g.h"\n'})
        self.assertEqual(code, 1)
        self.assertIn("sdk/a.cpp:1: includes graph/g.h", text)

    def test_a_room_below_has_a_rule_of_its_own(self):
        code, text = run({"graph/lower/l.h": "", "graph/passes/a.cpp": '#include "graph/lower/l.h"\n'})
        self.assertEqual(code, 1)
        self.assertIn("graph/passes/a.cpp:1: includes graph/lower/l.h", text)

    def test_accepts_what_is_allowed(self):
        code, text = run({
            "cli/a.cpp": '#include "train/run/trainer.h"\n#include "graph/graph.h"\n#include <vector>\n#include "own.h"\n',
            "cli/own.h": "",
            "graph/op.h": "",
            "train/a.cpp": '#include "graph/lower/compile.h"\n#include "nn/modules.h"\n',
            "graph/lower/a.cpp": '#include "core/runtime/session.h"\n#include "graph/op.h"\n',
            "sdk/a.cpp": '#include "core/abi/tutti_plugin.h"\n#include "kernels/cpu/isa_kernels.h"\n',
            "backends/reference/a.cpp": '#include "graph/ops.h"\n#include "sdk/plugin.h"\n',
            "plugins/onednn/a.cpp": '#include "backends/onednn/b.h"\n',
            "examples/a.cpp": '#include "tutti/tutti.h"\n',
            "tests/core/a.cpp": '#include "backends/onednn/b.h"\n#include "graph/graph.h"\n',
        })
        self.assertEqual(code, 0, text)

    def test_refuses_long_files(self):
        self.assertEqual(run({"graph/a.cpp": "\n" * 500, "tests/a.cpp": "\n" * 700})[0], 0)
        code, text = run({"graph/a.cpp": "\n" * 501})
        self.assertEqual(code, 1)
        self.assertIn("graph/a.cpp: 501 lines", text)

    def test_refuses_long_functions(self):
        def function(lines):
            return "int g();\n\nstd::string C::f(int a,\n              int b) {\n" + "  ++a;\n" * (lines - 3) + "}\n"
        self.assertEqual(run({"graph/a.cpp": function(80), "tests/a.cpp": function(90)})[0], 0)
        code, text = run({"graph/a.cpp": function(81) + function(20)})
        self.assertEqual(code, 1)
        self.assertIn("graph/a.cpp:3: a function of 81 lines", text)
        self.assertEqual(text.count("a function of"), 1)

    def test_refuses_options_of_the_command_line_in_the_library(self):
        good = 'f("`tutti parity --full`");\nint i = --n;\n// --batch\n'
        self.assertEqual(run({"train/a.cpp": good, "cli/a.cpp": 'f("--batch 8");\n'})[0], 0)
        code, text = run({"train/a.cpp": good + 'f("use --batch 8");\n', "data/a.cpp": 'f("--{}: bad");\n'})
        self.assertEqual(code, 1)
        self.assertIn('train/a.cpp:4: "use --batch 8"', text)
        self.assertIn("data/a.cpp:1", text)

    def test_an_empty_tree_is_no_success(self):
        self.assertEqual(run({})[0], 1)


if __name__ == "__main__":
    unittest.main()
