"""Arrays in and out, memory that is shared, and who may use a session: one thread at a time, in one process, until it is closed."""
import gc
import multiprocessing
import os
import threading
import unittest

import numpy as np

import tutti
from tutti import nn, ops


def doubled(device="onednn", shape=(4,), dtype="f32"):
    """A program: state y = 2 x."""
    g = tutti.Graph()
    g.set_state("y", g.feed("x", dtype, list(shape)) * 2)
    return tutti.Program(g, device)


def counter(device):
    """A program that adds the feed x to its state n."""
    g = tutti.Graph()
    n = g.state("n", "f32", [4])
    g.set_state("n", n + g.feed("x", "f32", [4]), "buffer")
    return tutti.Program(g, device)


class OneCopy:
    """An array of another library: DLPack 1.0, and nothing else. Says what it was asked."""

    def __init__(self, array):
        self.array, self.asked = array, []

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.array.__dlpack__(**options)


class Arrays(unittest.TestCase):
    def test_dtypes(self):
        for dtype, name in (("float32", "f32"), ("float64", "f64"), ("float16", "f16"), ("int32", "i32"), ("uint8", "u8"),
                            ("uint32", "u32"), ("int64", "i64")):
            g = tutti.Graph()
            g.set_state("y", ops.concat([g.feed("x", name, [3])] * 2, axis=0))
            p = tutti.Program(g, "reference")
            x = np.array([1, 2, 3], dtype)
            p.run(x=x)
            self.assertEqual(p["y"].dtype, x.dtype)
            np.testing.assert_array_equal(p["y"], np.concatenate([x, x]))

    def test_others_by_dlpack(self):
        p, x = doubled(), OneCopy(np.arange(4, dtype=np.float32))
        p.run(x=x)
        np.testing.assert_array_equal(p["y"], [0, 2, 4, 6])
        self.assertEqual(len(x.asked), 1)
        versions = [o["max_version"] for o in x.asked if "max_version" in o]
        self.assertTrue(all(v >= (1, 0) for v in versions))

    def test_views_and_read_only_arrays(self):
        p = doubled()
        x = np.arange(8, dtype=np.float32)
        p.run(x=x[::2])
        np.testing.assert_array_equal(p["y"], [0, 4, 8, 12])
        fixed = np.arange(4, dtype=np.float32)
        fixed.flags.writeable = False
        p.run(x=fixed)
        np.testing.assert_array_equal(p["y"], [0, 2, 4, 6])

    def test_out_by_dlpack(self):
        p = doubled()
        p.run(x=np.ones(4, np.float32))
        y = p["y"]
        for options in ({}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": True}, {"dl_device": (1, 0), "max_version": (1, 0)}):
            again = np.from_dlpack(type("Holder", (), {"__dlpack__": lambda _, **k: y.__dlpack__(**options),
                                                        "__dlpack_device__": lambda _: y.__dlpack_device__()})())
            np.testing.assert_array_equal(again, 2)

    def test_bad_ones_name_what_was_expected(self):
        p = doubled()
        with self.assertRaisesRegex(tutti.InvalidError, r"feed 'x' has type f32\[4\], but the given tensor has type f32\[3\]"):
            p.run(x=np.ones(3, np.float32))
        with self.assertRaisesRegex(tutti.InvalidError, r"feed 'x' has type f32\[4\], but the given tensor has type f64\[4\]"):
            p.run(x=np.ones(4))
        with self.assertRaisesRegex(tutti.InvalidError, "use float16"):
            p.run(x=np.ones(4, np.complex64))
        with self.assertRaisesRegex(tutti.InvalidError, "no feed 'z'.*'x'"):
            p.run(z=np.ones(4, np.float32))

        class Elsewhere(OneCopy):
            device = "cuda:0"

            def __dlpack_device__(self):
                return 2, 0

        with self.assertRaisesRegex(tutti.InvalidError, r"an array on cuda:0: bring it to the host first"):
            p.run(x=Elsewhere(np.ones(4, np.float32)))


def through_every_door(x, device="reference"):
    """What the engine holds of x[4] or [4, k] after each way in, as f32."""
    seen = {}
    rows = np.arange(4, dtype=np.float32)

    def run(array):
        # The engine's own type of the array is found by the door for data.
        p = tutti.Program(identity(array), device)
        p.run(x=array)
        return p["y"]

    def identity(array):
        g = tutti.Graph()
        try:
            a = tutti.data.as_array(array)
        except tutti.InvalidError:
            a = np.zeros(4, np.float32)
        g.set_state("y", g.feed("x", tutti.graphs.dtype_name(a), list(a.shape)))
        return g

    def constant(array):
        g = tutti.Graph()
        g.set_state("y", g.constant(array))
        p = tutti.Program(g, device)
        p.run()
        return p["y"]

    def operand(array):
        g = tutti.Graph()
        g.set_state("y", tutti.ops.concat([tutti.ops.constant(array, g.feed("x", "f32", [1]))], axis=0))
        p = tutti.Program(g, device)
        p.run(x=np.zeros(1, np.float32))
        return p["y"]

    def state(array):
        p = tutti.Program(identity(array), device)
        p["y"] = array
        return p["y"]

    def columns(array):
        return tutti.data.source({"input": array}), tutti.data.source({"input": array, "label": rows.astype(np.int32)})

    for door in (run, constant, operand, state, columns):
        try:
            seen[door.__name__] = door(x)
        except tutti.InvalidError as e:
            seen[door.__name__] = e
    return seen


class EveryKindOfArray(unittest.TestCase):
    """Right values or one typed error, at every door."""
    VALUES = np.array([1, 0, 3, 120])

    def good(self, x, expected=None):
        expected = self.VALUES if expected is None else expected
        for door, y in through_every_door(x).items():
            with self.subTest(door=door, x=repr(x)):
                self.assertNotIsInstance(y, Exception)
                if door != "columns":
                    np.testing.assert_array_equal(np.asarray(y, np.float64).reshape(np.shape(expected)), expected)

    def bad(self, x, *parts):
        for door, y in through_every_door(x).items():
            with self.subTest(door=door, x=repr(x)):
                self.assertIsInstance(y, tutti.InvalidError)
                for part in parts:
                    self.assertIn(part, str(y))

    def test_every_dtype_in_both_orders_of_bytes(self):
        for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
            for order in "<>=":
                self.good(self.VALUES.astype(order + code))
        self.good(np.array([True, False, True, True]), np.array([1, 0, 1, 1]))

    def test_layouts(self):
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        for view in (x.T.copy().T, x[:, ::-1], np.asfortranarray(x), x[::-1], np.broadcast_to(x[0], (4, 3)), x.astype(">f4")[::-1]):
            self.good(view, np.array(view))
        fixed = x.copy()
        fixed.flags.writeable = False
        self.good(fixed, x)
        packed = np.zeros(4, np.dtype([("a", "u1"), ("b", "<f4")]))
        packed["b"] = self.VALUES
        self.good(packed["b"])
        self.good(np.frombuffer(b"x" + self.VALUES.astype("<f4").tobytes(), "<f4", offset=1))
        self.good(np.matrix([[1, 0, 3, 120]], np.float32).T)
        self.good([1.0, 0, 3, 120])
        self.good(np.ma.masked_array(self.VALUES.astype("f4"), [False] * 4))
        self.good(np.ma.masked_array(self.VALUES.astype("f4")))

    def test_what_is_no_numbers(self):
        self.bad(np.array([1 + 2j] * 4), "complex", "x.real")
        self.bad(np.array([1, None, 2, 3]), "Python objects", "None")
        self.bad(np.array(["1", "2", "3", "4"]), "texts", "np.unique")
        self.bad(np.array([b"1", b"2", b"3", b"4"]), "texts")
        self.bad(np.array(["2024-01-01"] * 4, "M8[D]"), "times")
        self.bad(np.array([1] * 4, "m8[s]"), "spans of time")
        self.bad(np.zeros(4, [("a", "f4")]), "records", "array of its own")
        self.bad(np.ma.masked_array(self.VALUES.astype("f4"), [True, False, False, True]), "2 masked elements", "filled")
        self.bad(np.array([1, 2, 3, 2**63], np.uint64), "beyond int64")
        self.bad([[1], [1, 2], [1], [1]], "list is no array", "equal length")
        self.bad({"a": 1}, "Python objects")
        if np.dtype(np.longdouble).itemsize > 8:
            self.bad(np.ones(4, np.longdouble), "np.float64")

    def test_scalars_and_nothing(self):
        for x in (np.float32(2), np.array(2.0, ">f4"), 2.0):
            p = doubled(shape=())
            p.run(x=np.asarray(x, np.float32) if isinstance(x, float) else x)
            self.assertEqual(p["y"], 4)
        p = doubled(shape=(0, 3))
        p.run(x=np.zeros((0, 3), ">f4"))
        self.assertEqual(p["y"].shape, (0, 3))

    def test_training_data(self):
        x, y = np.random.default_rng(0).normal(size=(16, 3)), np.arange(16) % 2

        def weights(x, y, stream):
            t = tutti.Trainer(tutti.classification(nn.Linear(2)), device="onednn", batch=8, seed=1)
            t.fit([(x[k:k + 8], y[k:k + 8]) for k in (0, 8)] if stream else {"input": x, "label": y}, steps=2)
            return t.state_dict(), t

        for stream in (False, True):
            plain, trainer = weights(x.astype("f4"), y.astype("i4"), stream)
            for floats, ints in ((">f4", ">i4"), (">f8", ">i8"), ("<f8", "i8"), ("f4", "i1"), ("f4", ">u2"), ("f4", "u8")):
                x32 = x.astype("f4").astype(floats)
                other, _ = weights(x32, y.astype(ints), stream)
                for name, value in plain.items():
                    np.testing.assert_array_equal(other[name], value, f"{floats} {ints} {stream}")
            trainer.load_state_dict({k: v.astype(">f4") for k, v in plain.items()})
            for name, value in trainer.state_dict().items():
                np.testing.assert_array_equal(value, plain[name])
            with self.assertRaisesRegex(tutti.InvalidError, "texts"):
                weights(x.astype("f4"), y.astype("U"), stream)
        value, (grad,) = tutti.value_and_grad(lambda v: ops.sum(v * v), "reference")(np.array([1, 2], ">f4"))
        self.assertEqual(float(value), 5)
        np.testing.assert_array_equal(grad, [2, 4])

    def test_tensors_of_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        x = torch.tensor(self.VALUES)
        for dtype in (torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
                      torch.uint8, torch.uint16, torch.uint32):
            self.good(x.to(dtype))
        self.good(torch.tensor([True, False, True, True]), np.array([1, 0, 1, 1]))
        self.good(torch.tensor([1.0, 0, 3, 4]).to(torch.float8_e4m3fn), np.array([1, 0, 3, 4]))
        self.good(x.float().requires_grad_())
        self.good(torch.nn.Parameter(x.float()))
        self.good(x.float().flip(0).flip(0))
        self.good(torch.arange(12.0).reshape(3, 4).T, np.arange(12).reshape(3, 4).T)
        self.good(torch._neg_view(-x.float()))
        self.bad(x.float().to_sparse(), "sparse", "to_dense")
        self.bad(torch.quantize_per_tensor(x.float(), 1.0, 0, torch.qint8), "quantised", "dequantize")
        self.bad(x.to(torch.complex64), "complex", "x.real")
        self.bad(torch.empty(4, device="meta"), "an array on meta")


class Native(unittest.TestCase):
    def test_the_memory_of_a_state_is_shared(self):
        for device in ("onednn", "reference"):
            p = counter(device)
            n = tutti.native(p, "n")
            p.run(x=np.ones(4, np.float32))
            np.testing.assert_array_equal(n, 1)  # no read
            n[:] = [10, 20, 30, 40]              # no write
            p.run(x=np.ones(4, np.float32))
            np.testing.assert_array_equal(p["n"], [11, 21, 31, 41])
            p.close()
            del p
            gc.collect()
            np.testing.assert_array_equal(n, [11, 21, 31, 41])  # the array keeps the memory

    def test_a_device_that_shares_nothing_says_so(self):
        for device in ("opencl", "vulkan"):
            if not any(d.plugin == device and d.usable for d in tutti.devices()):
                self.assertNotIn(device, os.environ.get("TUTTI_REQUIRE", "").split(","))
                continue
            with self.assertRaisesRegex(tutti.DeclinedError, "memory of state 'n' is not supported.*copy the state"):
                tutti.native(counter(device), "n")
        with self.assertRaisesRegex(tutti.InvalidError, "no compiled graph has a state 'm'"):
            tutti.native(counter("onednn"), "m")


def child(results, parent_used):
    try:
        p = doubled("reference") if parent_used is None else parent_used
        p.run(x=np.ones(4, np.float32))
        results.put("ran")
    except tutti.InvalidError as e:
        results.put(str(e))


class Sessions(unittest.TestCase):
    def test_closed(self):
        p = doubled()
        p.close()
        p.close()
        with self.assertRaisesRegex(tutti.InvalidError, r"used after close\(\)"):
            p.run(x=np.ones(4, np.float32))
        data = {"input": np.ones((8, 3), np.float32), "label": np.arange(8, dtype=np.int32) % 2}
        t = tutti.Trainer(tutti.classification(nn.Linear(2)), device="onednn", batch=8)
        t.fit(data, steps=1)
        t.close()
        with self.assertRaisesRegex(tutti.InvalidError, r"used after close\(\)"):
            t.fit(data, steps=1)

    def test_the_fastest_device(self):
        x = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)

        @tutti.task
        def squares(builder, batch):
            return tutti.outcome(ops.mean((nn.Linear(4)(batch["x"]) - 1) ** 2, axes=[1]), batch)

        trainer = tutti.Trainer(squares, "fastest", batch=8)
        with self.assertRaisesRegex(tutti.InvalidError, "the first fit\\(\\) chooses the device"):
            trainer.load("x")
        with self.assertRaisesRegex(tutti.InvalidError, "timed on arrays"):
            trainer.fit([{"x": x[:8]}], epochs=1, progress=False)
        trainer.fit({"x": x}, epochs=1, progress=False)
        self.assertIn(trainer.device, [d.id for d in tutti.devices()])
        self.assertEqual(trainer.steps, 8)
        with self.assertRaisesRegex(tutti.InvalidError, "only a training run"):
            tutti.value_and_grad(lambda a: ops.sum(a), device="fastest")(x)

    def test_one_thread_at_a_time(self):
        p = doubled("onednn", (1 << 22,))
        x, errors, good = np.ones(1 << 22, np.float32), [], []

        def run():
            for _ in range(20):
                try:
                    p.run(x=x)
                    good.append(1)
                except tutti.InvalidError as e:
                    errors.append(str(e))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertTrue(good)
        self.assertTrue(errors)
        self.assertRegex(errors[0], "in use by another thread.*one thread use it at a time")
        p.run(x=x)

    def test_a_forked_child_is_told(self):
        program = doubled()
        program.run(x=np.ones(4, np.float32))
        context = multiprocessing.get_context("fork")
        for used in (program, None):
            results = context.Queue()
            process = context.Process(target=child, args=(results, used))
            process.start()
            self.assertRegex(results.get(timeout=60), 'forked from one that uses tutti.*"spawn"')
            process.join()

    def test_a_spawned_child_works(self):
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        process = context.Process(target=child, args=(results, None))
        process.start()
        self.assertEqual(results.get(timeout=60), "ran")
        process.join()


if __name__ == "__main__":
    unittest.main()
