"""Cases for the judge (onnx_node_cases) whose expected values are onnxruntime's. Exits with 77 where there is none."""
import glob
import os
import subprocess
import sys
import tempfile

cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
made = os.environ.get("TUTTI_ONNX_CASES") or os.path.join(cache, "tutti", "onnx-cases")
sys.path += glob.glob(made + ".env/lib/python3*/site-packages")
try:
    import numpy as np
    import onnx.numpy_helper
    import onnxruntime
    from onnx import TensorProto, helper
except ImportError as e:
    print(e)
    sys.exit(1 if "onnxruntime" in os.environ.get("TUTTI_REQUIRE_PACKAGES", "").split(",") else 77)


def quiet():
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return options


def computed(model, feeds):
    """What onnxruntime computes of a model."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), quiet(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def model_of(nodes, feeds, outputs, opset, weights=(), domains=(), ir_version=8):
    """A model of nodes whose inputs are the feeds and whose outputs are names, or names with their types."""
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()]
    ends = [helper.make_tensor_value_info(*(o if isinstance(o, tuple) else (o, TensorProto.FLOAT)), None) for o in outputs]
    held = [onnx.numpy_helper.from_array(np.asarray(x), n) for n, x in dict(weights).items()]
    graph = helper.make_graph(nodes, "g", ports, ends, held)
    sets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*d) for d in domains)]
    return helper.make_model(graph, opset_imports=sets, ir_version=ir_version)


def write(path, array):
    with open(path, "wb") as f:
        f.write(onnx.numpy_helper.from_array(array).SerializeToString())


def judge(command, cases):
    """Runs the judge over (name, model, feeds[, expected outputs])."""
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        for name, model, feeds, *expected in cases:
            data = os.path.join(folder, f"{count}.{name}", "test_data_set_0")
            os.makedirs(data)
            onnx.save(model, os.path.join(folder, f"{count}.{name}", "model.onnx"))
            for i, x in enumerate(feeds.values()):
                write(os.path.join(data, f"input_{i}.pb"), x)
            for i, y in enumerate(expected[0] if expected else computed(model, feeds)):
                write(os.path.join(data, f"output_{i}.pb"), y)
            count += 1
        print(f"{count} cases")
        return subprocess.run([*command, folder], check=False).returncode
