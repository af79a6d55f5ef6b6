#!/usr/bin/env python3
"""The ONNX forms of our ops, op by op: what onnx_op_cases wrote runs in our own reader, or in onnxruntime.

usage: op_forms.py OP_CASES NODE_CASES | op_forms.py OP_CASES --onnxruntime     77: no onnxruntime (scripts/onnx-cases.sh)
"""
import collections
import pathlib
import subprocess
import sys
import tempfile


def runtime(folder):
    """The worst difference per op, as a part of 1e-5 + 1e-4 of the largest element; returns how many cases fail."""
    from runtime import np, onnx, onnxruntime, quiet

    def tensor(path):
        t = onnx.TensorProto()
        t.ParseFromString(path.read_bytes())
        return onnx.numpy_helper.to_array(t)

    failed, skipped, worst = 0, 0, collections.defaultdict(float)
    for case in sorted(folder.iterdir()):
        try:
            model = onnx.load(case / "model.onnx")
            kinds = [p.type.tensor_type for p in (*model.graph.input, *model.graph.output)]
            if any(k.elem_type == onnx.TensorProto.BFLOAT16 or 0 in [d.dim_value for d in k.shape.dim] for k in kinds):
                skipped += 1  # NumPy has no bf16; checker and runtime do not agree about tensors without elements
                continue
            onnx.checker.check_model(model, full_check=True)
            session = onnxruntime.InferenceSession(str(case / "model.onnx"), quiet(), providers=["CPUExecutionProvider"])
            data = case / "test_data_set_0"
            fed = {i.name: tensor(data / f"input_{k}.pb") for k, i in enumerate(session.get_inputs())}
            for k, y in enumerate(session.run(None, fed)):
                expected = tensor(data / f"output_{k}.pb")
                assert y.dtype == expected.dtype and y.shape == expected.shape, (y.dtype, y.shape, expected.shape)
                if y.dtype.kind == "f" and y.size:
                    finite = np.isfinite(expected)
                    assert np.array_equal(y[~finite], expected[~finite], equal_nan=True), "infinities differ"
                    narrow = 1 if y.itemsize > 2 else 1e2
                    limit = narrow * (1e-5 + 1e-4 * np.abs(expected[finite]).max(initial=0))
                    off = float(np.abs(y[finite] - expected[finite]).max(initial=0) / limit)
                    worst[case.name.split(".")[0]] = max(worst[case.name.split(".")[0]], off)
                    assert off <= 1, f"{off:.1f} times what may be"
                else:
                    assert np.array_equal(y, expected), (y, expected)
        except Exception as e:  # pylint: disable=broad-except
            if "Integer division by zero" in str(e):  # an error there, some number with us
                skipped += 1
                continue
            failed += 1
            print(f"{case.name}: {type(e).__name__}: {str(e)[:300]}")
    top = sorted(worst.items(), key=lambda item: -item[1])[:5]
    print(f"{skipped} skipped, {failed} failed in onnxruntime; the worst parts of what may be: {', '.join(f'{n} {x:.2f}' for n, x in top)}")
    return failed


def main():
    with tempfile.TemporaryDirectory() as folder:
        if code := subprocess.run([sys.argv[1], folder], check=False).returncode:
            return code
        if sys.argv[2] == "--onnxruntime":
            return 1 if runtime(pathlib.Path(folder)) else 0
        return subprocess.run([sys.argv[2], "--strict", folder], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
