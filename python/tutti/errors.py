"""What the engine raises."""


class Error(Exception):
    """Something failed: `str(e)` says what and what to do, `e.remedy` the latter alone."""

    def __init__(self, message, remedy=""):
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.message, self.remedy = message, remedy


class InvalidError(Error, ValueError):
    """Bad input: a shape, a name, a file."""


class DeclinedError(Error):
    """The device cannot run this."""


class NoMemoryError(Error, MemoryError):
    """The device or the host has no memory for it."""


class DeviceLostError(Error):
    """The device is gone: restart the process."""


class NotFiniteError(InvalidError):
    """A loss or what would be saved is NaN or infinite; `e.step` is the first such step, counted from 1."""

    step = 0


class UnsupportedError(InvalidError):
    """A PyTorch module has operations that Tutti lacks: `e.operations` lists them."""

    operations = ()
