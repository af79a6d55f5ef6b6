#!/usr/bin/env python3
"""The peer's end of `tutti bench --peer`: opens cases and times rounds of them when asked to, one JSON object per line.

  peer_rounds.py torch|jax|tinygrad [--threads N]

First it says {"engine": …, "devices": [{"kind": …, "name": …}]} or {"error": …}. Then it answers
  {"do": "open", "case": {…}}               {"number": n, "first_s": s}: built, and run once
  {"do": "run", "number": n, "runs": k}     {"seconds": s}: k runs, waited for at the end
  {"do": "close", "number": n}              {}
with {"error": …, "declined": true} for what the peer has no way to do. A case is {"kind": "model", "model", "layers",
"batch", "optimizer", "lr", "samples"} or {"kind": "op", "op", "shape"}, each with "precision" and "device".
"""
import argparse
import gc
import importlib
import json
import os
import sys
import time


class Declined(Exception):
    """Raised for a case that the peer cannot run."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["torch", "jax", "tinygrad"])
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    out = os.fdopen(os.dup(1), "w", buffering=1)  # libraries may print: that goes to stderr
    os.dup2(2, 1)

    def say(answer):
        out.write(json.dumps(answer) + "\n")

    sys.modules["peer_rounds"] = sys.modules["__main__"]  # one Declined, not two
    if args.threads > 0:
        os.environ["OMP_NUM_THREADS"] = str(args.threads)
    try:
        peer = importlib.import_module(f"rounds_{args.peer}").Peer(args.threads)
    except ImportError as error:
        say({"error": f"not installed: {error}"})
        return
    say({"engine": peer.engine, "devices": peer.devices})

    running, count = {}, 0
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request["do"] == "open":
                gc.collect()
                start = time.perf_counter()
                run, wait = peer.open(request["case"])
                run()
                wait()
                first = time.perf_counter() - start
                for _ in range(3):  # some peers record and compile at the second and third run
                    run()
                wait()
                count += 1
                running[count] = run, wait
                say({"number": count, "first_s": first})
            elif request["do"] == "run":
                run, wait = running[request["number"]]
                start = time.perf_counter()
                for _ in range(request["runs"]):
                    run()
                wait()
                say({"seconds": time.perf_counter() - start})
            else:
                del running[request["number"]]
                run = wait = None
                gc.collect()
                say({})
        except BrokenPipeError:  # nobody asks any more
            return
        except Declined as error:
            say({"error": str(error), "declined": True})
        except Exception as error:  # whatever the peer throws is one case's, not the end
            say({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
