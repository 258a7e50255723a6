"""How kernels are compiled: to machine code kept on disk where some folder can be written, in memory where none can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first call. Kernels release the interpreter's lock and do not check bounds."""
    try:
        kernel = njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")(function)
    except RuntimeError:  # numba found no folder for its cache
        kernel = njit(nogil=True, boundscheck=False, error_model="numpy")(function)
    return cast(Function, kernel)
