"""The command `tutti` of an installed package: the engine's own program."""
import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).parent / "bin/tutti"
    os.execv(program, [sys.argv[0], *sys.argv[1:]])
