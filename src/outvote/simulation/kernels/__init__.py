"""Compiled kernels of the engine `fast`. One file per idea; each that skips draws opens with why that is exact.

They are the only second writing of the protocols; `tests/agreement` is their licence.
"""
