"""--shard: the bits of ranks that keep everything, in less memory, as planned; and worlds of unequal devices."""
import json
import unittest

import ranks
from ranks import harness

FAST = ["--threads", "1", "--device", "onednn"]
SHARD = ["--shard", "optimizer"]
ALL = ["--shard", "all"]
ADAM = [*ranks.MLP, "--steps", "30", "--clip-norm", "0.5", "--ema", "0.9", "--reduce", "ordered"]
CNN = ["cnn", "--data", "synthetic:1x12x12:4:128:40", "--batch", "16", "--optimizer", "sgd", "--momentum", "0.9", "--steps", "12",
       "--reduce", "ordered"]
HALF = ["mlp", "--data", "synthetic:32:4:512:200", "--layers", "32,64,4", "--batch", "16", "--precision", "f16", "--steps", "10"]
# Divided are matrices of 1024 elements: of the GPT also the tied embedding. The last batch leaves ranks without samples, and
# the test set is one batch.
DEEP = ["mlp", "--data", "synthetic:32:4:116:50", "--layers", "32,64,64,4", "--batch", "16", "--dropout", "0.2", "--keep-last",
        "--steps", "20", "--clip-norm", "0.5", "--reduce", "ordered"]
GPT = ["gpt", "--size", "tiny", "--data", "synthetic-text:100:2000", "--batch", "8", "--steps", "8", "--recompute", "1",
       "--reduce", "ordered"]


