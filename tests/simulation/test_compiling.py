"""Kernels compile where no folder can hold their machine code, too."""

from __future__ import annotations

from typing import Any

import numba
import pytest

from outvote.simulation.kernels import compiling


def double(value: int) -> int:
    return 2 * value


def test_without_a_folder_for_the_cache_kernels_are_compiled_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = numba.njit
    asked: list[bool] = []

    def njit_without_a_folder(**options: Any) -> Any:
        asked.append(options.get("cache", False))
        if options.get("cache"):
            # what numba does where neither the package's folder nor the user's cache can be written
            def refuse(function: Any) -> Any:
                raise RuntimeError("cannot cache function: no locator available")

            return refuse
        return real(**options)

    monkeypatch.setattr(compiling, "njit", njit_without_a_folder)
    assert compiling.compiled(double)(21) == 42
    assert asked == [True, False]
