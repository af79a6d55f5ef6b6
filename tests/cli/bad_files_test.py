"""Data sets and checkpoints that are missing, cut short or damaged, and disks that are full."""
import gzip
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import unittest

import harness
from harness import MLP, tutti

IDX = ["mlp", "--layers", "32,16,4", "--batch", "8", "--steps", "3"]


def idx(dims, data, dtype=8):
    return bytes([0, 0, dtype, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims) + data


class Names(harness.Case):
    """File names that are not UTF-8, which JSON cannot hold."""

    ODD = os.fsdecode(b"odd\xff")

    def test_a_profile(self):
        trace = self.folder / f"{self.ODD}.json"
        result = self.json("train", *MLP, "--steps", "10", "--no-eval", "--quiet", "--profile", trace)
        self.assertIn("odd\ufffd.json", result["profile"]["file"])
        self.assertTrue(json.loads(trace.read_text(encoding="utf-8"))["traceEvents"])

    def test_a_checkpoint_keeps_no_such_option(self):
        (self.folder / self.ODD).mkdir()
        net = self.folder / self.ODD / "net.json"
        net.write_text('{"layers": [{"Linear": {"out_features": 4}}]}', encoding="utf-8")
        run = [net, *MLP[1:3], "--steps", "1", "--no-eval"]
        self.done("train", *run)
        self.fails(2, ["odd\\xff/net.json", "a checkpoint cannot keep it, because it is not UTF-8", "omit --checkpoint"],
                   "train", *run, "--checkpoint", self.folder / "run")
        self.done("train", *MLP, "--steps", "1", "--no-eval", "--checkpoint", self.folder / self.ODD / "run")

    def test_a_folder_of_images(self):
        (self.folder / "set" / self.ODD).mkdir(parents=True)
        self.fails(2, ["the name of the folder", "not UTF-8"], "train", "cnn", "--data", f"images:{self.folder}/set")


class BadData(harness.Case):
    def setUp(self):
        super().setUp()
        self.put_all()

    def put_all(self):
        """40 training and 8 test images of 4x8 with labels 0..3; the training half packed."""
        for file in self.folder.iterdir():
            file.unlink()
        for prefix, n, pack in [("train", 40, True), ("t10k", 8, False)]:
            pixels = bytes((i * 37 + i // 32) % 256 for i in range(n * 32))
            self.put(f"{prefix}-images-idx3-ubyte", idx([n, 4, 8], pixels), pack)
            self.put(f"{prefix}-labels-idx1-ubyte", idx([n], bytes(i % 4 for i in range(n))), pack)

    def put(self, name, data, pack):
        path = self.folder / (name + (".gz" if pack else ""))
        path.write_bytes(gzip.compress(data) if pack else data)
        return path

    def train_on_it(self, parts):
        before = sorted(p.name for p in self.folder.iterdir())
        self.fails(2, parts, "train", *IDX, "--data", f"idx:{self.folder}", "--checkpoint", self.folder / "run")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), before)

    def test_the_good_set_trains(self):
        out = self.train(*IDX, "--data", f"idx:{self.folder}")
        self.assertEqual((out["steps"], out["parameters"]), (3, 32 * 16 + 16 + 16 * 4 + 4))

    def test_missing(self):
        self.fails(2, ["no such folder", "/nowhere"], "train", *IDX, "--data", "idx:/nowhere")
        for name in ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte",
                     "t10k-labels-idx1-ubyte"]:
            self.put_all()
            (self.folder / name).unlink()
            self.train_on_it([self.folder, name.removesuffix(".gz"), "plain or .gz"])

    def test_fashion_mnist_that_is_not_there(self):
        if os.path.exists("/usr/share/datasets/fashion-mnist"):
            self.skipTest("the package is installed")
        self.fails(2, ["apt install dataset-fashion-mnist"], "train", "mlp")

    def test_cut_short(self):
        for name in ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]:
            whole = (self.folder / name).read_bytes()
            for keep in (0, 3, 6, len(whole) - 1):
                with self.subTest(name=name, keep=keep):
                    (self.folder / name).write_bytes(whole[:keep])
                    self.train_on_it([self.folder / name, f"byte {keep}:", "fetch it again"])
            (self.folder / name).write_bytes(whole + b"x")
            self.train_on_it([self.folder / name, f"byte {len(whole)}:", "more data"])
            (self.folder / name).write_bytes(whole)

    def test_cut_short_gz(self):
        for name in ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"]:
            whole = (self.folder / name).read_bytes()
            for keep in (5, len(whole) // 2, len(whole) - 4):
                with self.subTest(name=name, keep=keep):
                    (self.folder / name).write_bytes(whole[:keep])
                    self.train_on_it([self.folder / name, "byte ", "fetch it again"])
            (self.folder / name).write_bytes(whole)

    def test_corrupt(self):
        path = self.folder / "t10k-images-idx3-ubyte"
        whole = path.read_bytes()
        for at, byte, parts in [(0, 7, ["byte 0", "magic number"]), (2, 0x55, ["byte 2", "element type 0x55"]),
                                (3, 9, ["byte 3", "rank 9"]), (4, 0xFF, ["byte ", "it should have"])]:
            with self.subTest(at=at):
                path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1:])
                self.train_on_it([path, *parts])
        path.write_bytes(whole)
        path = self.folder / "train-images-idx3-ubyte.gz"
        whole = path.read_bytes()
        for at in (12, len(whole) // 2, len(whole) - 6):  # inside the stream, and its checksum
            with self.subTest(gz=at):
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1:])
                self.train_on_it([path, "byte ", "fetch it again"])

    def test_labels_out_of_range(self):
        path = self.put("t10k-labels-idx1-ubyte", idx([8], bytes([0, 1, 2, 3, 0, 9, 2, 3])), False)
        self.train_on_it([path, "byte 13", "label 9 of sample 5", "[0, 4)"])
        # More classes in the training set than the model has outputs.
        self.put_all()
        self.put("train-labels-idx1-ubyte", idx([40], bytes(i % 5 for i in range(40))), True)
        self.train_on_it(["the output size is 4", "has 5"])

    def test_counts_differ(self):
        self.put("train-labels-idx1-ubyte", idx([39], bytes(39)), True)
        self.train_on_it(["train-images-idx3-ubyte.gz", "40 images", "train-labels-idx1-ubyte.gz", "39 labels",
                          "byte 4"])

    def test_halves_differ(self):
        self.put("t10k-images-idx3-ubyte", idx([8, 8, 4], bytes(256)), False)
        self.train_on_it(["u8[1, 4, 8]", "u8[1, 8, 4]"])

    def test_batch_larger_than_the_set(self):
        self.fails(2, ["--batch 41", "40 samples"], "train", *IDX, "--data", f"idx:{self.folder}", "--batch", "41")


