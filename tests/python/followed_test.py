"""State that Python holds outside of a module's tensors: hooks, classes, collections, globals, closures. A step of tutti.from_torch follows
what changes between calls, and refuses what forward itself changes. PyTorch is the judge."""
import array
import collections
import contextvars
import copy
import ctypes
import dataclasses
import datetime
import functools
import io
import itertools
import os
import random
import sys
import time
import types
import unittest
import warnings
from unittest import mock

from faithful_test import DEVICE, F, Faithful, Reverse, Two, X, Y, nn, sgd, torch  # (leaves where PyTorch is missing)

import numpy as np
import tutti
from tutti.torch import joint
from tutti.torch.watch import Facts

GAIN, CONTEXT = 1.0, contextvars.ContextVar("CONTEXT", default=0)


class Settings:
    gain, table = 1.0, {"gain": 1.0}


@dataclasses.dataclass
class Options:
    gain: float = 1.0
    loud = 1.0


class Louder(Options):
    loud = 2.0


class Doubled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2


class Slots:
    __slots__ = ("gain",)

    def __init__(self):
        self.gain = 1.0


@functools.lru_cache(None)
def halves(n):
    return torch.full((n,), 0.5)


def helper():
    return GAIN


class Reader(Two):
    gain = 1.0
    table = {"gain": 1.0}

    def __init__(self):
        super().__init__()
        self.deep, self.tags, self.array, self.options = {"a": [1.0, {"gain": 1.0}]}, set(), np.ones(8, np.float32), Options()
        self.options.inner, self.aside, self._hidden = Options(), [nn.Linear(8, 8)], {"gain": 1.0}

    @property
    def hidden(self):
        return self._hidden["gain"]

    def between(self, h):
        gain = (self.gain * self.table["gain"] * self.deep["a"][0] * self.deep["a"][1]["gain"] * (2 if "twice" in self.tags else 1)
                * self.options.gain * self.options.inner.gain * self.options.inner.loud * self.hidden * helper() * Settings.gain * Settings.table["gain"] * float(os.environ.get("GAIN_OF_FORWARD", 1)))
        return self.last(h + self.aside[0](h)) * gain * torch.from_numpy(self.array) * halves(8)

    def last(self, h):
        return h.tanh()


class Hooks(Faithful):
    def test_of_modules(self):
        handles = {}

        def change(m, i):
            if i == 1:
                handles[m] = m.a.register_forward_hook(lambda m, x, y: y * 2)
                m.b.register_full_backward_hook(lambda m, x, d: (x[0] * 0.5,))
            elif i == 2:
                handles[m].remove()
                m.b.register_forward_pre_hook(lambda m, x, k: ((x[0] + 1,), k), with_kwargs=True)
            elif i == 3:
                m.a.register_full_backward_pre_hook(lambda m, d: (d[0] * 3,))

        self.beside(Two, between=change)

    def test_of_parameters_and_of_all_modules(self):
        every = torch.nn.modules.module

        def after(p):
            p.grad.zero_()

        for said, register in (("parameter 'a.weight' has a gradient hook", lambda m: m.a.weight.register_hook(lambda d: d * 2)),
                               ("parameter 'b.bias' has a gradient hook", lambda m: m.b.bias.register_post_accumulate_grad_hook(after)),
                               ("hook for all modules.*at the modules", lambda m: every.register_module_forward_hook(lambda m, x, y: y)),
                               ("hook for all modules", lambda m: every.register_module_full_backward_hook(lambda m, x, d: None))):
            module = Two()
            step = tutti.from_torch(module, X, loss=F.cross_entropy, optimizer=sgd(module), device=DEVICE)
            step(X, Y)
            handle = register(module)
            try:
                with self.subTest(said), self.assertRaisesRegex(tutti.InvalidError, said):
                    step(X, Y)
                self.assertEqual(step.steps, 1)
            finally:
                handle.remove()


