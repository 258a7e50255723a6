"""Compiled engines. One file per idea; each that skips draws opens with the argument why what it computes is exact.

They are the only second writing of the protocols; `tests/agreement` is their licence.
"""
