"""Ranks that add up among their devices: tutti and the CUDA plugin on software CUDA devices, with a fake NCCL whose sums
have the order of the ranks. Two ranks must then have the bits of sums on the host."""
import os
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "world"))
import ranks
from ranks import harness

SOFT = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, [os.environ["SOFTCUDA_FOLDER"], os.environ.get("LD_LIBRARY_PATH")])),
        "TUTTI_CUDA_LIBRARIES": "0", "TUTTI_CACHE": os.environ["TUTTI_CACHE"], "SOFTCUDA_DEVICES": "4"}
TWO = ["--device", "cuda:0,cuda:1"]
MLP = [*ranks.MLP, "--layers", "32,256,4"]  # two gradients of 2^13, and more
WIDE = [*ranks.MLP, "--layers", "32,512,256,4"]  # gradients of 2^14 and 2^17: several buckets
FORCED = ["--collectives", "device"]


class Nccl(ranks.Case):
    def start(self, *programs, env=None, **how):
        return super().start(*programs, env={**SOFT, **(env or {})}, **how)

    def both(self, *args, count=2, env=None):
        """The same run with sums among the devices, and on the host."""
        named = ["--device", ",".join(f"cuda:{r}" for r in range(count))]
        runs = [self.trained(count, *args, *named, "--no-eval", "--collectives", where, env=env) for where in ("device", "host")]
        self.assertRegex(runs[0]["world"]["collectives"], r"^NCCL 2\.\d+\.\d+")
        self.assertEqual(runs[0]["world"]["collectives_reason"], "")
        self.assertEqual((runs[1]["world"]["collectives"], runs[1]["world"]["collectives_reason"]), ("host", "--collectives host"))
        return runs

    def same(self, *args, count=2, env=None):
        device, host = self.both(*args, count=count, env=env)
        self.assertEqual(device["losses"], host["losses"], args)
        self.assertEqual(device["state_hash"], host["state_hash"], args)
        self.assertLess(device["world"]["bytes_sent"], host["world"]["bytes_sent"] / 4)  # gradients do not travel over MPI
        return device

    def test_bits_are_those_of_the_host(self):
        for model in ([*WIDE, "--steps", "30", "--clip-norm", "0.5"],
                      ["cnn", "--size", "tiny", "--steps", "6"],
                      ["gpt", "--size", "tiny", "--steps", "4", "--batch", "4"]):
            with self.subTest(model[0]):
                self.same(*model)

    def test_last_batches_that_leave_ranks_without_samples(self):
        # 200 of 512 samples are left: 12 batches of 16 and one of 8, of which rank 1 has none; rank 0 runs its program once more
        for more in ([], ["--accumulate", "2"]):
            with self.subTest(more):
                run = self.same(*MLP, "--data", "synthetic:32:4:200:40", "--epochs", "3", "--keep-last", *more)
                self.assertEqual(run["steps"], 39)

    def test_unequal_shares(self):
        self.same(*MLP, "--shares", "12,4", "--epochs", "2", "--data", "synthetic:32:4:200:40", "--keep-last")

    def test_sharded_optimizer_state(self):
        plain = self.same(*WIDE, "--steps", "12")
        self.assertEqual(self.same(*WIDE, "--steps", "12", "--shard", "optimizer")["state_hash"], plain["state_hash"])

    def test_scaled_gradients_of_two_bytes(self):
        self.same(*MLP, "--steps", "10", "--precision", "f16")

    def test_graphs_streams_and_orders_give_the_same_bits(self):
        expected = self.same(*WIDE, "--steps", "8")["state_hash"]
        for env in ({"TUTTI_CUDA_GRAPH": "0"}, {"TUTTI_CUDA_STREAMS": "4", "SOFTCUDA_SEED": "1"}, {"SOFTCUDA_SEED": "2"},
                    {"SOFTCUDA_CHECK": "uninitialised"}):
            with self.subTest(env):
                run = self.trained(2, *WIDE, "--steps", "8", *TWO, "--no-eval", *FORCED, env=env)
                self.assertEqual(run["state_hash"], expected)
                self.assertEqual("without CUDA graphs" in run["world"]["collectives"], "TUTTI_CUDA_GRAPH" in env)

    def test_three_ranks(self):
        device, host = self.both(*WIDE, "--batch", "24", "--steps", "10", count=3)
        for a, b in zip(device["losses"], host["losses"]):
            self.assertAlmostEqual(a, b, delta=1e-5)

    def test_evaluation_and_a_run_that_goes_on(self):
        whole = self.trained(2, *MLP, "--epochs", "2", *TWO, "--checkpoint", "whole", *FORCED)
        self.trained(2, *MLP, "--epochs", "1", *TWO, "--checkpoint", "run", *FORCED)
        rest = self.trained(2, "--resume", "run", "--epochs", "2", *TWO)
        self.assertEqual(rest["state_hash"], whole["state_hash"])
        self.assertRegex(rest["world"]["collectives"], "^NCCL")  # auto

    # ---- the choice

    def test_ranks_on_one_gpu_add_up_on_the_host(self):
        child = self.start((2, *MLP, "--steps", "2", "--no-eval", "--device", "cuda:0"))
        code, _, err = self.finished(child)
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"one of 2 ranks; gradients are added up on the host: ranks 0 and 1 \(\S+\) use one GPU, and NCCL "
                              r"\S+ needs one for each rank")
        self.refused(["--collectives device: ranks 0 and 1", "use one GPU"],
                     (2, *MLP, "--steps", "2", "--no-eval", "--device", "cuda:0", *FORCED))

    def test_the_start_says_what_was_chosen(self):
        code, _, err = self.finished(self.start((2, *MLP, "--steps", "2", "--no-eval", *TWO)))
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"one of 2 ranks; gradients are added up by NCCL \d")

    def test_a_library_that_is_too_old(self):
        env = {"SOFTNCCL_VERSION": "21304"}
        run = self.trained(2, *MLP, "--steps", "2", "--no-eval", *TWO, env=env)
        self.assertEqual(run["world"]["collectives"], "host")
        self.assertIn("NCCL 2.13.4 is too old: 2.16.0 or newer is needed", run["world"]["collectives_reason"])
        self.refused(["rank 0", "NCCL 2.13.4 is too old"], (2, *MLP, "--steps", "2", *TWO, *FORCED), env=env)

    def test_options_without_effect_are_refused(self):
        self.refused(["--collectives device: --reduce ordered works in host memory"],
                     (2, *MLP, "--steps", "2", *TWO, *FORCED, "--reduce", "ordered"))
        self.refused(["--collectives device: --shard all works in host memory"],
                     (2, *MLP, "--steps", "2", *TWO, *FORCED, "--shard", "all"))
        self.refused(["--collectives device", "its plugin has no collectives"],
                     (2, *MLP, "--steps", "2", "--device", "reference", *FORCED))
        self.refused(["--collectives gpu: unknown"], (2, *MLP, "--steps", "2", *TWO, "--collectives", "gpu"))
        for where in ("device", "host"):
            alone = harness.tutti("train", *MLP, "--steps", "2", "--collectives", where)
            self.assertEqual(alone.returncode, 2)
            self.assertIn(f"--collectives {where}: there is only one rank", alone.stderr)

    # ---- faults

    LONG = [*WIDE, "--epochs", "100000", "--checkpoint", "run", "--no-eval", *TWO, *FORCED]

    def in_the_middle(self, *more, env=None):
        child = self.start((2, *self.LONG, *more), env=env)
        pids = self.ranks_of(child, 2)
        deadline = time.monotonic() + 60
        while not (self.folder / "run").exists() and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.02)
        self.assertTrue((self.folder / "run").exists())
        return child, pids

    def test_a_rank_that_is_killed(self):
        for rank in (1, 0):
            with self.subTest(rank):
                (self.folder / "run").unlink(missing_ok=True)
                child, pids = self.in_the_middle()
                os.kill(pids[rank], signal.SIGKILL)
                code, _, err = self.finished(child, 30)
                self.assertNotEqual(code, 0)
                self.assertRegex(err, rf"tutti: rank {rank} .*has not answered for .* waits in .* \(step \d+\)")

    def test_a_rank_that_hangs(self):
        child, pids = self.in_the_middle("--world-timeout", "2")
        os.kill(pids[1], signal.SIGSTOP)
        code, _, err = self.finished(child, 40)
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"tutti: rank 1 .*has not answered for .* waits in .* \(step \d+\)")

    def failing(self, fault, *parts):
        """A fault of NCCL on rank 1: the run ends, with the parts in its message."""
        code, _, err = self.finished(self.start((2, *self.LONG, "--world-timeout", "20"), env={"SOFTNCCL_FAIL": fault}), 60)
        self.assertNotEqual(code, 0)
        for part in parts:
            self.assertIn(part, err)

    def test_an_error_of_the_system(self):
        # captured at the start, and once more per step for the buffers of a shorter batch
        self.failing("ncclAllReduce:2:0:1", "rank 1", "ncclAllReduce: unhandled system error")

    def test_an_error_while_ranks_join(self):
        self.failing("ncclCommInitRank:2:0:1", "rank 1", "joining the ranks: unhandled system error")

    def test_an_error_that_comes_later(self):
        self.failing("async:6:50:1", "rank 1", "sums over the ranks: remote process exited or there was a network error")


if __name__ == "__main__":
    unittest.main()
