"""Which code belongs to installed packages, or to Python itself."""
import functools
import os
import sys
import sysconfig

import torch

_PACKAGES = tuple({os.path.realpath(p) + os.sep for p in (*(sysconfig.get_path(k) for k in ("stdlib", "purelib", "platlib")),
                                                          os.path.dirname(torch.__file__), *(os.path.dirname(os.path.dirname(f)) for f in (__file__, os.path.realpath(__file__))))})
_STANDARD, _SITE = (os.path.realpath(sysconfig.get_path(k)) + os.sep for k in ("stdlib", "purelib"))


@functools.lru_cache(None)
def installed_file(path):
    """Whether a file of code does."""
    return os.path.realpath(path).startswith(_PACKAGES)


def installed(name):
    """Whether a Python module does."""
    module = sys.modules.get(name)
    path = getattr(module, "__file__", None)
    return name in sys.builtin_module_names or (path is not None and installed_file(path))


@functools.lru_cache(None)
def standard_file(path):
    """Whether a file of code is of Python's own library."""
    path = os.path.realpath(path)
    return path.startswith(_STANDARD) and not path.startswith(_SITE)
