"""The built-in optimizers, and optimizers of one's own."""
import inspect
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from tutti import _core
from tutti._core import Value
from tutti.errors import Error, InvalidError


class Optimizer:
    """Base class of the optimizers in tutti.optim, and of those that tutti.optimizer makes."""

    name = ""
    _defaults: dict[str, float | bool] = {}

    def __init__(self, **hyperparameters: float | bool) -> None:
        for key, x in hyperparameters.items():
            if key not in self._defaults:
                raise InvalidError(f"{self.name} has no hyperparameter '{key}'", "it has " + ", ".join(self._defaults))
            try:
                float(x)
            except (TypeError, ValueError) as e:
                raise InvalidError(f"{self.name}: {key}={x!r} is no number", "hyperparameters are numbers") from e
        self.hyperparameters = {**self._defaults, **hyperparameters}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in self.hyperparameters.items())})"

    def _options(self) -> dict[str, Any]:
        """What a trainer hands to the engine."""
        return {"optimizer": (self.name, {k: float(v) for k, v in self.hyperparameters.items()})}


def _built_in(name, defaults):
    title = {"sgd": "SGD"}.get(name, "".join(part.capitalize() for part in name.split("_")))
    doc = f"The optimizer {name}: " + ", ".join(f"{k}={v}" for k, v in defaults.items()) + "."
    return title, type(title, (Optimizer,), {"__doc__": doc, "name": name, "_defaults": defaults})


optimizers = dict(_built_in(name, defaults) for name, defaults in _core.optimizers().items())


class _State(MutableMapping[str, Value]):
    """The states of one parameter during its update."""

    def __init__(self, update):
        self._update, self._next = update, {}

    def __getitem__(self, key: str) -> Value:
        return self._next[key] if key in self._next else self._update.moment(_named(key))

    def __setitem__(self, key: str, value: Value) -> None:
        if not isinstance(value, Value):
            raise InvalidError(f"state['{key}'] is set to {type(value).__name__}", "set it to a value that is computed from the arguments")
        self._update.set_moment(_named(key), value)
        self._next[key] = value

    def __delitem__(self, key: str) -> None:
        raise InvalidError(f"state['{key}'] is deleted", "states last as long as the run")

    def __iter__(self) -> Iterator[str]:
        return iter(self._next)

    def __len__(self) -> int:
        return len(self._next)


def _named(key):
    if not isinstance(key, str):
        raise InvalidError(f"state[{key!r}]: {type(key).__name__} is no name", "states have names: state['m']")
    return key


class _Traced(Optimizer):
    """An optimizer whose update is a Python function."""

    _function: Callable[..., Any]

    def _options(self):
        return {**super()._options(), "traced": self._update}

    def _update(self, u):
        """Builds the update of one parameter."""
        given = {**self.hyperparameters, "lr": u.rate}
        if "weight_decay" in given and not u.decays:
            given["weight_decay"] = 0.0
        try:
            p = type(self)._function(u.parameter, u.gradient, _State(u), u.step, **given)
            if not isinstance(p, Value):
                raise InvalidError(f"the update of '{u.name}' gave {type(p).__name__}", "return the parameter's next value, computed from its arguments")
            u.set_parameter(p)
        except Error as e:
            raise InvalidError(f"optimizer '{self.name}': {e.message}", e.remedy) from e
        except (TypeError, AttributeError, ValueError) as e:
            raise InvalidError(f"optimizer '{self.name}': {e}", "make the update of its values by operators and functions of tutti.ops") from e


def _defaults_of(function, name):
    """The hyperparameters of an update function by name."""
    remedy = "def update(p, g, state, step, *, lr=1e-3): …"
    kinds = inspect.Parameter
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    others = [p for p in parameters if p not in positional]
    if len(positional) != 4 or any(p.default is not kinds.empty for p in positional):
        raise InvalidError(f"optimizer '{name}' takes ({', '.join(p.name for p in positional)}), expected parameter, gradient, state and "
                           "step, without defaults", remedy)
    for p in others:
        if p.kind is not kinds.KEYWORD_ONLY or not isinstance(p.default, (bool, int, float)):
            raise InvalidError(f"optimizer '{name}': the hyperparameter {p} is no keyword with a number as its default", remedy)
    defaults = {p.name: p.default for p in others}
    if "lr" not in defaults or isinstance(defaults["lr"], bool):
        raise InvalidError(f"optimizer '{name}' has no learning rate 'lr'", remedy)
    return defaults


def optimizer(function: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Makes an optimizer, a class like those in tutti.optim, of a function that computes the next value of one parameter.

        @tutti.optimizer
        def sign_momentum(p, g, state, step, *, lr=1e-3, momentum=0.9, weight_decay=0.0):
            state["m"] = momentum * state["m"] + g
            return p - lr * (ops.sign(state["m"]) + weight_decay * p)

        trainer = tutti.Trainer(task, optimizer=sign_momentum(lr=1e-2))

    p, g      the parameter and its gradient
    state     the parameter's own states by name, which have its shape and are 0 at first; checkpoints contain them
    step      the number of this update, from 1, a float scalar
    lr        the learning rate of this step and this parameter, a float scalar; the default is the base learning rate
    the rest  numbers; weight_decay is 0 for parameters without weight decay

    The function is made of operators and functions of tutti.ops. It runs when a step is compiled, once per parameter; all updates
    become one or a few launches. `name`, by default the function's, stands in checkpoints, which other optimizers cannot resume."""
    if function is None:
        return lambda f: optimizer(f, name=name)
    if not callable(function) or isinstance(function, type):
        raise InvalidError(f"tutti.optimizer of {'the class ' + function.__name__ if isinstance(function, type) else type(function).__name__}",
                           "hand in a function that updates a parameter")
    name = name or getattr(function, "__name__", "")
    if name in ("", "<lambda>"):
        raise InvalidError("an optimizer has no name", "@tutti.optimizer(name=\"…\"): checkpoints contain it")
    return type(name, (_Traced,), {"__doc__": function.__doc__, "__module__": function.__module__, "name": name,
                                   "_defaults": _defaults_of(function, name), "_function": staticmethod(function)})
