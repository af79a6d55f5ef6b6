"""`tutti doctor` names what is broken, and the remedy."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import harness


class Doctor(harness.Case):
    def doctor(self, *args, **variables):
        result = harness.tutti("doctor", "--json", *args, env=harness.environment(**variables))
        found = json.loads(result.stdout)
        self.assertEqual(result.returncode, 1 if found["problems"] else 0, result.stderr)
        return found

    def finding(self, found, area, part):
        """The one finding of that area whose text holds `part`."""
        fits = [f for f in found[area] if part in f["what"]]
        self.assertEqual(len(fits), 1, f"{part} in {json.dumps(found[area], indent=1)}")
        return fits[0]

    def folder_of(self, name):
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        return folder

    def test_a_healthy_machine(self):
        found = self.doctor(TUTTI_PLUGINS="onednn,reference", TUTTI_CACHE=str(self.folder_of("cache")))
        trained = self.finding(found, "devices", "reference:0")
        self.assertEqual(trained["mark"], "ok")
        self.assertTrue(trained["facts"]["trained"])
        self.assertGreater(trained["facts"]["seconds"], 0)
        self.assertEqual(self.finding(found, "caches", "entries")["mark"], "ok")
        self.assertEqual(self.finding(found, "environment", "TUTTI_PLUGINS")["facts"]["value"], "onednn,reference")

    def test_no_icd(self):
        found = self.doctor("--no-steps", OCL_ICD_VENDORS=str(self.folder_of("empty")))
        none = self.finding(found, "drivers", "OpenCL: no driver")
        self.assertEqual(none["mark"], "missing")
        self.assertIn("OCL_ICD_VENDORS", none["remedy"])

    def test_a_broken_icd(self):
        vendors = self.folder_of("vendors")
        (vendors / "broken.icd").write_text("/nowhere/libbroken.so\n")
        found = self.doctor("--no-steps", OCL_ICD_VENDORS=str(vendors))
        broken = self.finding(found, "drivers", "broken.icd")
        self.assertEqual(broken["mark"], "problem")
        self.assertIn("/nowhere/libbroken.so: cannot open shared object", broken["what"])
        self.assertIn("reinstall the driver's package", broken["remedy"])

    def test_a_crashing_driver_is_survived(self):
        vendors = self.folder_of("vendors")
        source = self.folder / "crash.c"
        source.write_text("__attribute__((constructor)) static void f(void) { *(volatile int *)0 = 1; }\n")
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler or subprocess.run([compiler, "-shared", "-fPIC", "-o", self.folder / "libcrash.so", source], check=False).returncode:
            self.skipTest("no C compiler")
        (vendors / "crash.icd").write_text(f"{self.folder}/libcrash.so\n")
        found = self.doctor("--no-steps", OCL_ICD_VENDORS=str(vendors), TUTTI_PLUGINS="reference")
        self.assertIn("signal 11", self.finding(found, "drivers", "crash.icd")["what"])

    def test_a_missing_library(self):
        plugins = harness.BINARY.parent.parent / "lib/tutti/plugins"
        if not (plugins / "libtutti_onednn.so").exists():
            self.skip_without("onednn", "the onednn plugin is not built")
        mine = self.folder_of("plugins")  # its library is looked for in the folder above
        for name in ("onednn.json", "libtutti_onednn.so"):
            shutil.copy(plugins / name, mine / name)
            os.chmod(mine / name, 0o644)
        found = self.doctor("--no-steps", TUTTI_PLUGIN_PATH=str(mine))
        fits = [f for f in found["plugins"] if str(mine / "onednn.json") in f["what"]]
        if fits[0]["mark"] == "ok":
            self.skipTest("the system has oneDNN among its own libraries")
        self.assertEqual(fits[0]["mark"], "problem")
        self.assertIn("libdnnl.so", fits[0]["what"])
        self.assertIn("install oneDNN 3", fits[0]["remedy"])

    def test_a_plugin_of_another_abi(self):
        mine = self.folder_of("plugins")
        (mine / "future.json").write_text(json.dumps(
            {"tutti_manifest": 1, "name": "future", "version": "9", "abi": [9, 9], "kind": "other", "priority": 1,
             "library": "libfuture.so"}))
        found = self.doctor("--no-steps", TUTTI_PLUGIN_PATH=str(mine))
        future = self.finding(found, "plugins", "future")
        self.assertEqual(future["mark"], "problem")
        self.assertIn("ABI versions 9 to 9", future["what"])
        self.assertIn("built for this engine", future["remedy"])

    def test_a_cache_that_keeps_nothing(self):
        open_to_all = self.folder_of("cache")
        open_to_all.chmod(0o777)
        under_a_file = self.folder / "file"
        under_a_file.write_text("")
        cases = [open_to_all, under_a_file / "cache"]
        if os.geteuid() != 0:  # root writes everywhere
            read_only = self.folder_of("read-only")
            read_only.chmod(0o500)
            cases.append(read_only)
        for folder in cases:
            found = self.doctor("--no-steps", TUTTI_CACHE=str(folder), TUTTI_PLUGINS="reference")
            cache = self.finding(found, "caches", "the cache cannot be used")
            self.assertEqual(cache["mark"], "problem", folder)
            self.assertIn("TUTTI_CACHE", cache["remedy"])

    def test_nothing_private(self):
        home = self.folder_of("someone")
        text = json.dumps(self.doctor("--no-steps", HOME=str(home), TUTTI_PLUGIN_PATH=str(home / "plugins"),
                                      TUTTI_PLUGINS="reference"))
        self.assertNotIn(str(home), text)
        self.assertIn("~/.cache/tutti", text)
        self.assertIn("~/plugins", text)
        host = pathlib.Path("/proc/sys/kernel/hostname").read_text().strip()
        if len(host) > 5:
            self.assertNotIn(host, text)

    def test_a_plugin_path_that_is_not_there(self):
        found = self.doctor("--no-steps", TUTTI_PLUGIN_PATH="/home/somebody/plugins", TUTTI_PLUGINS="reference")
        gone = self.finding(found, "plugins", "there is no such folder")
        self.assertEqual(gone["mark"], "problem")
        self.assertNotIn("somebody", json.dumps(found))
        self.assertIn("there is no folder", harness.tutti("devices", env=harness.environment(
            TUTTI_PLUGIN_PATH="/nowhere/plugins")).stderr)

    def test_an_icd_of_noise_is_not_printed_raw(self):
        vendors = self.folder_of("vendors")
        (vendors / "noise.icd").write_bytes(bytes(range(1, 256)) * 20)
        text = harness.tutti("doctor", "--no-steps", env=harness.environment(OCL_ICD_VENDORS=str(vendors),
                                                                            TUTTI_PLUGINS="reference")).stdout
        self.assertIn("noise.icd", text)
        self.assertTrue(all(c.isprintable() or c == "\n" for c in text), repr(text))

    def test_little_memory_is_told_before_a_driver_dies_of_it(self):
        import resource
        for limit, name in ((resource.RLIMIT_AS, "address space"), (resource.RLIMIT_DATA, "data")):
            result = harness.tutti("doctor", "--no-steps", "--json", env=harness.environment(TUTTI_PLUGINS="reference"),
                                   preexec_fn=lambda: resource.setrlimit(limit, (3 << 30, 3 << 30)))
            told = [f for f in json.loads(result.stdout)["machine"] if f"3.0 GiB of {name}" in f["what"]]
            self.assertEqual([f["mark"] for f in told], ["problem"])
            self.assertIn("ulimit", told[0]["remedy"])

    def test_pocl_s_cache_and_how_to_clear_it(self):
        cache = self.folder_of("pocl")
        found = self.doctor("--no-steps", POCL_CACHE_DIR=str(cache), TUTTI_PLUGINS="reference")
        self.assertIn("rm -r", self.finding(found, "caches", "PoCL's")["what"])

    def test_bad_options(self):
        self.fails(2, ["--timeout 0", "must be above 0"], "doctor", "--timeout", "0")


if __name__ == "__main__":
    unittest.main()
