"""Several processes that train one model: `mpiexec -n 4 python train.py`."""
import atexit
import sys
import traceback
from typing import Any, NamedTuple

from tutti import _core
from tutti.errors import Error


class World(NamedTuple):
    """This process among those of the run."""

    rank: int
    size: int


def world(timeout: float = 0) -> World:
    """The number of this process, from 0, and how many mpiexec or srun started: (0, 1) without them. The first call, or
    the first Trainer, waits for all ranks. `timeout`: seconds that a rank may stay behind the others (60 unless given)."""
    return World(*_core.join_world(timeout))


def met() -> None:
    """Called once the ranks have met: an exception on one ends all, and none ends before the others."""
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        _core.hand_over("…" + text[-2000:] if len(text) > 2000 else text)  # returns on the rank that prints
        before(kind, error, trace)
        if sys.stderr is not sys.__stderr__ and sys.__stderr__:  # torch.distributed's hook prints only after this one returns
            sys.__stderr__.write(text)
            sys.__stderr__.flush()
        sys.stderr.flush()
        sys.stdout.flush()
        _core.abort_world()

    sys.excepthook = hook
    atexit.register(_leave)


def _leave() -> None:
    try:
        _core.leave_world()
    except Error as e:
        _core.hand_over(str(e))
        print(f"tutti: {e}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        _core.abort_world()

