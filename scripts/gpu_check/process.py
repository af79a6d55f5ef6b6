"""Processes that cannot hold up their caller: each in a session of its own, which is ended whole."""

import os
import signal
import subprocess
import time

MOST_PRINTED = 256 << 20  # bytes


def session_members(session):
    """The processes of a session, whatever groups they made."""
    found = []
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return found
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", "rb") as f:
                if int(f.read().rsplit(b")", 1)[1].split()[3]) == session:
                    found.append(number)
        except (OSError, IndexError, ValueError):
            pass
    return found


class Process:
    """A running command with its two outputs in files."""

    def __init__(self, command, env, out, err, limit, folder=None):
        self.out, self.err, self.limit = out, err, limit
        self.begun = time.monotonic()
        self.why = ""  # it was ended for
        with open(out, "wb") as o, open(err, "wb") as e:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=o, stderr=e, env=env, cwd=folder, start_new_session=True
            )

    def seconds(self):
        return time.monotonic() - self.begun

    def done(self):
        """The exit code once there is one; ends the process when its time is up."""
        code = self.process.poll()
        if code is not None:
            self.end_session()  # what it left running
            return code
        if self.seconds() > self.limit:
            return self.end(f"ended after {round(self.limit, 1):g} s")
        if any(os.path.getsize(f) > MOST_PRINTED for f in (self.out, self.err)):
            return self.end("ended: it printed without end")
        return None

    def end(self, why):
        """Kills it and all it started. A process that the kernel does not let go is left behind."""
        self.why = why
        self.end_session()
        try:
            return self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.why += ", but it could not be killed: a driver holds it"
            return -signal.SIGKILL

    def end_session(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        for number in session_members(self.process.pid):
            try:
                os.kill(number, signal.SIGKILL)
            except OSError:
                pass


def ask(command, env, seconds):
    """The output of a short question to the machine; "" where it fails or takes too long."""
    try:
        p = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, start_new_session=True
        )
    except OSError:
        return ""
    try:
        out, _ = p.communicate(timeout=seconds)
        return out.decode("utf-8", "replace") if p.returncode == 0 else ""
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        return ""
