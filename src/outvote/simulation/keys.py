"""What a stored result is known by: a description of all that decides it, in which a user's own code has a `key`."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import outvote


class NoKey(Exception):
    """A user's own function, class or object of which nobody can tell whether it is the same as before."""


def description(part: Any) -> Any:
    """Describe a part in plain JSON types.

    What is a user's own is known by its attribute `key`, a text that changes whenever its code does. Of an object, the
    values that it holds are part of the description.
    """
    if part is None or isinstance(part, bool | int | float | str):
        return part
    if isinstance(part, Path):
        return str(part)
    if isinstance(part, Sequence):
        return [description(each) for each in part]
    is_code = isinstance(part, type) or hasattr(part, "__qualname__")
    code = part if is_code else type(part)
    name = f"{code.__module__}.{code.__qualname__}" if is_ours(part) else getattr(part, "key", None)
    if not isinstance(name, str):
        raise NoKey(f"{name_of(part)} has no `key`")
    return [name, {} if is_code else {field: description(value) for field, value in sorted(vars(part).items())}]


def strangers(part: Any) -> Iterator[str]:
    """Name what in a part is not Outvote's, and so unknown to a process that was started elsewhere."""
    if part is None or isinstance(part, bool | int | float | str | Path | Sequence):
        return
    if not is_ours(part):
        yield name_of(part)
    elif not hasattr(part, "__qualname__"):
        for value in vars(part).values():
            yield from strangers(value)


def name_of(part: object) -> str:
    """What people are told of a function, a class or an object."""
    return str(getattr(part, "key", None) or getattr(part, "__qualname__", type(part).__qualname__))


def is_ours(part: object) -> bool:
    return module_of(part).partition(".")[0] == "outvote"


def module_of(part: object) -> str:
    return str(getattr(part, "__module__", ""))


@functools.cache
def code_digest() -> str:
    """Tells one state of our code from another: what is stored by one is not read by the other."""
    root = Path(outvote.__file__).parent
    files = sorted(path for room in ("core", "simulation") for path in (root / room).rglob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:20]
