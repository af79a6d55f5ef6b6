"""The notebooks of examples/ run, and give outputs of the kinds that are stored in them. With TUTTI_UPDATE set what they give
is stored anew."""
import os
import pathlib
import sys
import tempfile
import unittest

try:
    import ipykernel  # noqa: F401
    import nbclient
    import nbformat
    import torch  # noqa: F401
except ImportError as e:
    print(f"{e.name} is not installed: scripts/python-env.sh --torch")
    sys.exit(1 if "torch" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/notebooks"


def kinds(cell):
    """What a cell gives: the streams and, of results, the formats."""
    return [o.get("name") or sorted(o.get("data", {})) or o.output_type for o in cell.outputs]


class Notebooks(unittest.TestCase):
    def test_run_and_give_what_they_show(self):
        notebooks = sorted(FOLDER.glob("*.ipynb"))
        self.assertGreaterEqual(len(notebooks), 2)
        for file in notebooks:
            with self.subTest(file.name), tempfile.TemporaryDirectory() as folder:
                notebook = nbformat.read(file, as_version=4)
                nbformat.validate(notebook)
                stored = [kinds(c) for c in notebook.cells if c.cell_type == "code"]
                nbclient.NotebookClient(notebook, timeout=240, record_timing=False, coalesce_streams=True,
                                        resources={"metadata": {"path": folder}}).execute()
                if "TUTTI_UPDATE" in os.environ:
                    nbformat.write(notebook, file)
                    continue
                code = [c for c in notebook.cells if c.cell_type == "code"]
                for cell, wanted in zip(code, stored):
                    self.assertEqual(kinds(cell), wanted, f"{cell.source}\n{cell.outputs}")
                self.assertEqual([c.execution_count for c in code], list(range(1, len(code) + 1)))


if __name__ == "__main__":
    unittest.main()
