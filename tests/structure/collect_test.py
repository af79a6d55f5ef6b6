"""What the build does not recognise in a folder of records is an error, not silence."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OP = (ROOT / "graph/ops/exp.cpp").read_text()
MODEL = (ROOT / "train/models/cnn.cpp").read_text()
OPTIMIZER = (ROOT / "train/optimizers/adam.h").read_text()


class Collect(unittest.TestCase):
    def collected(self, script, text, *definitions, name="one.cpp"):
        """Exit code and message, and the text of what was written."""
        with tempfile.TemporaryDirectory(prefix="tutti-collect-") as folder:
            folder = pathlib.Path(folder)
            (folder / "in").mkdir()
            (folder / "in" / name).write_text(text)
            done = subprocess.run(["cmake", f"-DFOLDER={folder}/in", *[d.format(out=folder / "out") for d in definitions], "-P",
                                   ROOT / "cmake" / script], capture_output=True, text=True, check=False)
            written = "".join(path.read_text() for path in sorted(folder.glob("out/**/*")) if path.is_file())
            return done.returncode, " ".join(done.stderr.split()), written

    def refused(self, outcome, message):
        code, error, _ = outcome
        self.assertNotEqual(code, 0)
        self.assertIn(message, error)

    def op(self, text):
        return self.collected("CollectOps.cmake", text, "-DOUT={out}")

    def model(self, text):
        return self.collected("CollectRecords.cmake", text, "-DTYPE=ModelDef", "-DNAMESPACE=tutti", "-DHEADER=train/task/model.h",
                              "-DFUNCTION=all_models", "-DOUT={out}/all.cpp")

    def optimizer(self, text):
        return self.collected("CollectOptimizers.cmake", text, "-DOUT={out}/optimizers.h", name="one.h")

    def test_what_is_right_is_collected(self):
        for outcome, expected in [(self.op(OP), "&exp_op,"), (self.model(MODEL), "all[] = {&cnn_model, }"),
                                  (self.optimizer(OPTIMIZER), "using BuiltInOptimizers = std::tuple<Adam>;")]:
            with self.subTest(expected=expected):
                self.assertEqual(outcome[0], 0, outcome[1])
                self.assertIn(expected, outcome[2])

    def test_all_of_a_file_are_collected(self):
        second = MODEL + "\nconst ModelDef another_model{};\n"
        self.assertIn("{&cnn_model, &another_model, }", self.model(second)[2])
        _, _, written = self.optimizer(OPTIMIZER + "\nstruct TUTTI_API Nadam {\n};\n")
        self.assertIn('#include "train/optimizers/one.h"', written)
        self.assertIn("std::tuple<Adam, Nadam>", written)

    def test_an_op_is_refused(self):
        function = "/// Twice.\nValue twice(Value x, int n);\n"
        for text, message in [(OP.replace("// public\n", "", 1), "between the lines"),
                              (OP.replace("const OpDef exp_op{", "const OpDef exp_op = {"), "1 records, of which 0 read"),
                              (OP + "\nconst OpDef exp2_op = {};\n", "2 records, of which 1 read"),
                              (OP + "\nconst auto exp2_op = OpDef{};\n", "2 records, of which 1 read"),
                              (OP.replace("extern TUTTI_API const OpDef exp_op;\n", ""), "its public block lacks"),
                              (OP.replace("// end of public", function + "// end of public"),
                               '"Value twice(…)" is neither inline nor TUTTI_API'),
                              (OP.replace("inline Value exp(", "Value exp("), '"Value exp(…)" is neither inline nor'),
                              ("namespace tutti {}\n// public\n// end of public\n", "0 records")]:
            with self.subTest(message=message):
                self.refused(self.op(text), message)
        exported = function.replace("Value twice", "TUTTI_API Value twice")
        self.assertEqual(self.op(OP.replace("// end of public", exported + "// end of public"))[0], 0)

    def test_a_model_is_refused(self):
        for text, message in [(MODEL.replace("const ModelDef cnn_model{", "const auto cnn_model = ModelDef{"), "of which 0 read"),
                              (MODEL + "\nconst auto another = ModelDef{};\n", "2 records, of which 1 read"),
                              (MODEL + "\nconst ModelDef another = {};\n", "2 records, of which 1 read")]:
            with self.subTest(message=message):
                self.refused(self.model(text), message)

    def test_an_optimizer_is_refused(self):
        for text, message in [(OPTIMIZER.replace("struct TUTTI_API Adam {", "struct Adam {"), "1 records, of which 0 read"),
                              (OPTIMIZER + "\nstruct TUTTI_API Nadam final {\n};\n", "2 records, of which 1 read"),
                              ("#pragma once\n", "0 records")]:
            with self.subTest(message=message):
                self.refused(self.optimizer(text), message)


if __name__ == "__main__":
    unittest.main()