class Followed(Faithful):
    def test_what_forward_reads(self):
        def everywhere(m, i):
            global GAIN
            GAIN = 2.0 if i == 7 else 1.0
            Settings.gain, Settings.table["gain"] = (3.0, 1.0) if i == 8 else (1.0, 2.0 if i == 9 else 1.0)
            Reader.gain, Reader.table["gain"] = (2.0, 1.0) if i == 1 else (1.0, 3.0 if i == 2 else 1.0)
            m.deep["a"][0] = 2.0 if i == 3 else 1.0
            m.deep["a"][1]["gain"] = 2.0 if i == 4 else 1.0
            m.options.inner.gain, m._hidden["gain"] = (2.0, 1.0) if i == 5 else (1.0, 2.0 if i == 6 else 1.0)
            m.array[:] = 2 if i == 10 else 1
            m.tags.update({"twice"} if i == 11 else ())
            with torch.no_grad():
                m.aside[0].weight.mul_(0.5 if i == 12 else 1)
            os.environ["GAIN_OF_FORWARD"] = "2" if i == 15 else "1"
            if i == 13:
                m.last = types.MethodType(lambda self, h: h.relu(), m)
            if i == 14:
                m.gain = 2.0  # hides the class's
            if i == 16:
                m.aside[0].__class__, m.options.inner.__class__ = Doubled, Louder

        own = Reader.last
        self.beside(Reader, between=everywhere, steps=17)
        try:
            self.beside(Reader, between=lambda m, i: setattr(Reader, "last", (lambda self, h: h.sigmoid()) if i else own), steps=2)
        finally:
            Reader.last = own

    def test_what_a_loss_reads(self):
        gain, weights, slots, table = 1.0, torch.ones(4), Slots(), {"gain": 1.0}

        def loss(y, t, more=({"gain": 1.0},)):
            return F.cross_entropy(y * weights, t) * gain * slots.gain * more[0]["gain"] * loss.gain * table["gain"] * GAIN

        def change(m, i):
            nonlocal gain
            global GAIN
            gain, GAIN, loss.gain = 1.0 + (i == 1), 1.0 + (i == 2), 1.0 + (i == 3)
            slots.gain, table["gain"], loss.__defaults__[0][0]["gain"] = 1.0 + (i == 4), 1.0 + (i == 5), 1.0 + (i == 6)
            weights.fill_(1.0 + (i == 7))

        loss.gain = 1.0
        self.beside(Two, loss=loss, between=change, steps=8)
        part = functools.partial(lambda y, t, c: F.cross_entropy(y, t) * c["gain"], c={"gain": 1.0})
        self.beside(Two, loss=part, between=lambda m, i: part.keywords["c"].update(gain=1.0 + i), steps=2)

    def test_a_loss_that_reads_what_forward_leaves(self):
        class Left(Two):
            extra = torch.zeros(())

            def between(self, h):
                self.extra = h.square().mean()
                return h

        torch.manual_seed(0)
        module, twin = Left(), Left()
        twin.load_state_dict(module.state_dict())
        step = tutti.from_torch(module, X, loss=lambda y, t: F.cross_entropy(y, t) + module.extra, optimizer=sgd(module), device=DEVICE)
        theirs = sgd(twin)
        for _ in range(3):
            ours = step(X, Y)
            theirs.zero_grad()
            wanted = F.cross_entropy(twin(X), Y) + twin.extra
            wanted.backward()
            theirs.step()
            self.assertAlmostEqual(ours, wanted.item(), delta=1e-5)
        self.assertNotIn("extra", module.__dict__)  # no tensor of the trace stays
        self.same_state(step, twin)

    def beside_with(self, of, steps=3):
        """As beside(), with a loss that is of(module)."""
        torch.manual_seed(0)
        module = Two()
        twin = copy.deepcopy(module)
        loss, theirs, optimizer = of(module), of(twin), sgd(twin, lr=0.3)
        step = tutti.from_torch(module, X, loss=loss, optimizer=sgd(module, lr=0.3), device=DEVICE)
        for _ in range(steps):
            ours = step(X, Y)
            optimizer.zero_grad()
            wanted = theirs(twin(X), Y)
            wanted.backward()
            optimizer.step()
            self.assertAlmostEqual(ours, wanted.item(), delta=1e-5)
        self.same_state(step, twin)

    def test_a_loss_over_parameters(self):
        """Penalties, a second forward, data and detached parameters: they have the trained values, and gradients as in PyTorch."""
        def penalty(m):
            start, held = [p.detach().clone() for p in m.parameters()], list(m.parameters())
            return lambda y, t: (F.cross_entropy(y, t) * m.b.weight.detach().square().sum() + m.b.weight.data.abs().sum() + 0.1 * F.mse_loss(m(X * 1.1), y)
                                 + 0.01 * sum(p.abs().sum() for p in held) + 0.1 * sum((p - s).square().sum() for p, s in zip(m.parameters(), start)))

        class Part(nn.Module):
            def __init__(self, m):
                super().__init__()
                self.m = m

            def forward(self, y, t):
                return F.cross_entropy(y, t) + 0.1 * self.m.a.weight.square().sum()

        def whole(m):
            return lambda y, t: F.cross_entropy(Reverse.apply(y), t) + 0.1 * m.a.weight.square().sum()

        for of in (penalty, Part, whole):
            with self.subTest(of.__name__):
                self.beside_with(of)

    def test_a_loss_that_holds_what_a_trace_cannot_follow(self):
        def view(m):
            rows = m.a.weight.detach()[:2]
            return lambda y, t: F.cross_entropy(y, t) + rows.sum()

        def detached(m):
            weight = m.a.weight.detach()
            return lambda y, t: F.cross_entropy(y, t) * weight.sum()

        def with_its_backward_pass(m):
            weight = m.a.weight
            return lambda y, t: F.cross_entropy(Reverse.apply(y), t) + weight.sum()

        for of, said in ((view, "view of 'a.weight'"), (detached, "'weight'.*shares the memory of the parameter 'a.weight'"),
                         (with_its_backward_pass, "'weight'.*shares the memory")):
            with self.subTest(of.__name__), self.assertRaisesRegex(tutti.InvalidError, said):
                self.beside_with(of)

    def test_only_what_is_read(self):
        """Neither equal values nor what the code does not name make a trace; collections stay the user's own."""
        shared = {"gain": 1.0}
        module = Two()
        module.table, module.shape = shared, [8, 4]
        step = tutti.from_torch(module, X, loss=lambda y, t: F.cross_entropy(y, t) * module.table["gain"], optimizer=sgd(module), device=DEVICE)
        step(X, Y)
        self.assertIs(module.table, shared)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            module.shape, module.table, unrelated = [8, 4], {"gain": 1.0}, 3  # noqa: F841
            step(X, Y)
            with self.assertRaisesRegex(UserWarning, "gain.* changed: the step is traced"):
                module.table["gain"] = 1
                step(X, Y)

    def test_hooks_of_autograds_graph(self):
        class Model(Two):
            def between(self, h):
                h = h.tanh()
                if h.grad_fn is not None:
                    h.grad_fn.register_prehook(lambda d: (d[0] * 3,))
                return h

        self.beside(Model, steps=2)

    def test_a_loss_that_asks_what_has_a_gradient(self):
        class Both(Two):
            def forward(self, x):
                return super().forward(x), x

        self.beside(Both, loss=lambda y, t: sum(v.square().mean() for v in y if v.requires_grad), steps=2)

    def test_one_trace_of_a_backward_pass(self):
        """Also where forward leaves tensors in attributes; where some parameter has no gradient the second call is the one."""
        class Model(Two):
            def __init__(self):
                super().__init__()
                self.unused, self.seen = nn.Linear(2, 2), None

            def between(self, h):
                self.seen = None
                h = Reverse.apply(h) if self.seen is None else h
                self.seen = h.detach()
                return h

        calls, own = [], joint.aot_export_module
        with mock.patch.object(joint, "aot_export_module", lambda *args, **kwargs: calls.append(1) or own(*args, **kwargs)):
            self.beside(Model, steps=2)
        self.assertEqual(len(calls), 2)

    def test_clocks_and_memory(self):
        """A clock that is asked in vain; bytes that the loop changes; whether autograd is on."""
        class Timed(Two):
            def __init__(self):
                super().__init__()
                self.memory = array.array("d", [1.0])

            def between(self, h):
                began = time.perf_counter()
                h = (h if torch.is_grad_enabled() else h * 3).tanh() * self.memory[0]
                return h if time.perf_counter() - began < 1e6 else h * 2

        def changes(m, i):
            m.memory[0] = 1.0 + i

        step, twin = self.beside(Timed, between=changes, steps=2)
        with torch.no_grad():
            torch.testing.assert_close(step.predict(X), twin.eval()(X), rtol=1e-4, atol=1e-5)
        with torch.inference_mode():
            self.assertAlmostEqual(step.evaluate(X * 1, Y * 1), F.cross_entropy(twin(X), Y).item(), delta=1e-5)

    def test_the_look_costs_little(self):
        """Of a hundred modules less Python than a function call for each."""
        module = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()) for _ in range(25)])
        facts, calls = Facts({"": module}), []

        def profiled(frame, event, arg):
            calls.append(event)

        sys.setprofile(profiled)
        try:
            self.assertIsNone(facts.changed(True))
        finally:
            sys.setprofile(None)
        self.assertLess(len(calls), 100)


