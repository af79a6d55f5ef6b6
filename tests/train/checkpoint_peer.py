"""Files of the Python library pass through ours unchanged, and its reader takes what we write. 77: not installed."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

tensors = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "d": np.array([1 / 3]),
    "h": np.array([1, 2], dtype=np.float16),
    "step": np.array(2**40, dtype=np.int64),
    "i": np.array([-1, 7], dtype=np.int32),
    "u": np.array([0, 255, 3], dtype=np.uint8),
    "flag": np.array([True, False, True]),
    "bits": np.array([2**32 - 1], dtype=np.uint32),
    "empty": np.zeros((0, 4), dtype=np.float32),
}
metadata = {"seed": "1", "name": "ü"}
with tempfile.TemporaryDirectory() as folder:
    theirs, ours = os.path.join(folder, "theirs"), os.path.join(folder, "ours")
    save_file(tensors, theirs, metadata=metadata)
    subprocess.run([sys.argv[1], theirs, ours], check=True)
    back = load_file(ours)
    assert set(back) == set(tensors), set(back) ^ set(tensors)
    for name, t in tensors.items():
        b = back[name]
        assert b.dtype == t.dtype and b.shape == t.shape and b.tobytes() == t.tobytes(), name
    with safe_open(ours, "np") as f:
        assert f.metadata() == metadata, f.metadata()
print(f"{len(tensors)} tensors passed through")
