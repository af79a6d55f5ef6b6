"""What no two calls agree on: clocks, of which a second trace at another time shows whether they enter what is computed, and the system's
random numbers."""
import contextlib
import datetime
import os
import random
import sys
import time
import traceback
import types

from tutti.errors import InvalidError
from tutti.torch.packages import installed_file, standard_file
from tutti.torch.patches import patched
from tutti.torch.reasons import place_of

ANOTHER_TIME = 431 * 86400 + 26473  # seconds: another year, weekday, hour and minute
_NUMBERS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_OF_SECONDS = ("localtime", "gmtime", "ctime")
_now, _parts = time.time, time.localtime
_DATES = (datetime.datetime, datetime.date)


def _is_clock(x):
    name = getattr(x, "__name__", "")
    return x in _DATES if isinstance(x, type) else isinstance(x, types.BuiltinFunctionType) and x is getattr(time, name, None) and (
        name.removesuffix("_ns") in _NUMBERS or name in (*_OF_SECONDS, "strftime"))


def clocks_of(namespace, names, used):
    """(namespace, name) of the clocks among a function's globals of those names. `used`: all names in its code."""
    for name in names:
        value = namespace[name]
        if value in (time, datetime) if isinstance(value, types.ModuleType) else False:
            yield from ((vars(value), k) for k in used & vars(value).keys() if _is_clock(vars(value)[k]))
        elif _is_clock(value):
            yield namespace, name


class _Date(type):
    """Of a class that stands for one of datetime's: its instances are that one's, too."""

    def __instancecheck__(cls, x):
        return isinstance(x, cls.__mro__[1])

    def __subclasscheck__(cls, other):
        return issubclass(other, cls.__mro__[1])


class Clocks:
    """Clocks, (namespace, name), that are `shift` seconds ahead within running(). `asked`: the names of those that code outside of
    installed packages asked."""

    def __init__(self, found, shift):
        self._found, self._shift, self.asked = list({(id(n), k): (n, k) for n, k in found}.values()), shift, set()

    def _note(self, name):
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        if frame is None or not installed_file(frame.f_code.co_filename):
            self.asked.add(name)

    def _function(self, clock):
        name = clock.__name__

        def call(*args):
            self._note(name)
            if name in _OF_SECONDS:
                return clock(*(args or (_now() + self._shift,)))
            if name == "strftime":
                return clock(args[0], *(args[1:] or (_parts(_now() + self._shift),)))
            return clock() + self._shift * (10**9 if name.endswith("_ns") else 1)
        return call

    def _date(self, clock):
        def ahead(n):
            def call(cls, *args, **kwargs):
                self._note(f"{clock.__name__}.{n}")
                return getattr(clock, n)(*args, **kwargs) + datetime.timedelta(seconds=self._shift)
            return classmethod(call)
        return _Date(clock.__name__, (clock,), {n: ahead(n) for n in ("now", "utcnow", "today") if hasattr(clock, n)})

    @contextlib.contextmanager
    def running(self):
        """Within, they are what the code asks."""
        old = [(namespace, name, namespace[name]) for namespace, name in self._found]
        made = {id(clock): (self._date if isinstance(clock, type) else self._function)(clock) for *_, clock in old}
        try:
            for namespace, name, clock in old:
                namespace[name] = made[id(clock)]
            yield
        finally:
            for namespace, name, clock in old:
                namespace[name] = clock


def without_entropy():
    """The system's random numbers, of which no trace has those of the next step: os.urandom, secrets, uuid4, SystemRandom, seeds of none."""
    def make(original):
        def urandom(n):
            frame = sys._getframe(1)
            while frame is not None and (frame.f_code.co_filename == __file__ or standard_file(frame.f_code.co_filename)):
                frame = frame.f_back
            if frame is not None and not installed_file(frame.f_code.co_filename):
                raise InvalidError("forward draws from the system's random numbers" + place_of(traceback.extract_stack(frame)),
                                   "draw by torch.rand, or hand in what it gives as an input")
            return original(n)
        return urandom

    def seeded(original):
        def seed(self, a=None, *args):
            if a is None:
                os.urandom(1)
            return original(self, a, *args)
        return seed

    stack = contextlib.ExitStack()
    for owner, name in ((os, "urandom"), (random, "_urandom")):
        stack.enter_context(patched(owner, name, make))
    stack.enter_context(patched(random.Random, "seed", seeded))
    return stack
