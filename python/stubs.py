"""Writes the type stubs that come from the extension module: _core.pyi, and ops.pyi from the records of the ops.

    stubs.py FOLDER     the built package
"""
import inspect
import pathlib
import subprocess
import sys
import types

folder = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(folder.parent))
import tutti  # noqa: E402, F401  (adds the operators)
from tutti import _core  # noqa: E402

HEAD = '''"""Every op of the engine, made from its record."""
from collections.abc import Sequence
from typing import Any

import numpy as np

from tutti._core import Graph, Value

Input = Value | float | np.ndarray[Any, Any]

def constant(value: Input, like: Value) -> Value: ...
def add_node(name: str, inputs: Sequence[Input], attrs: dict[str, Any], graph: Graph | None = None) -> Any: ...

'''


def op(record):
    inputs = record["inputs"]
    variadic = bool(inputs) and inputs[-1].endswith("...")
    fixed = inputs[:-1] if variadic else inputs
    parameters = [f"{name}: Input" for name in fixed] + (["/"] if fixed else [])
    parameters.append(f"*{inputs[-1][:-3]}: Input | Sequence[Input]" if variadic else "*")
    for name, kind in record["kinds"].items():
        if name.isidentifier():
            parameters.append(f"{name}: {kind if kind == 'str' else f'{kind} | Sequence[{kind}]'} = ...")
    parameters.append("graph: Graph | None = None")
    count = len(record["results"])
    result = "Value" if count == 1 else f"tuple[{', '.join(['Value'] * count)}]"
    doc = record["doc"] + (" " if record["doc"].endswith('"') else "")
    return f'def {record["name"]}({", ".join(parameters)}) -> {result}:\n    """{doc}"""\n'


def operators():
    """Value's operators, which tutti.values adds to the class."""
    lines = []
    for name, f in sorted(vars(_core.Value).items()):
        if isinstance(f, types.FunctionType):
            parameters = list(inspect.signature(f).parameters)[1:]
            lines.append(f"    def {name}({', '.join(['self', *(p + ': Any' for p in parameters)])}) -> {'bool' if name == '__bool__' else 'Value'}: ...\n")
    return "\n".join(lines)


(folder / "ops.pyi").write_text(HEAD + "\n".join(op(r) for r in _core.op_records()))
core = folder / "_core.pyi"
# By itself: within the package the class has what tutti.values adds, without types.
subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-i", folder, "-m", "_core", "-o", core], check=True)
text = core.read_text().replace("from typing import Annotated", "from typing import Annotated, Any")
before, after = text.split("class Value:\n", 1)
documentation, rest = after.split("\n\n", 1)
core.write_text(f"{before}class Value:\n{documentation}\n\n{operators()}\n{rest}")