class Shards(ranks.Case):
    def test_the_bits_of_one_process(self):
        for args in (ADAM, CNN):
            one = self.trained(1, *args, *FAST, "--accumulate", "4")
            for n in (2, 4):
                run = self.trained(n, *args, *FAST, *SHARD, "--accumulate", 4 // n)
                for key in ("state_hash", "losses", "test_loss", "metrics"):
                    self.assertEqual(run[key], one[key], f"{args[0]} {n} {key}")
                self.assertEqual(run["world"]["shard"], "optimizer")

    def test_divided_parameters_have_the_bits_of_one_process(self):
        for args, worlds in ((DEEP, (2, 4)), (CNN, (2,)), (GPT, (2,))):
            one = self.trained(1, *args, *FAST, "--accumulate", "4")
            for n in worlds:
                run = self.trained(n, *args, *FAST, *ALL, "--accumulate", 4 // n)
                for key in ("state_hash", "losses", "test_loss", "metrics"):
                    self.assertEqual(run[key], one[key], f"{args[0]} {n} {key}")
                self.assertEqual(run["world"]["shard"], "all")

    def test_devices_with_memory_of_their_own(self):
        """They stop between launches to exchange parameters, and to report gradients, which travel early."""
        args = ["mlp", "--data", "synthetic:32:4:512:200", "--layers", "32,256,256,256,256,256,4", "--batch", "16", "--steps", "5"]
        devices = [d for d in harness.usable_devices(slow=True) if d.startswith(("opencl", "vulkan", "cuda"))]
        if not devices:
            self.skip_without("opencl", "no such device")
        for device in devices:
            kept, divided = (self.trained(2, *args, "--device", device, *more) for more in ([], ALL))
            for key in ("state_hash", "losses", "test_loss", "metrics"):
                self.assertEqual(divided[key], kept[key], f"{device} {key}")
            self.assertEqual(kept["world"]["bytes_early"], 5 * 4 * 4 * 256 * 256, device)
            plan = self.json("plan", *args[:-2], *ALL, "--world", "2", "--device", device, "--no-search")["plans"][0]
            self.assertEqual([r["peak_bytes"] for r in plan["ranks"]], divided["world"]["peak_bytes"], device)
            self.assertLess(max(divided["world"]["peak_bytes"]), min(kept["world"]["peak_bytes"]))

    def test_divided_parameters_in_half_precision(self):
        kept, divided = (self.trained(2, *HALF, *FAST, *more) for more in ([], ALL))
        self.assertEqual(divided["state_hash"], kept["state_hash"])
        self.assertEqual(divided["losses"], kept["losses"])
        four = self.trained(4, *HALF, *FAST, *ALL)  # MPI's own sum
        for a, b in zip(four["losses"], kept["losses"], strict=True):
            self.assertAlmostEqual(a, b, delta=1e-3)

    def test_more_ranks_than_parameters_and_half_precision(self):
        for args, n in ((["mlp", "--data", "synthetic:8:4:64:20", "--layers", "8,4", "--batch", "16", "--steps", "5"], 4), (HALF, 2)):
            kept, shared = (self.trained(n, *args, *FAST, *more) for more in ([], SHARD))
            self.assertEqual(shared["state_hash"], kept["state_hash"])
            self.assertEqual(shared["losses"], kept["losses"])

    def test_a_checkpoint_is_that_of_one_process(self):
        args = [*ranks.MLP, "--steps", "30", "--reduce", "ordered"]
        self.trained(1, *args, *FAST, "--accumulate", "4", "--checkpoint", self.folder / "one")
        self.trained(4, *args, *FAST, *ALL, "--checkpoint", "four")
        one, four = ((self.folder / f).read_bytes() for f in ("one", "four"))
        size = int.from_bytes(one[:8], "little")
        names = json.loads(one[8:8 + size])
        self.assertTrue(any(k.startswith("optimizer.v.") for k in names))
        for name in names.keys() - {"__metadata__"}:
            if names[name]["dtype"] == "F32":
                self.assertEqual(ranks.tensor(self.folder / "four", name), ranks.tensor(self.folder / "one", name), name)
        more = ["--steps", "40", *FAST]
        last = self.trained(1, "--resume", self.folder / "one", *more)
        for n, parts, how in ((1, 4, []), (2, 2, ALL), (4, 1, SHARD)):
            (self.folder / "again").write_bytes(four)
            again = self.trained(n, "--resume", self.folder / "again", *more, "--accumulate", parts, *how)
            self.assertEqual(again["state_hash"], last["state_hash"], n)

    def test_memory_is_as_planned(self):
        args = ["mlp", "--data", "synthetic:32:4:512:200", "--layers", "32,256,256,4", "--batch", "16"]
        plan = self.json("plan", *args, "--world", "4", *SHARD, "--threads", "1", "--device", "onednn", "--no-search")["plans"][0]
        run = self.trained(4, *args, *FAST, *SHARD, "--steps", "5")
        self.assertEqual([r["peak_bytes"] for r in plan["ranks"]], run["world"]["peak_bytes"])
        self.assertEqual(plan["peak_bytes"], max(run["world"]["peak_bytes"]))
        whole = self.json("plan", *args, "--world", "4", "--threads", "1", "--device", "onednn", "--no-search")["plans"][0]
        kept = self.trained(4, *args, *FAST, "--steps", "5")
        self.assertEqual([whole["peak_bytes"]] * 4, kept["world"]["peak_bytes"])
        shares = [r["optimizer"] for r in plan["ranks"]]
        self.assertEqual(sum(shares), whole["state"]["optimizer"])
        self.assertLess(max(shares), whole["state"]["optimizer"])

    def test_memory_of_divided_parameters_is_as_planned(self):
        args = ["mlp", "--data", "synthetic:32:4:512:200", "--layers", "32,256,256,256,256,256,4", "--batch", "16"]
        how = ["--world", "2", "--threads", "1", "--device", "onednn", "--no-search"]
        plan = self.json("plan", *args, *ALL, *how)["plans"][0]
        run = self.trained(2, *args, *FAST, *ALL, "--steps", "5")
        self.assertEqual([r["peak_bytes"] for r in plan["ranks"]], run["world"]["peak_bytes"])
        whole = self.json("plan", *args, *how)["plans"][0]
        for what in ("parameters", "accumulated", "optimizer"):
            most = max(r[what] for r in plan["ranks"])
            self.assertLess(most, 0.52 * whole["state"][what], what)
        layer = 4 * 256 * 256  # the arena has one layer's parameters and gradient at a time, and the next one's parameters
        self.assertLess(plan["training"]["arena"], whole["training"]["arena"] + 2 * layer)

    def test_what_divided_parameters_refuse(self):
        two = (2, *ranks.MLP, *ALL)
        self.refused(["--shard all", "reference:0 cannot get parameters", "--shard optimizer"], (*two, "--device", "reference"))
        self.refused(["--shard all", "devices differ", "--shard optimizer"], (*two, "--device", "onednn,reference"))
        self.refused(["--ema 0.9", "--shard all", "--shard optimizer"], (*two, *FAST, "--ema", "0.9"))
        self.refused(["--device fastest", "is for one process", "one for each rank"], (2, *ranks.MLP, "--device", "fastest"))

    def test_one_rank_has_nothing_to_share(self):
        for how in (SHARD, ALL):
            result = harness.tutti("train", *ranks.MLP, *FAST, *how)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"{' '.join(how)}: there is only one rank", result.stderr)
            self.assertIn("mpiexec -n 2", result.stderr)
        result = harness.tutti("plan", *ranks.MLP, *SHARD)
        self.assertEqual(result.returncode, 2)
        self.refused(["--shard some", "none, optimizer or all"], (2, *ranks.MLP, *FAST, "--shard", "some"))


class Mixed(ranks.Case):
    def test_three_devices_train_one_model(self):
        args = ["mlp", "--data", "synthetic:32:4:512:200", "--layers", "32,64,4", "--batch", "24", "--steps", "42", "--ema", "0.9"]
        devices = ["onednn", "opencl", "vulkan"]
        here = [next((d for d in harness.usable_devices(slow=True) if d.startswith(name)), None) for name in devices]
        for name, device in zip(devices, here):
            if not device:
                self.skip_without(name, f"no {name}")
        one = self.trained(1, *args, *FAST)
        code, out, err = self.finished(self.start((3, *args, "--device", ",".join(devices), "--checkpoint", "run", "--json")))
        self.assertEqual(code, 0, err)
        run = json.loads(out)
        self.assertEqual(run["world"]["devices"], here)
        self.assertIn("one of 3 ranks on different devices", err)
        for a, b in zip(one["losses"], run["losses"], strict=True):
            self.assertAlmostEqual(a, b, delta=1e-5)
        self.assertAlmostEqual(run["test_loss"], one["test_loss"], delta=1e-5)
        self.assertEqual(self.json("eval", self.folder / "run")["steps"], 42)

    def test_shares_of_a_batch(self):
        """Listed: the losses of one process, also where the last batch leaves ranks without samples. A resumed run keeps them."""
        args = ["mlp", "--data", "synthetic:32:4:116:50", "--layers", "32,64,4", "--batch", "16", "--keep-last", *FAST]
        one = self.trained(1, *args, "--epochs", "3")
        for more in (["--shares", "12,4"], ["--shares", "4,12", "--accumulate", "2", "--shard", "optimizer"]):
            two = self.trained(2, *args, *more, "--epochs", "3", "--checkpoint", "whole")
            self.assertEqual(two["world"]["shares"], [int(s) for s in more[1].split(",")])
            for a, b in zip(one["losses"], two["losses"], strict=True):
                self.assertAlmostEqual(a, b, delta=2e-5)
        self.trained(2, *args, *more, "--epochs", "1", "--checkpoint", "part")
        last = self.trained(2, "--resume", "part", *FAST, *more[2:], "--epochs", "3")
        self.assertEqual((last["state_hash"], last["world"]["shares"]), (two["state_hash"], [4, 12]))
        other = self.trained(2, "--resume", "whole", *FAST, "--shares", "equal", "--epochs", "4")
        self.assertEqual(other["world"]["shares"], [8, 8])

    def test_shares_by_speed(self):
        args = ["mlp", "--data", "synthetic:64:4:512:64", "--layers", "64,256,256,4", "--batch", "64", "--device", "onednn,reference"]
        run = self.trained(2, *args, "--shares", "speed", "--steps", "4", "--checkpoint", "run")
        shares = run["world"]["shares"]
        self.assertEqual(sum(shares), 64)
        self.assertGreater(shares[0], 2 * shares[1])  # reference is far slower
        again = self.trained(2, "--resume", "run", "--device", "onednn,reference", "--shares", "speed", "--steps", "6")
        self.assertEqual(again["world"]["shares"], shares)

    def test_shares_that_are_refused(self):
        two = (2, *ranks.MLP, *FAST, "--steps", "2", "--shares")
        self.refused(["--shares fast", "equal, speed, or a number"], (*two, "fast"))
        self.refused(["--shares 12,3", "2 ranks, and batches of 16"], (*two, "12,3"))
        self.refused(["--shares speed", "bits of one process", "--reduce fast"], (*two, "speed", "--reduce", "ordered"))
        self.refused(["--shard all", "unequal sizes", "--shares equal"], (*two, "speed", "--shard", "all"))
        self.refused(["--numerics exact", "measured times", "--shares 48,16"], (*two, "speed", "--numerics", "exact"))
        alone = harness.tutti("train", *ranks.MLP, *FAST, "--shares", "speed")
        self.assertEqual(alone.returncode, 2)
        self.assertIn("--shares speed: there is only one rank", alone.stderr)

    def test_running_statistics_and_resuming(self):
        args = ["resnet18", "--size", "tiny", "--data", "synthetic:3x16x16:4:64:40", "--batch", "8"]
        both = ["--device", "onednn,reference"]
        whole = self.trained(2, *args, *both, "--steps", "6")
        self.trained(2, *args, *both, "--steps", "3", "--checkpoint", "run")
        last = self.trained(2, "--resume", "run", *both, "--steps", "6")
        self.assertEqual(last["state_hash"], whole["state_hash"])

    def test_exact_numerics_need_no_owner(self):
        args = [*ranks.MLP, "--steps", "20", "--reduce", "ordered", "--numerics", "exact"]
        one = self.trained(1, *args, "--accumulate", "2", "--device", "onednn", "--threads", "1")
        owned = self.trained(2, *args, *SHARD, "--device", "onednn,reference")
        self.assertEqual((owned["state_hash"], owned["world"]["shard"]), (one["state_hash"], "optimizer"))
        others = ["reference", *[d for d in harness.usable_devices(slow=True) if d.startswith("opencl")][:1]]
        for other in others:
            both = self.trained(2, *args, "--device", f"onednn,{other}")
            self.assertEqual((both["state_hash"], both["losses"]), (one["state_hash"], one["losses"]), other)
            self.assertEqual(both["world"]["shard"], "none", other)
            self.assertLess(both["world"]["bytes_sent"], owned["world"]["bytes_sent"], other)
        if len(others) < 2:
            self.skip_without("opencl", "no such device")

    def test_an_order_needs_equal_devices(self):
        self.refused(["--reduce ordered", "devices differ", "--numerics exact"],
                     (2, *ranks.MLP, "--device", "onednn,reference", "--steps", "2", "--reduce", "ordered"))


if __name__ == "__main__":
    unittest.main()
