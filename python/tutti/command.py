"""The command `tutti` of an installed package: the engine's own program."""
import os
import pathlib
import subprocess
import sys


def main():
    program = pathlib.Path(__file__).parent / "bin/tutti"
    if sys.platform == "win32":  # where exec returns to the shell while the program runs
        sys.exit(subprocess.call([program.with_suffix(".exe"), *sys.argv[1:]]))
    os.execv(program, [sys.argv[0], *sys.argv[1:]])
