"""Exceptions raised by the engine."""


class Error(Exception):
    """Base class: `str(e)` is the message and the remedy, `e.remedy` only the remedy, `e.option` the name of the keyword
    argument that is wrong ("" if it is not one of a run's options)."""

    option = ""

    def __init__(self, message, remedy=""):
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.message, self.remedy = message, remedy


class InvalidError(Error, ValueError):
    """Bad input: a shape, a name, a file."""


class OutOfRangeError(InvalidError, IndexError):
    """A label or an index of a batch that does not exist."""


class DeclinedError(Error):
    """The device cannot run an operation."""


class NoMemoryError(Error, MemoryError):
    """The device or the host is out of memory."""


class DeviceLostError(Error):
    """The device was lost: restart the process."""


class NotFiniteError(InvalidError):
    """A loss or a value to be saved is NaN or infinite; `e.step` is the first such step, counted from 1."""

    step = 0


class UnsupportedError(InvalidError):
    """A PyTorch module has operations that Tutti does not support: `e.operations` lists them."""

    operations = ()
