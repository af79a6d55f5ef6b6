"""scripts/build.sh builds others in the place of plugins that are off."""
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/build.sh"
LOG = """-- onednn plugin: on
-- cuda plugin: off, because TUTTI_WITH_CUDA is OFF
-- open_cl2 plugin: off, because its headers are missing
"""


class BuildScript(unittest.TestCase):
    def targets(self, *names, log_text=LOG):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write(log_text)
            log.flush()
            done = subprocess.run(["bash", "-euc", '. "$1"; stand_in "${@:2}"', "bash", SCRIPT, log.name, *names],
                                  capture_output=True, text=True, check=True)
            return done.stdout.split()

    def test_plugins_that_are_off_are_replaced(self):
        self.assertEqual(self.targets("tutti_cli", "tutti_cuda", "tutti_open_cl2"),
                         ["tutti_cli", "tutti_reference", "tutti_reference"])

    def test_the_cpu_without_onednn(self):
        off = "-- onednn plugin: off, because it is not here\n"
        self.assertEqual(self.targets("tutti_onednn", log_text=off), ["tutti_cpu"])
        self.assertEqual(self.targets("tutti_onednn", log_text=off + "-- cpu plugin: off, because it is OFF\n"), ["tutti_reference"])

    def test_all_else_stays(self):
        names = ["tutti_onednn", "tutti_cuda_test", "my_tutti_cuda", "tutti_cud"]
        self.assertEqual(self.targets(*names), names)
        self.assertEqual(self.targets(), [])


if __name__ == "__main__":
    unittest.main()
