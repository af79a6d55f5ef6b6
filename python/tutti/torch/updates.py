"""What PyTorch's optimizers do to one parameter, as nodes; the formulas are those of torch/optim, single tensor by single tensor."""
import math

from tutti import ops
from tutti._core import Value


def _sqrt(x):
    return ops.sqrt(x) if isinstance(x, Value) else math.sqrt(x)


class Parameter:
    """One parameter while a step is built. `s`: its group's settings by name, numbers, or scalar values where they change between
    steps; `flags`: those that are true or false. `t`: the number of this update of the parameter, from 1, as a float scalar. `due`:
    whether there is an update in this step, a value; None: always."""

    def __init__(self, graph, name, value, gradient, rate, s, flags, t, shared, due):
        self.graph, self.name, self.p, self.rate, self.s, self.flags = graph, name, value, rate, s, flags
        self.t, self._shared, self.due = t, shared, due
        self.d = ops.neg(gradient) if flags["maximize"] else gradient

    def fixed(self, *names):
        """Whether none of these settings changes between steps."""
        return not any(isinstance(self.s[n], Value) for n in names)

    def moment(self, key):
        return self.graph.state(f"optimizer.{key}.{self.name}", "f32", list(self.p.shape), role="optimizer")

    def keep(self, key, value):
        self.set(f"optimizer.{key}.{self.name}", value, self.moment(key))

    def update(self, value):
        self.set(self.name, value, self.p, "parameter")

    def set(self, name, value, old, role="optimizer"):
        """A state after the step; where no update is due, it stays."""
        self.graph.set_state(name, value if self.due is None else ops.select(self.due, value, old), role=role)

    def shared(self, key, make):
        """What all parameters of a group have in common: made once."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def correction(self, beta):
        """1 - beta^t."""
        b = self.s[beta]
        log = ops.log(b) if isinstance(b, Value) else math.log(b) if b else -math.inf
        return self.shared(beta, lambda: ops.neg(ops.expm1(self.t * log)))

    def decayed(self):
        """The gradient with the weight decay added to it, or, where the decay is decoupled, a parameter that has shrunk."""
        decay = self.s["weight_decay"]
        if not isinstance(decay, Value) and decay == 0:
            return self.p, self.d
        if self.flags.get("decoupled_weight_decay"):
            return self.p * (1 - self.rate * decay), self.d
        return self.p, self.d + self.p * decay

    def average(self, key, beta, x):
        """The moving average of x under that key."""
        b = self.s[beta]
        y = self.moment(key) * b + x * (1 - b)
        self.keep(key, y)
        return y


def sgd(u):
    if not u.flags["momentum"]:
        if u.fixed("weight_decay"):
            return u.update(ops.sgd(u.p, u.d, u.rate, weight_decay=u.s["weight_decay"]))
        return u.update(u.p - u.rate * u.decayed()[1])
    nesterov = u.flags["nesterov"]
    if u.fixed("weight_decay", "momentum", "dampening") and u.s["dampening"] == 0:
        p, m = ops.sgd_momentum(u.p, u.d, u.moment("m"), u.rate, momentum=u.s["momentum"], nesterov=int(nesterov),
                                weight_decay=u.s["weight_decay"])
    else:
        g = u.decayed()[1]
        damped = g if u.fixed("dampening") and u.s["dampening"] == 0 else ops.select(ops.equal(u.t, u.first), g, g * (1 - u.s["dampening"]))
        m = u.moment("m") * u.s["momentum"] + damped
        p = u.p - u.rate * (g + m * u.s["momentum"] if nesterov else m)
    u.keep("m", m)
    return u.update(p)


def adam(u):
    c1, c2 = u.correction("beta1"), u.correction("beta2")
    decoupled = u.flags["decoupled_weight_decay"]
    if not u.flags["amsgrad"] and u.fixed("beta1", "beta2", "epsilon", "weight_decay"):
        fused = ops.adamw if decoupled else ops.adam
        p, m, v = fused(u.p, u.d, u.moment("m"), u.moment("v"), u.rate, c1, c2,
                        **{k: u.s[k] for k in ("beta1", "beta2", "epsilon", "weight_decay")})
        u.keep("m", m)
        u.keep("v", v)
        return u.update(p)
    p, g = u.decayed()
    m, v = u.average("m", "beta1", g), u.average("v", "beta2", g * g)
    if u.flags["amsgrad"]:
        v = ops.maximum(u.moment("x"), v)
        u.keep("x", v)
    return u.update(p - (u.rate / c1) * m / (ops.sqrt(v) / ops.sqrt(c2) + u.s["epsilon"]))


def nadam(u):
    p, g = u.decayed()

    def momentum(t):
        return u.s["beta1"] * (1 - 0.5 * ops.exp(t * (u.s["momentum_decay"] * math.log(0.96))))

    def factors():
        now, after = momentum(u.t), momentum(u.t + 1)
        before = u.graph.state(u.product, "f32", [], role="optimizer")
        product = ops.select(ops.equal(u.t, 1), before.like(1), before) * now
        u.set(u.product, product, before)
        return (1 - now) / (1 - product), after / (1 - product * after)

    of_gradient, of_moment = u.shared("momentum", factors)
    m, v = u.average("m", "beta1", g), u.average("v", "beta2", g * g)
    below = ops.sqrt(v / u.correction("beta2")) + u.s["epsilon"]
    return u.update(p - u.rate * (of_gradient * g + of_moment * m) / below)


def radam(u):
    p, g = u.decayed()
    c1, c2, beta2 = u.correction("beta1"), u.correction("beta2"), u.s["beta2"]

    def rectified():
        most = 2 / (1 - beta2) - 1
        length = most - 2 * u.t * (1 - c2) / c2
        good = ops.less(5, length)
        safe = ops.select(good, length, length.like(6))
        return good, ops.sqrt((safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe)) * ops.sqrt(c2)

    good, factor = u.shared("rectified", rectified)
    m, v = u.average("m", "beta1", g), u.average("v", "beta2", g * g)
    step = m / c1
    return u.update(p - u.rate * ops.select(good, step * factor / (ops.sqrt(v) + u.s["epsilon"]), step))


def adamax(u):
    p, g = u.decayed()
    m = u.average("m", "beta1", g)
    largest = ops.maximum(u.moment("u") * u.s["beta2"], ops.abs(g) + u.s["epsilon"])
    u.keep("u", largest)
    return u.update(p - u.rate / u.correction("beta1") * m / largest)


def rmsprop(u):
    p, g = u.decayed()
    square = u.average("v", "alpha", g * g)
    if u.flags["centered"]:
        mean = u.average("g", "alpha", g)
        square = square - mean * mean
    step = g / (ops.sqrt(square) + u.s["epsilon"])
    if u.flags["momentum"]:
        step = u.moment("m") * u.s["momentum"] + step
        u.keep("m", step)
    return u.update(p - u.rate * step)


def adagrad(u):
    p, g = u.decayed()
    total = u.moment("s") + g * g
    u.keep("s", total)
    rate = u.rate
    if not u.fixed("lr_decay") or u.s["lr_decay"]:
        rate = rate / (1 + (u.t - 1) * u.s["lr_decay"])
    return u.update(p - rate * g / (ops.sqrt(total) + u.s["epsilon"]))


def adadelta(u):
    p, g = u.decayed()
    square, moved = u.average("v", "rho", g * g), u.moment("a")
    step = ops.sqrt(moved + u.s["epsilon"]) / ops.sqrt(square + u.s["epsilon"]) * g
    u.average("a", "rho", step * step)
    return u.update(p - u.rate * step)


def clipped(gradients, largest):
    """As torch.nn.utils.clip_grad_norm_ has it; `largest` is a scalar value."""
    total = None
    for d in gradients:
        square = ops.sum(d * d)
        total = square if total is None else total + square
    factor = ops.minimum(largest / (ops.sqrt(total) + 1e-6), 1)
    return [d * factor for d in gradients]
