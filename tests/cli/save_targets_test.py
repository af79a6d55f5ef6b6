"""Where checkpoints are saved to: links, names at the limit, other runs, and what lies beside the file."""
import os
import re
import shlex
import subprocess
import unittest

import harness
from harness import BINARY, MLP, environment

RUN = ["train", *MLP, "--steps", "2", "--no-eval", "--device", "reference:0"]


class SaveTargets(harness.Case):
    def names(self):
        return sorted(p.name for p in self.folder.iterdir())

    def save(self, name, **more):
        return self.done(*RUN, f"--checkpoint={name}", cwd=self.folder, **more)

    def test_a_circle_of_links_is_refused_before_training(self):
        (self.folder / "loop").symlink_to("loop")
        (self.folder / ".tmp").write_text("the user's")
        result = self.fails(2, ["--checkpoint loop", "symbolic links"], *RUN, "--checkpoint", "loop", cwd=self.folder)
        self.assertNotIn("epoch", result.stderr)
        self.fails(2, ["--html loop", "symbolic links"], "parity", "--ops", "add", "--html", "loop", cwd=self.folder)
        self.assertEqual((self.folder / ".tmp").read_text(), "the user's")
        self.assertEqual(self.names(), [".tmp", "loop"])

    def test_a_dangling_link_stays_and_its_target_is_written(self):
        (self.folder / "there").mkdir()
        (self.folder / "middle").symlink_to("there/file")
        (self.folder / "link").symlink_to("middle")
        self.save("link")
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertTrue((self.folder / "middle").is_symlink())
        self.assertTrue((self.folder / "there/file").is_file())
        (self.folder / "nowhere").symlink_to("no/such/file")
        self.fails(2, ["--checkpoint nowhere", "create the folder first"], *RUN, "--checkpoint", "nowhere",
                   cwd=self.folder)

    def test_what_lies_beside_the_file_is_left_alone(self):
        (self.folder / "other").write_text("precious")
        os.link(self.folder / "other", self.folder / "c.tmp")
        self.save("c")
        self.assertEqual((self.folder / "other").read_text(), "precious")
        (self.folder / "c.tmp").unlink()
        os.mkfifo(self.folder / "c.tmp")
        self.save("c")
        for make in (lambda p: os.mkfifo(p), lambda p: p.symlink_to("other"), lambda p: p.mkdir()):
            make(self.folder / "c.lock")
            self.fails(2, ["c.lock"], *RUN, "--checkpoint", "c", cwd=self.folder)
            (self.folder / "c.lock").rmdir() if (self.folder / "c.lock").is_dir() else (self.folder / "c.lock").unlink()
        (self.folder / "c.lock").write_text("the user's")
        self.save("c")
        self.assertEqual((self.folder / "c.lock").read_text(), "the user's")
        self.assertEqual((self.folder / "other").read_text(), "precious")

    def test_the_longest_name_is_saved_and_a_longer_one_refused(self):
        for name in ("n" * 255, "n" * 251, "ü" * 120):
            self.save(name)
            self.assertEqual(self.names(), [name])
            (self.folder / name).unlink()
        result = self.fails(2, ["File name too long"], *RUN, "--checkpoint", "n" * 256, cwd=self.folder)
        self.assertNotIn("epoch", result.stderr)

    def test_a_second_run_to_the_same_file_is_refused_before_training(self):
        (self.folder / "link").symlink_to("run")
        long = ["train", "mlp", "--data", "synthetic:32:4:2048:64", "--layers", "32,16,4", "--batch", "16",
                "--device", "reference:0", "--epochs", "100000", "--checkpoint", "run"]
        first = subprocess.Popen([str(BINARY), *long], cwd=self.folder, env=environment(), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(first.wait)
        self.addCleanup(first.kill)
        while not first.stderr.readline().startswith("epoch 1 "):  # the lock is not of the save, it is of the run
            self.assertIsNone(first.poll())
        for name in ("run", "./run", "link"):
            result = self.fails(2, ["another process is currently writing"], *RUN, "--checkpoint", name, cwd=self.folder)
            self.assertNotIn("epoch", result.stderr)
        self.save("another")
        first.kill()
        first.communicate()
        self.save("run")  # a killed run's lock holds nobody up
        self.assertEqual(self.names(), ["another", "link", "run"])

    def test_names_that_look_like_options(self):
        result = self.save("-x")
        command = re.search(r"^next +(.*)$", result.stdout, re.M).group(1)
        self.done(*shlex.split(command)[1:], cwd=self.folder)
        self.fails(2, ["cannot be written to stdout"], *RUN, "--checkpoint", "-")

    def test_resume_says_where_it_saves(self):
        self.save("run")
        result = self.done("train", "--resume", "run", "--steps", "3", cwd=self.folder)
        self.assertRegex(result.stderr, r"resumed at step 2 of 3, epoch 1, saves to run\b")

    def test_file_systems_without_locks_or_flushing(self):
        """A library in front of the C library stands for them."""
        source, library = self.folder / "without.c", self.folder / "without.so"
        for call, number in (("flock(int fd, int how) { (void)fd; (void)how;", ("ENOSYS", "ENOLCK", "EOPNOTSUPP")),
                             ("fsync(int fd) { (void)fd;", ("EINVAL",))):
            for error in number:
                source.write_text(f"#include <errno.h>\nint {call} errno = {error}; return -1; }}\n")
                subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
                self.save("run", env=environment(LD_PRELOAD=str(library)))
                (self.folder / "run").unlink()
        self.assertEqual(self.names(), ["without.c", "without.so"])


if __name__ == "__main__":
    unittest.main()
