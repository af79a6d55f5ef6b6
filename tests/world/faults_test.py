"""Worlds that go wrong: ranks that die, hang, leave or differ, and launchers that are none of ours."""
import os
import re
import signal
import time
import unittest

import ranks
from ranks import harness

FAST = ["--threads", "1", "--device", "onednn"]
LONG = [*ranks.MLP, *FAST, "--epochs", "100000", "--checkpoint", "run"]


class Faults(ranks.Case):
    def in_the_middle(self, *args, count=2, env=None):
        """A run that has saved its first epoch."""
        child = self.start((count, *LONG, *args), env=env)
        pids = self.ranks_of(child, count)
        deadline = time.monotonic() + 60
        while not (self.folder / "run").exists() and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.02)
        return child, pids

    def ended(self, child, within, rank=1):
        """All ranks end by themselves, with a message that names the rank, the step and the collective."""
        begun = time.monotonic()
        code, out, err = self.finished(child, within)
        self.assertNotEqual(code, 0, err)
        self.assertLess(time.monotonic() - begun, within)
        self.assertRegex(err, rf"tutti: rank {rank} .*has not answered for .* waits in \w+ \d+ \(step \d+\)")
        others = re.findall(rf"^tutti: (?!rank {rank} \S+ has not answered).*", err, re.M)
        self.assertFalse([o for o in others if not re.search(rf"rank {rank} was stopped for", o)], err)
        self.assertEqual(len(re.findall(rf"^tutti: rank {rank} \S+ has not answered", err, re.M)), 1, err)
        return err

    def test_a_rank_that_is_killed(self):
        child, pids = self.in_the_middle()
        os.kill(pids[1], signal.SIGKILL)
        self.ended(child, 20)

    def test_rank_0_is_killed(self):
        child, pids = self.in_the_middle()
        os.kill(pids[0], signal.SIGKILL)
        self.ended(child, 20, rank=0)

    def test_a_rank_that_hangs(self):
        child, pids = self.in_the_middle("--world-timeout", "2")
        os.kill(pids[1], signal.SIGSTOP)
        self.ended(child, 40)

    def test_a_pause_shorter_than_the_limit_is_none(self):
        child, pids = self.in_the_middle("--world-timeout", "20")
        os.kill(pids[1], signal.SIGSTOP)
        time.sleep(3)
        os.kill(pids[1], signal.SIGCONT)
        time.sleep(1)
        self.assertIsNone(child.poll())

    def test_a_rank_that_leaves_with_0(self):
        child = self.start((2, *LONG), env={"LD_PRELOAD": os.environ["LEAVER"], "LEAVER_RANK": "1", "LEAVER_SECONDS": "3"})
        self.ended(child, 40)

    def test_unequal_options_are_all_listed(self):
        a = [*ranks.MLP, *FAST, "--steps", "5"]
        err = self.refused(["lr: ", "dropout: 0.2 (rank 0), 0.1 (rank 1)", "do not run the same training"],
                           (1, *a, "--lr", "0.01"), (1, *a, "--lr", "0.02", "--dropout", "0.1"))
        self.assertIn("0.01 (rank 0), 0.02 (rank 1)", err)

    def test_another_seed_and_other_data(self):
        a = [*ranks.MLP, *FAST, "--steps", "5"]
        self.refused(["seed: 1 (rank 0), 2 (rank 1)", "data: synthetic:32:4:512:200"],
                     (1, *a), (1, *a, "--seed", "2", "--data", "synthetic:32:4:500:200"))

    def test_a_mistake_on_one_rank_is_told_by_rank_0(self):
        a = [*ranks.MLP, *FAST, "--steps", "5"]
        self.refused(["rank 1", "--no-such-option"], (1, *a), (1, *a, "--no-such-option"))
        self.refused(["rank 1", "missing.safetensors"], (1, *a), (1, *a, "--init", "missing.safetensors"))

    def test_a_mistake_on_all_ranks_is_told_once(self):
        self.refused(["--nonsense"], (2, *ranks.MLP, "--nonsense"))
        self.refused(["--batch 1", "2 ranks", "--batch 2"], (2, *ranks.MLP, *FAST, "--batch", "1"))
        self.refused(["--batch 15", "--batch 14"], (2, *ranks.MLP, *FAST, "--batch", "15"))
        self.refused(["--reduce ordered", "3 ranks", "power of 2"], (3, *ranks.MLP, *FAST, "--batch", "12", "--reduce", "ordered"))
        self.refused(["--reduce both", "fast or ordered"], (2, *ranks.MLP, *FAST, "--reduce", "both"))
        self.refused(["--device onednn,opencl,onednn", "3 devices for 2 ranks"],
                     (2, *ranks.MLP, "--device", "onednn,opencl,onednn"))
        self.refused(["--overfit", "2 ranks"], (2, *ranks.MLP, *FAST, "--overfit", "5"))
        self.refused(["nan-check"], (2, *ranks.MLP, *FAST, "--nan-check"))
        self.refused(["--world-timeout"], (2, *ranks.MLP, *FAST, "--world-timeout", "0"))

    def test_commands_of_one_process(self):
        for args in (["eval", "run"], ["plan", "mlp"], ["parity"]):
            self.refused([f"tutti {args[0]}: is for one process", "started 2", "without mpiexec"], (2, *args),
                         command=[harness.BINARY])
        code, out, _ = self.finished(self.start((2, "devices"), command=[harness.BINARY]))
        self.assertEqual((code, out.count("onednn:0")), (0, 2), out)

    def test_a_list_of_devices_is_by_rank(self):
        run = self.trained(2, *ranks.MLP, "--device", "onednn,onednn", "--threads", "1", "--steps", "3")
        self.assertEqual(run["world"]["ranks"], 2)

    def alone(self, parts, *args, **variables):
        result = harness.tutti("train", *ranks.MLP, *FAST, "--steps", "2", *args, env=harness.environment(**variables))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        for part in parts:
            self.assertIn(part, result.stderr)

    def test_launchers_of_others(self):
        self.alone(["torchrun", "mpiexec -n 2 tutti train"], RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="x")
        self.alone(["mpiexec of MPICH started 2", "2 separate runs", "start it with the mpiexec"], PMI_RANK="0", PMI_SIZE="2")
        self.alone(["srun", "--mpi=pmix", "mpiexec"], SLURM_STEP_NUM_TASKS="2", SLURM_PROCID="0")

    def test_other_commands_name_the_launcher(self):
        result = harness.tutti("eval", "run", env=harness.environment(RANK="0", WORLD_SIZE="2"))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("tutti eval: is for one process, and torchrun started 2", result.stderr)
        self.assertIn("without torchrun", result.stderr)

    def test_options_of_a_world_without_one(self):
        self.alone(["--world-timeout", "mpiexec -n 2"], "--world-timeout", "5")
        self.alone(["--device onednn,opencl", "2 devices for 1 rank", "mpiexec -n 2"], "--device", "onednn,opencl")
        self.alone(["--reduce ordered", "1 rank", "--accumulate"], "--reduce", "ordered")

    def test_one_rank_under_mpiexec_is_a_run_of_one(self):
        code, out, err = self.finished(self.start((1, *ranks.MLP, *FAST, "--steps", "3", "--json")))
        self.assertEqual(code, 0, err)
        self.assertIn('"ranks": 1', out)


if __name__ == "__main__":
    unittest.main()
