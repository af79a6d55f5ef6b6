"""How many threads the CPU computes on, and whose they are."""
import os
import re
import unittest

import harness

WIDE = ["mlp", "--data", "synthetic:256:4:512:64", "--layers", "256,512,4", "--batch", "256", "--no-eval"]  # worth several threads


class Threads(harness.Case):
    def setUp(self):
        super().setUp()
        if "onednn:0" not in harness.usable_devices():
            self.skip_without("onednn", "no usable CPU plugin")

    def told(self, *args, cpus=None, **variables):
        """What the plugin says of its threads: how many, whose."""
        clean = {k: v for k, v in harness.environment().items() if not k.startswith(("OMP_", "GOMP_", "KMP_"))}
        result = self.done("train", *WIDE, "--steps", "2", "--device", "onednn:0", "--quiet", *args,
                           env={**clean, "TUTTI_TRACE": "onednn", **variables},
                           preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None)
        found = re.findall(r"threads: (\d+), (.*)", result.stderr)
        self.assertTrue(found, result.stderr)
        return int(found[-1][0]), found[-1][1]  # sessions before the trainer's were opened to look at the device

    def test_as_many_as_the_process_may_use(self):
        one = {min(os.sched_getaffinity(0))}
        self.assertEqual(self.told(cpus=one), (1, "its own"))
        self.assertLessEqual(self.told()[0], len(os.sched_getaffinity(0)))

    def test_as_many_as_it_is_told(self):
        self.assertEqual(self.told(OMP_NUM_THREADS="3")[0], 3)
        self.assertEqual(self.told(OMP_NUM_THREADS="3,1")[0], 3)
        self.assertEqual(self.told("--threads", "2", OMP_NUM_THREADS="3")[0], 2)
        self.assertEqual(self.told("--threads", "3", OMP_THREAD_LIMIT="1")[0], 1)
        self.assertEqual(self.told(cpus={min(os.sched_getaffinity(0))}, OMP_NUM_THREADS="2")[0], 2)
        for wrong in ("0", "-1", "many", ""):
            self.assertEqual(self.told(OMP_NUM_THREADS=wrong), self.told(), wrong)

    def test_who_tunes_the_openmp_runtime_gets_it(self):
        for variable, value in (("OMP_PROC_BIND", "TRUE"), ("OMP_PLACES", "cores"), ("GOMP_SPINCOUNT", "1000")):
            self.assertRegex(self.told("--threads", "2", **{variable: value})[1], rf"of the OpenMP runtime \({variable}.* is set\)")
        for variable, value in (("OMP_PROC_BIND", "False"), ("OMP_WAIT_POLICY", "active"), ("OMP_WAIT_POLICY", "PASSIVE")):
            self.assertEqual(self.told("--threads", "2", **{variable: value})[1], "its own")

    def test_resuming_with_another_number_warns(self):
        run = ["--device", "onednn:0", "--no-eval", "--quiet"]
        self.done("train", *WIDE, "--steps", "2", "--threads", "1", "--checkpoint", "run", *run)
        for threads, args, warns in (("2", [], True), ("1", [], False), ("2", ["--numerics", "exact"], False)):
            result = self.done("train", "--resume", "run", "--steps", "4", "--threads", threads, "--checkpoint", "more", *run, *args)
            self.assertEqual("threads on onednn: 2, so far 1: sums" in result.stderr, warns, result.stderr)
            self.assertEqual("--threads 1 keeps them" in result.stderr, warns, result.stderr)

    def test_losses_do_not_depend_on_whose_threads_compute(self):
        log = {}
        for name, variables in (("own", {}), ("passive", {"OMP_WAIT_POLICY": "passive"}), ("runtime", {"GOMP_SPINCOUNT": "1000"})):
            clean = {k: v for k, v in harness.environment().items() if not k.startswith(("OMP_", "GOMP_"))}
            log[name] = self.train(*WIDE, "--steps", "20", "--device", "onednn:0", "--threads", "3", env={**clean, **variables})["loss"]
        self.assertEqual(len(set(log.values())), 1, log)


if __name__ == "__main__":
    unittest.main()
