"""What the build does not recognise in a folder of records is an error, not silence."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OP = (ROOT / "graph/ops/exp.cpp").read_text()
MODEL = (ROOT / "train/models/cnn.cpp").read_text()


class Collect(unittest.TestCase):
    def collected(self, script, text, *definitions):
        with tempfile.TemporaryDirectory(prefix="tutti-collect-") as name:
            folder = pathlib.Path(name)
            (folder / "in").mkdir()
            (folder / "in/one.cpp").write_text(text)
            done = subprocess.run(["cmake", f"-DFOLDER={folder}/in", *[d.format(out=folder / "out") for d in definitions], "-P",
                                   ROOT / "cmake" / script], capture_output=True, text=True, check=False)
            return done.returncode, " ".join(done.stderr.split())

    def op(self, text):
        return self.collected("CollectOps.cmake", text, "-DOUT={out}")

    def model(self, text):
        return self.collected("CollectRecords.cmake", text, "-DTYPE=ModelDef", "-DNAMESPACE=tutti", "-DHEADER=train/model.h",
                              "-DFUNCTION=all_models", "-DOUT={out}/all.cpp")

    def test_what_is_right_is_collected(self):
        self.assertEqual(self.op(OP)[0], 0)
        self.assertEqual(self.model(MODEL)[0], 0)

    def test_an_op_is_refused(self):
        for text, message in [(OP.replace("// public\n", "", 1), "between the lines"),
                              (OP.replace("const OpDef exp_op{", "const OpDef exp_op = {"), "1 records, of which 0 read"),
                              (OP.replace("extern TUTTI_API const OpDef exp_op;\n", ""), "its public block lacks"),
                              ("namespace tutti {}\n// public\n// end of public\n", "0 records")]:
            with self.subTest(message=message):
                code, error = self.op(text)
                self.assertNotEqual(code, 0)
                self.assertIn(message, error)

    def test_a_model_without_a_record_is_refused(self):
        code, error = self.model(MODEL.replace("const ModelDef cnn_model{", "const auto cnn_model = ModelDef{"))
        self.assertNotEqual(code, 0)
        self.assertIn("no record reads", error)


if __name__ == "__main__":
    unittest.main()
