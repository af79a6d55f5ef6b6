"""Runs a build for Windows under Wine: `windows_test.py build/windows` (scripts/platforms.sh windows)."""
import fcntl
import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENT = {**{k: v for k, v in os.environ.items() if not k.startswith("TUTTI_")},
               "WINEPREFIX": str(BUILD / "wine"), "WINEDEBUG": "-all"}
MLP = ("train", "mlp", "--data", "synthetic:1x28x28:10", "--batch", "16", "--no-eval")


def start(*words, **env):
    return subprocess.Popen(["wine", str(BUILD / "bin/tutti.exe"), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL, encoding="utf-8", errors="replace", env={**ENVIRONMENT, **env}, cwd=FOLDER)


def run(*words, code=0, within=900, **env):
    """What the command printed to stdout and to stderr."""
    process = start(*words, **env)
    try:
        out, err = process.communicate(timeout=within)
    finally:
        process.kill()
    assert process.returncode == code, f"{words}: exit code {process.returncode}\n{out}\n{err}"
    return out, err


def in_console(command):
    """What a console shows of a command line."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
    process = subprocess.Popen(["wine", "cmd", "/c", command], stdin=inside, stdout=inside, stderr=inside, cwd=BUILD, start_new_session=True,
                               env={**ENVIRONMENT, "LC_ALL": "C.UTF-8", "TERM": "xterm"})
    os.close(inside)
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert process.wait(timeout=60) in (0, 1)
    text = re.sub(r"\x1b\[\?25[hl]|\x1b\[K", "", shown.decode("utf-8"))
    return re.sub(r"\x1b\[(\d*)C", lambda m: " " * int(m[1] or 1), text)


def trained(*words, **env):
    return json.loads(run(*words, "--json", **env)[0])


class Windows(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="Größe mit Leerzeichen ", dir=FOLDER))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def test_devices_are_listed_by_probes(self):
        document = json.loads(run("devices", "--json")[0])
        usable = {d["id"]: d["usable"] for d in document["devices"]}
        for device in ("cpu:0", "reference:0", "opencl:0", "vulkan:0"):  # the last two through Wine's loaders
            self.assertTrue(usable.get(device), document)
        self.assertEqual([p["problem"] for p in document["plugins"] if p["problem"]], [])
        self.assertNotIn("loaded in this process", run("devices", TUTTI_LOG="info", TUTTI_CACHE="off")[1])

    def test_states_are_those_of_linux(self):
        page = (ROOT / "docs/EXACT.md").read_text(encoding="utf-8")
        rows = re.findall(r"(?m)^\| (\w+) \| (\d+) \| `([0-9a-f]{16})` \|$", page)
        self.assertGreater(len(rows), 4)
        for model, steps, state in rows:
            devices = ["cpu:0", "reference", "opencl:0", "vulkan:0"] if model == "dlrm" else ["cpu:0"]
            for device in devices if model in ("cnn", "gpt", "dlrm", "lstm") else []:
                with self.subTest(model=model, device=device):
                    got = trained("train", model, "--size", "tiny", "--steps", steps, "--numerics", "exact", "--no-eval", "--device", device)
                    self.assertEqual(got["state_hash"], state)

    def test_both_devices_train_the_mlp_to_the_same_bits(self):
        states = {d: trained(*MLP, "--steps", "20", "--numerics", "exact", "--device", d)["state_hash"] for d in ("cpu:0", "reference:0")}
        self.assertEqual(len(set(states.values())), 1, states)

    def test_a_run_goes_on_from_a_file_with_spaces_and_umlauts(self):
        file = str(self.folder / "Zustand ä.safetensors")
        whole = trained(*MLP, "--steps", "12", "--device", "cpu:0")["state_hash"]
        trained(*MLP, "--steps", "7", "--device", "cpu:0", "--checkpoint", file)
        self.assertIn("Linear(512)", run("inspect", file)[0])
        self.assertEqual(trained("train", "--resume", file, "--steps", "12", "--no-eval")["state_hash"], whole)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["Zustand ä.safetensors"])

    def test_a_killed_run_leaves_a_whole_checkpoint(self):
        file = self.folder / "run.safetensors"
        trained(*MLP, "--steps", "1", "--device", "cpu:0", "--checkpoint", str(file))
        partial = 0
        for _ in range(8):
            process = start("train", "--resume", str(file), "--steps", "1000000", "--save-every", "1", "--no-eval", "--quiet")
            begun, before = time.monotonic(), file.stat().st_mtime_ns
            while file.stat().st_mtime_ns == before and process.poll() is None and time.monotonic() < begun + 60:
                time.sleep(0.01)
            time.sleep(random.random() * 0.3)
            process.kill()
            process.communicate()
            partial += any(p.name.endswith(".tmp") for p in self.folder.iterdir())
            run("inspect", str(file))
        self.assertGreater(partial, 0, "no process was killed in the middle of a write")
        write = trained(*MLP, "--steps", "2", "--device", "cpu:0", "--checkpoint", str(file))
        self.assertEqual(write["steps"], 2)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["run.safetensors"], "partial files of killed processes are removed")

    def test_ctrl_c_saves_and_stops(self):
        file = self.folder / "run.safetensors"
        process = start(*MLP, "--steps", "1000000", "--device", "cpu:0", "--checkpoint", str(file), "--quiet")
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertTrue(file.exists())
        run("inspect", str(file))

    def test_a_console_of_another_code_page_shows_all_characters(self):
        text = in_console(r"chcp 437 & bin\tutti.exe inspect Größe日本.safetensors & bin\tutti.exe devices --device ß:0 & chcp")
        self.assertIn("Größe日本.safetensors: there is no such checkpoint", text)
        self.assertIn("ß", text.split("no such checkpoint")[1])
        self.assertEqual(text.count("code page: 437"), 2, text)

    def test_doctor_finds_no_problem(self):
        out, _ = run("doctor")
        self.assertRegex(out, r"cpu:0: .*: trained two steps")

    def conformance(self, plugin, *words, code=0):
        """The checks of `tutti conformance`."""
        file = self.folder / "result.json"
        run("conformance", str(BUILD / f"lib/tutti/plugins/tutti_{plugin}.dll"), *words, "--json", str(file), code=code)
        return json.loads(file.read_text(encoding="utf-8"))["checks"]

    def test_plugins_conform(self):
        # One check of CPUs needs a limit of memory, which Windows does not have.
        for name, missing in (("reference", []), ("cpu", ["memory.refused"])):
            with self.subTest(plugin=name):
                checks = self.conformance(name, code=1 if missing else 0)
                self.assertEqual([c["id"] for c in checks if c["must"] and c["outcome"] != "pass"], missing)
                self.assertGreater(sum(c["outcome"] == "pass" for c in checks), 230)

    def test_every_op_through_the_loaders_of_wine(self):
        for name in ("opencl", "vulkan"):
            with self.subTest(plugin=name):
                checks = self.conformance(name, "--only", "op.*")
                self.assertEqual([c["id"] for c in checks if c["outcome"] != "pass"], [])
                self.assertGreater(sum(c["id"].startswith("op.") for c in checks), 100)

    def test_processes_end(self):
        """Threads that ended shortly before their process once left locks that its end waited for."""
        for _ in range(20):
            run("conformance", str(BUILD / "lib/tutti/plugins/tutti_cpu.dll"), "--only", "threads.*,process.*", within=60)

    def test_a_truncated_plugin_is_named(self):
        shutil.copy(BUILD / "lib/tutti/plugins/cpu.json", self.folder)
        whole = (BUILD / "lib/tutti/plugins/tutti_cpu.dll").read_bytes()
        (self.folder / "tutti_cpu.dll").write_bytes(whole[:len(whole) // 2])
        _, err = run("devices", TUTTI_PLUGIN_PATH="Z:" + str(self.folder), TUTTI_LOG="info")
        self.assertIn("it is truncated", err)

    def test_plugins_of_others_are_not_trusted(self):
        shutil.copy(BUILD / "lib/tutti/plugins/cpu.json", self.folder)
        shutil.copy(BUILD / "lib/tutti/plugins/tutti_cpu.dll", self.folder)
        os.chmod(self.folder / "tutti_cpu.dll", 0o777)
        _, err = run("devices", TUTTI_PLUGIN_PATH="Z:" + str(self.folder), TUTTI_LOG="info")
        self.assertRegex(err, r"tutti_cpu.dll can be changed by ")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=BUILD) as FOLDER:
        os.chmod(FOLDER, 0o755)
        unittest.main()
