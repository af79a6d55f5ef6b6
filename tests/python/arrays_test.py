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
        with self.assertRaisesRegex(tutti.InvalidError, r"feed 'x' is f32\[4\], a tensor f32\[3\]"):
            p.run(x=np.ones(3, np.float32))
        with self.assertRaisesRegex(tutti.InvalidError, r"feed 'x' is f32\[4\], a tensor f64\[4\]"):
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
            with self.assertRaisesRegex(tutti.DeclinedError, "memory of state 'n' cannot be shared.*read it"):
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