class Refused(Faithful):
    def test_what_forward_changes(self):
        def module(between):
            class Changing(Two):
                calls, tables = 0, {"calls": 0}

                def __init__(self):
                    super().__init__()
                    self.kept, self.table, self.options, self.n = [], {}, Options(), 0

            Changing.between = between
            return Changing

        def appends(self, h):
            self.kept.append(1)
            return h * len(self.kept)

        def records(self, h):
            self.kept.append(h.detach())
            return h

        def counts(self, h):
            self.table["n"] = self.table.get("n", 0) + 1
            return h * self.table["n"]

        def remembers(self, h):
            before = self.table.get("h")
            self.table["h"] = h.detach()
            return h if before is None else h + before

        def of_the_class(self, h):
            type(self).calls += 1
            return h * type(self).calls

        def of_its_collection(self, h):
            self.tables["calls"] += 1
            return h * self.tables["calls"]

        def of_an_object(self, h):
            self.options.gain += 1
            return h * self.options.gain

        def with_its_backward_pass(self, h):
            self.kept.append(1)
            return Reverse.apply(h) * len(self.kept)

        def by_its_dict(self, h):
            self.__dict__["n"] += 1
            return h * self.n

        def another_dict(self, h):
            self.table = {"n": self.table.get("n", 0) + 1}
            return h * self.table["n"]

        for between, said in ((appends, "changes 'kept'"), (records, "changes 'kept'"), (counts, r"changes 'table\['n'\]'"), (remembers, r"'table\['h'\]'"),
                              (of_the_class, "changes 'Changing.calls'"), (of_its_collection, r"'Changing.tables\['calls'\]'"),
                              (of_an_object, "changes 'options.gain'"), (with_its_backward_pass, "changes 'kept'"),
                              (by_its_dict, "attribute 'n'.*from 0 to 1"), (another_dict, "attribute 'table'.*from {} to {'n': 1}")):
            with self.subTest(between.__name__):
                self.refused(f"forward .*{said}.*buffer", module(between))

    def test_generators_iterators_and_arrays(self):
        def counted():
            n = 0.0
            while True:
                n += 1
                yield n

        def module(held, ask):
            class Drawing(Two):
                def __init__(self):
                    super().__init__()
                    self.held = held()

                def between(self, h):
                    return h * ask(self.held)
            return Drawing

        def raised(a):
            a += 1
            return float(a[0])

        def risen(a):
            a[0] += 1
            return float(a[0])

        def counts(d):
            d["n"] = d.get("n", 0) + 1
            return d["n"]

        def named(o):
            o.n = getattr(o, "n", 0) + 1
            return o.n

        goes_on = "goes on with 'held'.*input"
        for name, held, ask, said in (("random", lambda: random.Random(0), lambda r: r.random(), goes_on),
                                      ("numpy", lambda: np.random.default_rng(0), lambda r: r.random(), goes_on),
                                      ("RandomState", lambda: np.random.RandomState(0), lambda r: r.rand(), goes_on),
                                      ("cycle", lambda: itertools.cycle([1.0, 2.0]), next, goes_on), ("count", itertools.count, next, goes_on),
                                      ("list", lambda: iter([1.0, 2.0, 3.0]), next, goes_on), ("generator", counted, next, goes_on),
                                      ("array", lambda: np.zeros(2), raised, "changes the array 'held'"),
                                      ("bytearray", lambda: bytearray(2), risen, "changes the bytes of 'held'"),
                                      ("ctypes", lambda: (ctypes.c_int * 2)(), risen, "changes the bytes of 'held'"),
                                      ("stream", lambda: io.BytesIO(bytes(range(9))), lambda f: f.read(1)[0], goes_on),
                                      ("UserDict", collections.UserDict, counts, r"changes 'held\['n'\]'"),
                                      ("context", lambda: CONTEXT, lambda v: v.set(v.get() + 1) and v.get(), "changes 'held'"),
                                      ("clock", lambda: time, lambda t: time.time() % 7, r"computes with the time \(time\).*input"),
                                      ("date", lambda: 0, lambda d: datetime.date.today().toordinal() % 10, r"the time \(date.today\)"),
                                      ("entropy", lambda: 0, lambda r: random.Random().random(), "the system's random numbers .*torch.rand"),
                                      ("namespace", types.SimpleNamespace, named, "changes 'held'")):
            with self.subTest(name):
                self.refused(said, module(held, ask))

    def test_seeds(self):
        class Seeded(Two):
            def between(self, h):
                torch.manual_seed(1)
                return h * torch.rand(8)

        self.refused("seeds PyTorch's random numbers .*between.*buffer", Seeded)

    def test_parameters_that_share_memory(self):
        def make():
            m = Two()
            m.b.bias = nn.Parameter(m.a.bias.detach()[:3])
            return m

        self.refused("'a.bias' and 'b.bias' share memory.*make them one", make)
        self.refused("'weight' has no shape yet.*call the module once", lambda: nn.LazyLinear(3))

    def test_hooks_that_record(self):
        seen = {}

        def make():
            m = Two()
            m.a.register_forward_hook(lambda m, x, y: seen.update(a=y.detach()))
            return m

        self.refused(r"forward changes 'seen\['a'\]'.*return it", make)
        self.assertEqual(seen, {})

    def test_memories_with_a_backward_pass(self):
        class Memory(Two):
            def __init__(self):
                super().__init__()
                self.last = torch.zeros(16, 8)

            def between(self, h):
                h = Reverse.apply(h) + self.last
                self.last = h.detach()
                return h

        self.refused("reads it in the next call: register_buffer", Memory)


if __name__ == "__main__":
    unittest.main()
