"""The Python blocks of docs/PYTHON.md run in order and print what the blocks behind them say; that of README.md runs as it
stands. With a class as argument: NumPy or PyTorch."""
import contextlib
import importlib.util
import io
import math
import os
import pathlib
import re
import sys
import tempfile
import traceback
import unittest

import tutti

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
PART = re.compile(r"^## PyTorch$", re.M)  # where the tutorial's second half begins, which stands by itself
MADE_UP = "synthetic:1x28x28:10:4096:512"
REAL, WHOLE = r"-?\d+\.\d+(?:e[-+]\d+)?", r"\d+"


def examples(text):
    """(code, expected output) of every Python block; a block without a language behind it is what it prints."""
    blocks = [m.groups() for m in BLOCK.finditer(text)]
    for i, (language, code) in enumerate(blocks):
        if language == "python":
            after = blocks[i + 1] if i + 1 < len(blocks) else ("end", "")
            yield code, after[1] if after[0] == "" else ""


def output(code, namespace):
    """What a block prints, and the last line of its traceback if it raises."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(code, "<block>", "exec"), namespace)
        except Exception as e:
            print("".join(traceback.format_exception_only(e)), end="")
    return out.getvalue()


def agree(wanted, found, values=True):
    """Whether they are the same text up to "…" (anything), the width of spaces and 2 % of reals; without `values` all numbers
    may differ."""
    tokens = re.split(rf"(…|{REAL}|{WHOLE}|\s+)", wanted.strip())
    pattern = "".join(r"[\s\S]*?" if t == "…" else r"\s+" if t.isspace() else
                      rf"({REAL})" if re.fullmatch(REAL, t) else r"\d+" if t.isdigit() and not values else re.escape(t)
                      for t in tokens if t)
    same = re.fullmatch(pattern, found.strip())
    wanted_reals = [t for t in tokens if re.fullmatch(REAL, t)]
    return bool(same) and (not values or all(
        math.isclose(float(a), float(b), rel_tol=0.02, abs_tol=1e-3) for a, b in zip(wanted_reals, same.groups())))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.enterContext(contextlib.chdir(folder.name))

    def run_all(self, text, data=None):
        """Runs every block; with `data` in place of Fashion-MNIST, and then with whatever numbers it gives."""
        namespace, count = {"__name__": "tutorial"}, 0
        for count, (code, wanted) in enumerate(examples(text), 1):
            found = output(code.replace("fashion-mnist", data or "fashion-mnist"), namespace)
            if data:  # which is named otherwise, and of floats
                found = found.replace("synthetic/", "fashion-mnist/").replace("f32[1, 28, 28]", "u8[1, 28, 28]")
            self.assertTrue(agree(wanted, found, values=data is None), f"\n{code}--- expected:\n{wanted}--- printed:\n{found}")
        return count

    def run_tutorial(self, half, data=None):
        self.assertGreater(self.run_all(PART.split((ROOT / "docs/PYTHON.md").read_text())[half], data), 4)


def has_fashion_mnist():
    try:
        return bool(tutti.open_data("fashion-mnist"))
    except tutti.Error:
        return False


class NumPy(Case):
    @unittest.skipUnless(has_fashion_mnist(), "Fashion-MNIST is not installed")
    def test_the_tutorial(self):
        self.run_tutorial(0)

    def test_the_tutorial_with_synthetic_data(self):
        self.run_tutorial(0, MADE_UP)

    def test_this_judge_sees_differences(self):
        self.assertTrue(agree("loss 0.500, 3 of …\n", "loss   0.501, 3 of 7 and more\n"))
        for found in ("loss 0.600, 3 of 7", "loss 0.500, 4 of 7", "los 0.500, 3 of 7", ""):
            self.assertFalse(agree("loss 0.500, 3 of …\n", found), found)
        self.assertTrue(agree("loss 0.500, 3 of …", "loss 0.600, 4 of 7", values=False))
        self.assertFalse(agree("loss 0.500, 3 of …", "loss nan, 4 of 7", values=False))


class PyTorch(Case):
    def test_the_tutorial(self):
        self.run_tutorial(1, None if has_fashion_mnist() else MADE_UP)

    def test_the_readme(self):
        blocks = [code for code, _ in examples((ROOT / "README.md").read_text())]
        self.assertEqual(len(blocks), 1)
        losses = [float(line) for line in output(blocks[0], {}).splitlines()]
        self.assertEqual(len(losses), 10)
        self.assertLess(losses[-1], losses[0] / 2)


def lacking():
    """What this test needs and is not here."""
    wanted = sys.argv[1:] or ["NumPy", "PyTorch"]
    text = PART.split((ROOT / "docs/PYTHON.md").read_text())["PyTorch" in wanted]
    here = {d.plugin for d in tutti.devices() if d.usable}
    missing = sorted(set(re.findall(r'"(onednn|opencl|vulkan)"', text)) - here)
    packages = ["torch", "torchvision"] if any("PyTorch" in w for w in wanted) else []
    return missing + [p for p in packages if importlib.util.find_spec(p) is None]


if __name__ == "__main__":
    if missing := lacking():
        print("not here:", ", ".join(missing))
        required = ",".join(os.environ.get(v, "") for v in ("TUTTI_REQUIRE", "TUTTI_REQUIRE_PACKAGES")).split(",")
        sys.exit(1 if set(missing) & set(required) else 77)
    unittest.main()