class BadCheckpoints(harness.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "run"
        self.train(*MLP, "--steps", "2", "--checkpoint", self.file)
        self.whole = self.file.read_bytes()

    def both_fail(self, parts):
        before = self.file.read_bytes() if self.file.is_file() else None
        self.fails(2, parts, "eval", self.file)
        self.fails(2, parts, "train", "--steps", "4", "--resume", self.file)
        self.assertEqual(self.file.read_bytes() if self.file.is_file() else None, before)

    def test_missing(self):
        self.file.unlink()
        self.both_fail([self.file, "no such checkpoint"])
        self.file.mkdir()
        self.both_fail([self.file, "a folder"])

    def test_cut_short(self):
        for keep in (0, 5, 100, len(self.whole) - 1):
            with self.subTest(keep=keep):
                self.file.write_bytes(self.whole[:keep])
                self.both_fail([self.file, f"byte {keep}:"])
        self.file.write_bytes(self.whole + b"more")
        self.both_fail([self.file, f"byte {len(self.whole) + 4}:", f"it should have {len(self.whole)}"])

    def test_corrupt(self):
        for at, new, parts in [(0, b"\xff" * 8, ["byte 0"]), (8, b"x", ["byte 8"]), (40, b"\x00\x00", ["byte "])]:
            with self.subTest(at=at):
                self.file.write_bytes(self.whole[:at] + new + self.whole[at + len(new):])
                self.both_fail([self.file, *parts])
        self.file.write_bytes(b"GIF89a" * 100)
        self.both_fail([self.file, "byte "])

    def test_other_files(self):
        # Whole safetensors files that are no checkpoints of ours.
        def put(header):
            header = header.encode()
            self.file.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))

        tensor = '"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
        put('{' + tensor + '}')
        self.both_fail([self.file, "no metadata of a training run"])
        self.fails(2, [self.file, "do not match the model", "'1.bias' is missing", "'w' is not a parameter of the model"],
                   "eval", self.file, *MLP)
        put('{"__metadata__":{"run":"[1"},' + tensor + '}')
        self.both_fail([self.file, "'run'"])
        run = json.dumps(json.dumps({"model": "mlp", "batch": "many"}))
        put('{"__metadata__":{"run":' + run + '},' + tensor + '}')
        self.both_fail([self.file, "'run'", "many"])

    def changed(self, tensors={}, run={}, only=None):
        """The good checkpoint with other tensors (name: dtype, shape, bytes) and other options in its record."""
        size = struct.unpack("<Q", self.whole[:8])[0]
        header, data = json.loads(self.whole[8:8 + size]), self.whole[8 + size:]
        meta = header.pop("__metadata__")
        meta["run"] = json.dumps({**json.loads(meta["run"]), **run})
        parts = {n: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for n, t in header.items()}
        parts.update(tensors)
        out, body = {"__metadata__": meta}, b""
        for name, (dtype, shape, value) in parts.items():
            out[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(value)]}
            body += value
        text = json.dumps(out).encode()
        self.file.write_bytes(struct.pack("<Q", len(text)) + text + body)

    def test_numbers_that_no_run_comes_to(self):
        f, i = lambda *x: struct.pack(f"<{len(x)}f", *x), lambda x: struct.pack("<i", x)
        nan, inf = float("nan"), float("inf")
        for name, tensor, parts in [
            ("step", ("I32", [], i(-5)), ["'step' contains -5"]), ("step", ("I32", [], i(-2**31)), ["'step' contains -21"]),
            ("step", ("I32", [1], i(5)), ["tensor 'step' of type i32[] is missing"]),
            ("step", ("F32", [], f(1)), ["tensor 'step' of type i32[] is missing"]),
            ("seed", ("U32", [1], i(1)), ["tensor 'seed' of type u32[2] is missing"]),
            ("3.bias", ("F32", [4], f(0, nan, 0, 0)), ["'3.bias' contains nan"]),
            ("3.bias", ("F32", [4], f(0, 0, 0, -inf)), ["'3.bias' contains -inf"]),
            ("optimizer.m.3.bias", ("F32", [4], f(0, inf, 0, 0)), ["'optimizer.m.3.bias' contains inf"]),
            ("optimizer.v.3.bias", ("F32", [4], f(0, -1, 0, 0)), ["'optimizer.v.3.bias' contains -1"]),
            ("loss_scale", ("F32", [], f(0)), ["'loss_scale' contains 0"]),
            ("loss_scale", ("F32", [], f(nan)), ["'loss_scale' contains nan"]),
            ("loss_scale", ("I32", [], i(4)), ["tensor 'loss_scale' of type f32[] is missing"]),
            ("good_steps", ("I32", [], i(3)), ["'good_steps' contains 3", "from 0 to 2"]),
            ("skipped_steps", ("I32", [], i(-1)), ["'skipped_steps' contains -1"]),
        ]:
            with self.subTest(name=name, parts=parts):
                self.changed({name: tensor})
                self.both_fail([self.file, *parts])

    def test_options_that_no_run_has(self):
        for run, part in [({"batch": "-5"}, "--batch -5"), ({"layers": "32,-1,4"}, "--layers 32,-1,4"),
                          ({"layers": "99,16,4"}, "--layers 99,16,4"), ({"lr": "-1"}, "--lr -1"),
                          ({"model": "rnn"}, "unknown model 'rnn'"), ({"data": "synthetic:0:1"}, "synthetic:0:1"),
                          ({"precision": "f8"}, "f8"), ({"init": "x"}, "--init x")]:
            with self.subTest(run):
                self.changed(run=run)
                self.both_fail([part, f"(with the options remembered in {self.file})"])

    def test_a_small_file_does_not_fill_the_memory(self):
        for data in ("synthetic:32:4:9000000:1", "synthetic:32:4:1:9000000"):
            self.changed(run={"data": data})
            self.both_fail([self.file, "needs 1.1 GiB of memory", f"if this is intended, add: --data {data}"])
        self.changed(run={"data": "synthetic:32:4:60000000000:1"})
        self.both_fail([self.file, "must be in"])

    def test_what_a_file_says_is_escaped_and_cut(self):
        for run in ({"model": "\x1b[31mred\x9b"}, {"model": "x" * 2000000}, {"init": "a\rb\x1b]0;title\x07"}):
            self.changed(run=run)
            for more in ((), ("--json",)):
                result = tutti("eval", self.file, *more)
                self.assertEqual(result.returncode, 2)
                self.assertLess(len(result.stderr) + len(result.stdout), 20000)
                self.assertNotRegex(result.stderr + result.stdout, "[\x00-\x08\x0b-\x1f\x7f-\x9f]")

    def test_any_damaged_byte_is_survived(self):
        for at in range(0, len(self.whole), 211):
            self.file.write_bytes(self.whole[:at] + bytes([self.whole[at] ^ 0x5A]) + self.whole[at + 1:])
            result = tutti("eval", self.file)
            self.assertIn(result.returncode, (0, 2), f"byte {at}: {result.stderr}")
            if result.returncode == 2:
                self.assertRegex(result.stderr, r"^tutti: ", f"byte {at}")


