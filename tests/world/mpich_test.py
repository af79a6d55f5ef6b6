"""`tutti train` under the mpiexec of MPICH, through the standard ABI of MPI 5."""
import os
import sys
import unittest

import ranks

if not os.environ.get("MPICH_MPIEXEC"):
    print("MPICH 5 was not found: scripts/deps.sh --mpi")
    sys.exit(77)
# More ranks than cores: without it, collectives in shared memory spin.
OVERSUBSCRIBED = {"MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD": "1000000"}
FAST = ["--device", "onednn", "--threads", "1", "--quiet"]


class Mpich(ranks.Case):
    MPIEXEC = "MPICH_MPIEXEC"

    def start(self, *programs, env=None, **how):
        return super().start(*programs, env={**OVERSUBSCRIBED, **(env or {})}, **how)

    def test_two_ranks_give_the_bits_of_one(self):
        runs = [self.trained(n, *ranks.MLP, *FAST, "--steps", "20", *how)
                for n, how in ((1, ["--accumulate", "2", "--reduce", "ordered"]), (2, ["--reduce", "ordered"]))]
        self.assertEqual(*(run["state_hash"] for run in runs))
        self.assertRegex(runs[1]["world"]["library"], "MPICH")

    def test_sums_of_the_library(self):
        one, two = (self.trained(n, *ranks.MLP[:-2], *FAST, "--steps", "20") for n in (1, 2))
        self.assertAlmostEqual(one["loss"], two["loss"], places=5)

    def test_a_rank_that_leaves_with_0(self):
        # Else the launcher kills the other ranks without a word, and ends with 0.
        child = self.start((2, *ranks.MLP, *FAST, "--steps", "10000000", "--world-timeout", "5"), options=["-disable-auto-cleanup"],
                           env={"LD_PRELOAD": os.environ["LEAVER"], "LEAVER_RANK": "1", "LEAVER_SECONDS": "3"})
        code, out, err = self.finished(child)
        self.assertNotEqual(code, 0, f"{out}\n{err}")
        self.assertRegex(err, r"rank 1 .* has not answered for 5\.\d s")

    def test_a_mistake_is_told_once(self):
        self.refused(["--nonsense"], (2, *ranks.MLP, "--nonsense"))
        self.refused(["lr: ", "0.01 (rank 0), 0.02 (rank 1)"],
                     *((1, *ranks.MLP, *FAST, "--steps", "5", "--lr", lr) for lr in ("0.01", "0.02")))


if __name__ == "__main__":
    unittest.main()
