"""What is said of missing and broken OpenCL drivers and of caches that do not serve; the other devices still work."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import harness  # noqa: E402
from harness import BINARY, environment  # noqa: E402

LIBC = next(pathlib.Path("/").glob("lib*/**/libc.so.6"), None)
# As few kernels as a step can have: without a cache of its own PoCL compiles each of them for a tenth of a second and more.
STEPS = ["mlp", "--data", "synthetic:32:4:512:256", "--layers", "32,4", "--optimizer", "sgd", "--batch", "16", "--steps", "1", "--no-eval"]


def opencl_devices(**changes):
    """The usable OpenCL devices here."""
    found = json.loads(harness.tutti("devices", "--json", env=environment(**changes)).stdout)["devices"]
    return [d for d in found if d["id"].startswith("opencl:") and d["usable"]]


class Vendors(harness.Case):
    """Folders of .icd files."""

    def vendors(self, **icds):
        folder = self.folder / "vendors"
        folder.mkdir()
        for name, text in icds.items():
            (folder / f"{name}.icd").write_text(text)
        return dict(env=environment(OCL_ICD_VENDORS=str(folder)))

    def check_none(self, at, *parts):
        text = self.done("devices", **at).stdout
        self.assertRegex(text, "(?m)^reference:0")
        self.assertRegex(text, r"(?s)opencl:0.*cannot be used: no OpenCL platform in OCL_ICD_VENDORS=")
        for part in parts:
            self.assertIn(part, text)
        self.fails(2, ["opencl:0", "cannot be used", "pocl-opencl-icd", *parts], "train", *STEPS, "--device", "opencl:0", **at)
        self.assertEqual(self.train(*STEPS, "--device", "reference:0", **at)["device"], "reference:0")

    def test_no_icd(self):
        self.check_none(self.vendors())

    def test_no_folder(self):
        self.check_none(dict(env=environment(OCL_ICD_VENDORS=str(self.folder / "nothing"))))

    def test_a_library_that_is_not_there(self):
        self.check_none(self.vendors(gone=f"{self.folder}/libgone.so\n"), "gone.icd", "libgone.so")

    def test_a_file_that_is_no_library(self):
        text = self.folder / "text.so"
        text.write_text("not a library")
        self.check_none(self.vendors(text=f"{text}\n", empty=""), "text.icd", "empty.icd: the file contains no library name")

    @unittest.skipUnless(LIBC, "no libc.so.6 to name")
    def test_a_library_that_is_no_driver(self):
        self.check_none(self.vendors(libc=f"{LIBC}\n"), "libc.icd", "is not an OpenCL driver")

    def test_a_broken_one_beside_a_good_one(self):
        good = pathlib.Path("/etc/OpenCL/vendors/pocl.icd")
        if not opencl_devices():
            self.skip_without("opencl", "no usable OpenCL device here")
        if not good.exists():
            self.skipTest("no PoCL here")
        at = self.vendors(a_gone=f"{self.folder}/libgone.so\n", pocl=good.read_text())
        devices = {d["id"]: d for d in self.json("devices", **at)["devices"]}
        self.assertTrue(devices["opencl:0"]["usable"])
        self.assertIn("a_gone.icd", devices["opencl:1"]["name"])
        self.assertIn("libgone.so", devices["opencl:1"]["unusable"])
        self.assertEqual(self.train(*STEPS, "--device", "opencl:0", **at)["device"], "opencl:0")


class Caches(harness.Case):
    def setUp(self):
        super().setUp()
        if not opencl_devices():
            self.skip_without("opencl", "no usable OpenCL device here (install pocl-opencl-icd)")
        self.cache = self.folder / "cache"
        # PoCL hands out binaries only where it keeps none itself.
        self.at = dict(env=environment(TUTTI_CACHE=str(self.cache), POCL_KERNEL_CACHE="0"))

    def step(self, **more):
        return self.json("train", *STEPS, "--quiet", "--device", "opencl:0", **{**self.at, **more})

    def blobs(self):
        return sorted(self.cache.glob("*.blob"))

    def test_damaged_entries_are_built_anew(self):
        first = self.step()
        self.assertTrue(self.blobs())
        self.assertEqual(stat.S_IMODE(self.cache.stat().st_mode), 0o700)
        for k, blob in enumerate(self.blobs()):
            data = blob.read_bytes()
            middle = len(data) // 2
            blob.write_bytes([b"", data[:middle], data[:middle] + b"xx" + data[middle + 2:]][k % 3])
        damaged = {blob: blob.read_bytes() for blob in self.blobs()}
        self.assertEqual(self.step()["state_hash"], first["state_hash"])
        for blob, data in damaged.items():
            self.assertNotEqual(blob.read_bytes(), data, "the entry was written again")
        kept = {blob: blob.stat().st_ino for blob in self.blobs()}
        self.assertEqual(self.step()["state_hash"], first["state_hash"])
        self.assertEqual({blob: blob.stat().st_ino for blob in self.blobs()}, kept, "now they served")

    def test_two_processes_share_the_folder(self):
        command = [str(BINARY), "train", *STEPS, "--quiet", "--json", "--device", "opencl:0"]
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.at["env"]) for _ in range(2)]
        hashes = set()
        for process in both:
            out, err = process.communicate(timeout=240)
            self.assertEqual(process.returncode, 0, err)
            hashes.add(json.loads(out)["state_hash"])
        self.assertEqual(len(hashes), 1)
        self.assertEqual(list(self.cache.glob("*.new")), [], "no draft is left")
        kept = {blob: blob.stat().st_ino for blob in self.blobs()}
        self.assertTrue(kept)
        self.assertEqual({self.step()["state_hash"]}, hashes)
        self.assertEqual({blob: blob.stat().st_ino for blob in self.blobs()}, kept, "whole entries")

    def test_a_folder_that_cannot_be_written(self):
        (self.folder / "file").write_text("in the way")
        at = dict(env=environment(TUTTI_CACHE=str(self.folder / "file/cache"), POCL_KERNEL_CACHE="0"))
        result = self.done("train", *STEPS, "--quiet", "--device", "opencl:0", **at)
        self.assertEqual(result.stderr.count("every process will compile its kernels again"), 1, result.stderr)
        self.assertIn(str(self.folder / "file/cache"), result.stderr)

    def test_pocl_cannot_write_its_own_cache(self):
        if not any("Portable Computing Language" in d["name"] for d in opencl_devices()):
            self.skipTest("no PoCL here")
        (self.folder / "file").write_text("in the way")
        temp = self.folder / "temp"
        temp.mkdir()
        at = dict(env=environment(POCL_CACHE_DIR=str(self.folder / "file/pocl"), TMPDIR=str(temp), TUTTI_CACHE="off"))
        result = self.done("train", *STEPS, "--quiet", "--device", "opencl:0", **at)
        self.assertEqual(result.stderr.count("PoCL cannot write its kernel cache"), 1, result.stderr)
        self.assertEqual(os.listdir(temp), [], "what served instead is gone")


if __name__ == "__main__":
    unittest.main()
