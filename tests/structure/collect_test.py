"""Generated headers and lists are up to date, and a file that scripts/collect.py does not recognise is an error."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLLECT = ROOT / "scripts/collect.py"
FOLDERS = ["graph/ops", "train/models", "train/optimizers", "train/hf/families", "nn/kinds", "data/sets", "data/transforms"]
LISTS = ["graph/ops.h", "graph/all_ops.cpp", "train/optimizers.h", "train/task/all_models.cpp", "train/hf/all_families.cpp",
         "nn/all_layer_kinds.cpp", "data/all_data_forms.cpp", "data/all_transforms.cpp"]
OP, MODEL, OPTIMIZER = "graph/ops/exp.cpp", "train/models/cnn.cpp", "train/optimizers/adam.h"


class Collect(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tutti-collect-"))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in FOLDERS:
            shutil.copytree(ROOT / folder, self.root / folder)
        (self.root / "train/task").mkdir()
        for path in LISTS:
            shutil.copyfile(ROOT / path, self.root / path)

    def collect(self, *args):
        """Exit code, and what it printed."""
        done = subprocess.run([sys.executable, COLLECT, "--root", self.root, *args], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def change(self, path, *parts):
        """Replaces parts of a file, or appends to it."""
        text = (self.root / path).read_text()
        for before, after in zip(parts[::2], parts[1::2]):
            self.assertIn(before, text)
            text = text.replace(before, after, 1)
        (self.root / path).write_text(text + (parts[-1] if len(parts) % 2 else ""))

    def text(self, path):
        return (self.root / path).read_text()

    def test_the_committed_files_are_up_to_date(self):
        done = subprocess.run([sys.executable, COLLECT, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_change_is_noticed_and_written(self):
        self.assertEqual(self.collect(), (0, ""), "nothing changed, so nothing is written")
        self.change(OP, "inline Value exp(Value x)", "inline Value exp(Value y)")
        (self.root / "graph/ops/abs.cpp").unlink()
        code, said = self.collect("--check")
        self.assertEqual(code, 1)
        for path in ("graph/ops/exp.h", "graph/ops/abs.h", "graph/ops.h", "graph/all_ops.cpp"):
            self.assertIn(f"{path} is not up to date: run scripts/collect.py", said)
        self.assertIn("Value exp(Value x)", self.text("graph/ops/exp.h"), "--check writes nothing")
        self.assertEqual(self.collect()[0], 0)
        self.assertIn("Value exp(Value y)", self.text("graph/ops/exp.h"))
        self.assertFalse((self.root / "graph/ops/abs.h").exists())
        self.assertNotIn("abs_op", self.text("graph/all_ops.cpp"))
        self.assertEqual(self.collect("--check"), (0, ""))

    def test_all_records_of_a_file_are_collected(self):
        self.change(MODEL, "\nextern const ModelDef another_model{};\n")
        self.change(OPTIMIZER, "\nstruct TUTTI_API Another {\n};\n")
        self.assertEqual(self.collect()[0], 0)
        self.assertIn("    &cnn_model,\n    &another_model,\n", self.text("train/task/all_models.cpp"))
        self.assertIn("Adam, Another, Adamax", self.text("train/optimizers.h"))

    def test_ops_are_in_the_order_of_their_names(self):
        names = [line.strip(" &,")[:-len("_op")] for line in self.text("graph/all_ops.cpp").splitlines() if line.startswith("    &")]
        self.assertGreater(len(names), 100)
        self.assertEqual(names, sorted(names))

    def refused(self, path, message, *parts):
        with self.subTest(message=message):
            before = self.text(path)
            self.change(path, *parts)
            code, said = self.collect()
            self.assertEqual(code, 1)
            self.assertIn(f"{path}: ", said)
            self.assertIn(message, said)
            (self.root / path).write_text(before)

    def test_an_op_is_refused(self):
        end, function = "// end of public", "/// Twice.\nValue twice(Value x, int n);\n// end of public"
        self.refused(OP, "between the lines", "// public\n", "")
        self.refused(OP, "1 records, of which 0 read", "const OpDef exp_op{", "const OpDef exp_op = {")
        self.refused(OP, "2 records, of which 1 read", "\nconst OpDef exp2_op = {};\n")
        self.refused(OP, "2 records, of which 1 read", "\nconst auto exp2_op = OpDef{};\n")
        self.refused(OP, "its public block lacks", "extern TUTTI_API const OpDef exp_op;\n", "")
        self.refused(OP, '"Value twice(…)" is neither inline nor TUTTI_API', end, function)
        self.refused(OP, '"Value exp(…)" is neither inline nor', "inline Value exp(", "Value exp(")
        self.change(OP, end, "TUTTI_API " + function.split("\n", 1)[1])
        self.assertEqual(self.collect()[0], 0)

    def test_a_model_is_refused(self):
        self.refused(MODEL, "of which 0 read", "extern const ModelDef cnn_model{", "const ModelDef cnn_model{")
        self.refused(MODEL, "2 records, of which 1 read", "\nconst auto another = ModelDef{};\n")
        self.refused(MODEL, "2 records, of which 1 read", "\nextern const ModelDef another = {};\n")

    def test_an_optimizer_is_refused(self):
        self.refused(OPTIMIZER, "1 records, of which 0 read", "struct TUTTI_API Adam {", "struct Adam {")
        self.refused(OPTIMIZER, "2 records, of which 1 read", "\nstruct TUTTI_API Nadam final {\n};\n")
        (self.root / OPTIMIZER).write_text("#pragma once\n")
        self.assertIn("0 records", self.collect()[1])


if __name__ == "__main__":
    unittest.main()
