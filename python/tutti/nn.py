"""Modules, named as in PyTorch. They hold no tensors: parameters are declared when a trainer builds the model.

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(128), nn.Linear(10)

        def forward(self, x):
            return self.fc2(tutti.ops.relu(self.fc1(nn.flatten(x))))

Input sizes are inferred. Parameters are named by their attribute path: "fc1.weight".
"""
import contextlib
import contextvars
from collections.abc import Sequence
from typing import Any

from tutti import _core, ops
from tutti.errors import InvalidError

_builder = contextvars.ContextVar("tutti.nn.builder")


@contextlib.contextmanager
def building(builder):
    """Modules called in this context are built with `builder`."""
    token = _builder.set(builder)
    try:
        yield builder
    finally:
        _builder.reset(token)


def builder() -> _core.Builder:
    """The builder of the current model: a tutti._core.Builder."""
    try:
        return _builder.get()
    except LookupError:
        raise InvalidError("a module was called outside of a task", "a trainer builds the model: Trainer(task, …)") from None


class Module:
    """A part of a model: `forward` maps values to values. Modules assigned to attributes are its children."""

    def __init__(self) -> None:
        object.__setattr__(self, "_children", {})

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            if "_children" not in self.__dict__:
                raise InvalidError(f"{type(self).__name__}.__init__ set '{name}' first", "call super().__init__() at its beginning")
            self._children[name] = value
            if "_name" not in value.__dict__:
                object.__setattr__(value, "_name", name)
        object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__dict__.get("_name")
        if name is None:
            return self.forward(*args, **kwargs)
        with builder().scope(name):
            return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def parameter(self, name: str, shape: Sequence[int], init: Any = "zeros", **properties: Any) -> _core.Value:
        """Declares a parameter of this module and returns its value at the start of the step; call it in forward().
        `init`: "zeros", "ones", ("uniform", low, high) or ("normal", mean, std). Properties: decay, lr_scale,
        frozen."""
        kind, *numbers = init if isinstance(init, tuple) else (init,)
        return builder().parameter(name, list(shape), kind, *(float(x) for x in numbers), **properties)

    def __repr__(self):
        inner = "".join(f"\n  ({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._children.items())
        return f"{type(self).__name__}({inner}\n)" if inner else f"{type(self).__name__}()"


class _Layer(Module):
    """A built-in module of the engine."""

    def __init__(self, layer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: _core.Value) -> _core.Value:
        return self.layer.forward(builder(), x)

    def __repr__(self):
        return repr(self.layer)


class Linear(_Layer):
    """x [..., I] to [..., features]: x weight^T + bias, weight [features, I]."""

    def __init__(self, features: int, bias: bool = True, init: str = "default") -> None:
        super().__init__(_core.linear(features, bias, init))


class Conv2d(_Layer):
    """Images [N, C, H, W] to [N, channels, …]."""

    def __init__(self, channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = True, init: str = "default") -> None:
        super().__init__(_core.conv2d(channels, kernel_size, stride, padding, dilation, groups, bias, init))


class ConvTranspose2d(_Layer):
    """Transposed convolution: the gradient of a convolution with respect to its images."""

    def __init__(self, channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0, groups: int = 1, bias: bool = True, dilation: int = 1, init: str = "default") -> None:
        super().__init__(_core.conv_transpose2d(channels, kernel_size, stride, padding, output_padding, dilation, groups, bias, init))


class MaxPool2d(_Layer):
    """The maximum of every window."""

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0) -> None:
        super().__init__(_core.max_pool2d(kernel_size, stride or 0, padding))


class Dropout(_Layer):
    """In training zeroes elements with probability p and scales the others by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(_core.dropout(p))


class Flatten(_Layer):
    """[N, …] to [N, product]."""

    def __init__(self) -> None:
        super().__init__(_core.flatten())


class Unflatten(_Layer):
    """[N, product] to [N, *sizes]."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__(_core.unflatten(list(sizes)))


class BatchNorm2d(_Layer):
    """Normalizes every channel over the batch; in evaluation by running statistics."""

    def __init__(self, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__(_core.batch_norm(eps, momentum))


BatchNorm1d = BatchNorm2d


class LayerNorm(_Layer):
    """Normalizes over the last axis."""

    def __init__(self, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__(_core.layer_norm(eps, bias))


class RMSNorm(_Layer):
    """Divides the last axis by its root mean square."""

    def __init__(self, eps: float = 1e-6) -> None:
        super().__init__(_core.rms_norm(eps))


class GroupNorm(_Layer):
    """Normalizes groups of channels of each sample."""

    def __init__(self, num_groups: int, eps: float = 1e-5) -> None:
        super().__init__(_core.group_norm(num_groups, eps))


class Embedding(_Layer):
    """A row of a table [num_embeddings, embedding_dim] for every i32 index."""

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        super().__init__(_core.embedding(num_embeddings, embedding_dim))


class MultiheadAttention(_Layer):
    """Self-attention over tokens [N, T, width]."""

    def __init__(self, num_heads: int, causal: bool = False, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__(_core.multihead_attention(num_heads, causal, dropout, bias))


def _activation(name, torch_name):
    class Activation(_Layer):
        __doc__ = f"The activation {name}."

        def __init__(self) -> None:
            super().__init__(_core.activation(name))
    Activation.__name__ = Activation.__qualname__ = torch_name
    return Activation


ReLU = _activation("relu", "ReLU")
LeakyReLU = _activation("leaky_relu", "LeakyReLU")
ELU = _activation("elu", "ELU")
GELU = _activation("gelu", "GELU")
Sigmoid = _activation("sigmoid", "Sigmoid")
Tanh = _activation("tanh", "Tanh")
SiLU = _activation("silu", "SiLU")
Softplus = _activation("softplus", "Softplus")


class _Recurrent(Module):
    kind = ""

    def __init__(self, hidden_size: int, num_layers: int = 1, bidirectional: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.options = hidden_size, num_layers, bidirectional, dropout

    def forward(self, x, lengths=None):
        return _core.recurrent(builder(), self.kind, x, *self.options, lengths)

    def __repr__(self):
        return f"{type(self).__name__}{self.options[:2]}"


class LSTM(_Recurrent):
    """Sequences [N, T, I] to (y [N, T, directions * hidden], h_n, c_n)."""

    kind = "lstm"


class GRU(_Recurrent):
    """Sequences [N, T, I] to (y [N, T, directions * hidden], h_n)."""

    kind = "gru"

    def forward(self, x, lengths=None):
        return super().forward(x, lengths)[:2]


class Sequential(Module):
    """Runs modules in sequence; they are named "0", "1", …."""

    def __init__(self, *layers: Module) -> None:
        super().__init__()
        for i, layer in enumerate(layers):
            setattr(self, str(i), layer)

    def forward(self, x):
        for layer in self._children.values():
            x = layer(x)
        return x


class ModuleList(Sequential):
    """A list of modules; it cannot be called itself."""

    def __iter__(self):
        return iter(self._children.values())

    def __len__(self):
        return len(self._children)

    def __getitem__(self, i):
        return list(self._children.values())[i]

    def forward(self, *args, **kwargs):
        raise NotImplementedError("a ModuleList is not called as a whole")


def flatten(x: _core.Value) -> _core.Value:
    """[N, …] to [N, product]."""
    return ops.reshape(x, shape=[x.shape[0], -1])