class FullDisk(harness.Case):
    BIG = ["mlp", "--data", "synthetic:32:4:64:16", "--layers", "32,2048,4", "--batch", "16"]  # 900 kB

    def limited(self, room, *args):
        """Trains where files may not grow past `room` bytes, as on a full disk."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # which would end it without a word
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

        return tutti("train", *args, preexec_fn=limit)

    def full(self, file, room, *args, printed=False):
        result = self.limited(room, *args)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stdout != "", printed)
        for part in (file, "bytes needed", "free some space"):
            self.assertIn(str(part), result.stderr)

    def test_nothing_half_written(self):
        file = self.folder / "run"
        self.full(file, 100000, *self.BIG, "--checkpoint", file)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_pages_and_profiles(self):
        """The run is done, but what was asked for is missing."""
        for option in ("--report", "--profile"):
            with self.subTest(option):
                file = self.folder / "file.html"
                self.full(file, 1000, *self.BIG, "--no-eval", "--quiet", "--json", option, file, printed=True)
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_log_that_ends_is_said_in_quiet_runs(self):
        result = self.limited(600, *self.BIG, "--no-eval", "--quiet", "--epochs", "20", "--log-dir", self.folder / "log")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("the run continues without its log"), 1, result.stderr)

    def test_the_old_file_stays(self):
        file = self.folder / "run"
        self.train(*self.BIG, "--checkpoint", file)
        before = file.read_bytes()
        self.full(file, 100000, "--resume", file, "--epochs", "2")
        self.assertEqual(file.read_bytes(), before)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["run"])
        self.assertEqual(self.json("eval", file)["steps"], 4)

    def test_a_real_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = shutil.which("mount") and os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1500k", "tutti-test", disk], capture_output=True).returncode == 0
        if not mounted:
            self.skipTest("a small disk cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        file = disk / "run"
        self.train(*self.BIG, "--checkpoint", file)  # one fits, two do not
        before = file.read_bytes()
        self.fails(1, [file, "No space left on device", "bytes needed", "free some space",
                       f"the last good checkpoint is {file}"],
                   "train", "--resume", file, "--epochs", "2")
        self.assertEqual(file.read_bytes(), before)
        self.assertEqual([p.name for p in disk.iterdir()], ["run"])

    def test_an_unwritable_folder_is_known_before_training(self):
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o700)

        def nobody():
            if os.geteuid() == 0:  # root may write everywhere
                os.setgid(65534)
                os.setuid(65534)

        try:
            self.assertEqual(tutti("--version", preexec_fn=nobody).returncode, 0)
        except PermissionError:
            self.skipTest("the build tree is closed to other users")
        result = self.fails(2, [self.folder, "cannot be written"], "train", *self.BIG,
                            "--checkpoint", self.folder / "run", preexec_fn=nobody)
        self.assertNotIn("epoch", result.stderr)


if __name__ == "__main__":
    unittest.main()
