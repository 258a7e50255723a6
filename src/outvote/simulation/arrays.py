"""Names for the array types that kernels and engines exchange."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
FloatTable: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
IntegerTable: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
IntegerCube: TypeAlias = np.ndarray[tuple[int, int, int], np.dtype[np.int64]]
