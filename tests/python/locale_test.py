"""A program that took its user's locale reads and writes numbers as before: with decimal points."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = """
import locale
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.localeconv()["decimal_point"] == ","
import tutti
train, test = tutti.open_data("synthetic:8:2:32:16")
model = tutti.nn.Sequential(tutti.nn.Linear(2))
trainer = tutti.Trainer(tutti.classification(model), "reference", tutti.optim.SGD(lr=0.5, momentum=0.25), batch=16, seed=1,
                        schedule="step:1:0.5", total=4)
print(trainer.fit(train, test, epochs=2))
"""


class Locale(unittest.TestCase):
    def test_numbers_have_points(self):
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"], capture_output=True, check=False)
            if not pathlib.Path(folder, "de_DE.UTF-8").is_dir():
                self.skipTest(f"de_DE cannot be made (package locales): {made.stderr}")
            result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False,
                                    env={**os.environ, "LOCPATH": folder, "TUTTI_PROBE_SECONDS": "60.5", "TUTTI_CACHE": "off"})
            plain = subprocess.run([sys.executable, "-c", PROGRAM[PROGRAM.index("import tutti"):]],
                                   capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("TUTTI_PROBE_SECONDS", result.stderr)
        numbers = [line.split()[:5] for line in result.stdout.splitlines()]  # but the seconds
        self.assertEqual(numbers, [line.split()[:5] for line in plain.stdout.splitlines()])
        self.assertRegex(numbers[-1][2], r"^\d\.\d+$")


if __name__ == "__main__":
    unittest.main()
