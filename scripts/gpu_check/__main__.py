"""gpu-check's command line."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pack  # noqa: E402  (the folder itself is the program)
import run  # noqa: E402
from pieces import ALWAYS, PARTS  # noqa: E402

USAGE = """\
usage: scripts/gpu-check.sh pack                    from a built tree: what the GPU machine needs, into build/gpu
       scripts/gpu-check.sh PART [--out DIR]        there: writes DIR/gpu-check-PART.json and .tar.gz (default build/gpu-out)

The GPU machine needs python3 (3.9 or newer), NVIDIA's driver, and NVRTC (of a CUDA toolkit or of PyPI's wheels, which come
with PyTorch). build/gpu holds this program too, so that it also goes there alone: `gpu-check.sh first` in that folder.

parts; first and speed end after 9 minutes at the latest:
  first    versions, every library call and op in a process of its own, two training steps of every model in every mode,
           exact numerics, rates, profiles of larger models, PyTorch beside them, Vulkan and OpenCL on the same card,
           compute-sanitizer, ncu
  speed    the second call: PyTorch's modes in f32, bf16 and TF32, larger models beside PyTorch, streams, longer runs that
           must give the same bits, a report of each API for docs/results/devices
  all      both in turn, in 16 minutes

Every piece has its own time limit. Of those that fail, some of each stage are run once more with the libraries' logs on;
of those that crash, in gdb or cuda-gdb, with an empty cache.
options:
  --out DIR      where the two files go
  --only A,B     these stages alone, and those that find the GPU
  --list         the pieces of the part, and do nothing
  --scale X      multiply every time limit by X (to rehearse)
Exit code: 0 everything ran and passed, 1 a piece failed, 2 there is no GPU to check, or a wrong argument or pack,
3 nothing failed but pieces were skipped, which the last lines name. The two files are written in every other case, and
where there is no GPU.
"""


def wrong(text):
    print(f"gpu-check: {text}\n\n{USAGE}", file=sys.stderr, end="")
    return 2


def main(arguments):
    verb, options = "", {"--out": "", "--scale": "1", "--only": ""}
    listed = False
    rest = iter(arguments)
    for word in rest:
        if word in ("-h", "--help"):
            print(USAGE, end="")
            return 0
        if word == "--list":
            listed = True
        elif word in options:
            options[word] = next(rest, "")
            if not options[word]:
                return wrong(f"{word} needs a value")
        elif word == "pack" or word in PARTS:
            if verb:
                return wrong(f"one of {verb} and {word}")
            verb = word
        else:
            return wrong(f"unknown argument {word}")
    if not verb:
        return wrong("which part?")
    if verb == "pack":
        return pack.main()
    try:
        scale = float(options["--scale"])
    except ValueError:
        scale = 0
    if not 0 < scale <= 100:
        return wrong(f"--scale {options['--scale']} is not a number above 0")
    stages, only = PARTS[verb], [name for name in options["--only"].split(",") if name]
    unknown = [name for name in only if name not in {stage.name for stage in stages}]
    if unknown:
        return wrong(f"--only: {verb} has no stage {unknown[0]}; it has {', '.join(stage.name for stage in stages)}")
    if only:
        stages = [stage for stage in stages if stage.name in ALWAYS or stage.name in only]
    if listed:
        for stage in stages:
            for piece in stage.pieces:
                settings = "".join(f"{k}={v} " for k, v in piece.env.items())
                print(f"{stage.name:<12} {piece.name:<26} {piece.limit:>3} s  {settings}{piece.command.splitlines()[0]}")
        return 0
    return run.main(verb, stages, options["--out"], scale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
