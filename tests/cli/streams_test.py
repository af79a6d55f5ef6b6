"""Standard streams that are closed, full or read by nobody: what is told gets lost, the work does not."""
import json
import shlex
import signal
import subprocess
import unittest

import harness
from harness import BINARY, MLP, environment

# How a shell opens stderr, and what stands for stdout's file.
STDERR = {"closed": "2>&-", "full": "2>/dev/full", "unread": "2> >(exec true)"}
BISECT = ["bisect", "mlp", "--data", "synthetic:8:2:16:16", "--layers", "8,2", "--batch", "8", "--steps", "1",
          "--a", "reference:0", "--b", "onednn:0"]


class Streams(harness.Case):
    def shell(self, redirection, *args):
        """Runs the command in a shell that redirects; its exit code and stdout."""
        # What reads stderr is gone before the command starts, so that every write finds nobody.
        wait = "sleep 0.2; " if ">(" in redirection else ""
        line = f"{{ {wait}exec {shlex.quote(str(BINARY))} {shlex.join(map(str, args))}; }} {redirection}"
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, cwd=self.folder,
                              env=environment(), stdin=subprocess.DEVNULL)

    def test_stderr_that_cannot_be_written_ends_nothing(self):
        run = ["train", *MLP, "--epochs", "3", "--device", "reference:0"]
        whole = self.train(*run[1:])
        for how, redirection in STDERR.items():
            for args, code in [([*run, "--json", "--checkpoint", f"run {how}"], 0),
                               (["parity", "--ops", "add", "--device", "reference"], 0),
                               (BISECT, 0),
                               (["plan", *MLP, "--device", "reference"], 0),
                               (["devices"], 0),
                               (["train", "nothing"], 2),
                               (["eval", "no such file"], 2),
                               (["nonsense"], 2)]:
                with self.subTest(stderr=how, args=args):
                    result = self.shell(redirection, *args)
                    self.assertEqual(result.returncode, code, result.stdout + result.stderr)
                    self.assertEqual(result.stdout == "", code == 2)
                    if args[0] == "train" and code == 0:
                        self.assertEqual(json.loads(result.stdout)["state_hash"], whole["state_hash"])
                        self.assertEqual(self.json("eval", self.folder / f"run {how}")["steps"], whole["steps"])

    def test_a_warning_reaches_no_file_where_stderr_is_closed(self):
        # The next file that is opened must not become file descriptor 2.
        line = f"TUTTI_LOG=nonsense exec {shlex.quote(str(BINARY))} {shlex.join(['train', *MLP, '--steps', '1'])} " \
               "--device reference:0 --checkpoint run 2>&- <&-"
        self.assertEqual(subprocess.run(["bash", "-c", line], cwd=self.folder, env=environment(),
                                        stdout=subprocess.DEVNULL, timeout=120).returncode, 0)
        self.assertEqual(self.json("eval", self.folder / "run")["steps"], 1)

    def test_stdout_that_cannot_be_written_takes_no_file_along(self):
        for redirection, why in ((">&-", "Bad file descriptor"), (">/dev/full", "No space left"), ("> >(exec true)", None)):
            for args, file in [(["bench", "--quick", "--ops", "add:64x64", "--device", "reference", "--csv", "x"], "x"),
                               (["train", *MLP, "--device", "reference:0", "--checkpoint", "y"], "y"),
                               (["--help"], None), (["train", "--help"], None), (["--version"], None)]:
                with self.subTest(stdout=redirection, args=args):
                    result = self.shell(redirection, *args)
                    if why:
                        self.assertEqual(result.returncode, 1, result.stderr)
                        self.assertIn("cannot write to stdout: " + why, result.stderr)
                    else:  # its reader is gone: it ends as by SIGPIPE
                        self.assertIn(result.returncode, (141, -signal.SIGPIPE), result.stderr)
                        self.assertNotIn("tutti: ", result.stderr)
                    if file:
                        self.assertGreater((self.folder / file).stat().st_size, 0)
                        (self.folder / file).unlink()


    def test_a_reader_that_goes_ends_every_command_in_silence(self):
        file = self.folder / "run"
        self.train(*MLP, "--steps", "1", "--device", "reference:0", "--checkpoint", file)
        for args in (["ops"], ["ops", "--json"], ["models"], ["layers"], ["devices"], ["devices", "--json"], ["inspect", file],
                     ["eval", file, "--device", "reference"], ["data", "shapes:8"], ["bench", "--list"], ["conformance", "--list"],
                     ["plan", *MLP, "--device", "reference"], ["doctor", "--no-steps"], ["top"], BISECT,
                     ["parity", "--ops", "add", "--quick", "--device", "reference"], ["train", "--help"],
                     ["train", "--resume", file, "--steps", "2"]):
            with self.subTest(args):
                result = self.shell("> >(exec true)", *map(str, args))
                self.assertIn(result.returncode, (141, -signal.SIGPIPE), result.stderr)
                self.assertNotIn("tutti: ", result.stderr)
                self.assertNotIn("gone", result.stderr)


if __name__ == "__main__":
    unittest.main()
