"""The public names of the package with their signatures and docstrings.

Public is what `PUBLIC` lists here: modules, and of each what `__all__` names, or without one what it defines itself
under a name that does not begin with `_`.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from generators.tables import paragraphs

PUBLIC = (
    "outvote",
    "outvote.client",
    "outvote.openfeature",
    "outvote.core.task",
    "outvote.core.protocols",
    "outvote.core.messages",
    "outvote.core.ledger",
    "outvote.core.codes",
    "outvote.core.errors",
    "outvote.simulation",
    "outvote.theory",
    "outvote.planner.question",
    "outvote.planner.plan",
)
LONGEST = 100
"""A signature that is longer has a line for each parameter."""


def python_reference() -> str:
    """One section for each module."""
    return "\n\n".join(part for name in PUBLIC for part in _module(importlib.import_module(name)))


def _module(module: ModuleType) -> Iterator[str]:
    """What a name stands for is described where it is defined, if that is public itself."""
    yield f"## {module.__name__}"
    if module.__doc__:
        yield paragraphs(module.__doc__)
    found = {name: getattr(module, name) for name in _names(module)}
    elsewhere = {name: _home(each) for name, each in found.items() if _home(each) in {*PUBLIC} - {module.__name__}}
    if elsewhere:
        yield "\n".join(f"- `{name}`: see [{home}](#{home.replace('.', '')})" for name, home in elsewhere.items())
    for name, each in found.items():
        if name in elsewhere:
            continue
        if inspect.isclass(each):
            yield from _class(each)
        elif inspect.isfunction(each):
            yield from _function(each)


def _names(module: ModuleType) -> list[str]:
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [name for name, each in vars(module).items() if not name.startswith("_") and _home(each) == module.__name__]


def _home(found: object) -> str:
    """The module that defines it, or shows it as its own; that of a module is itself."""
    module = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", "")
    return "outvote.simulation" if module.startswith("outvote.simulation.") else module


# ---- classes


def _class(found: type) -> Iterator[str]:
    yield f"### {found.__name__}"
    if getattr(found, "_is_protocol", False):
        yield from _interface(found)
        return
    fields = dataclasses.fields(found) if dataclasses.is_dataclass(found) else ()
    own = [found, *(base for base in found.__bases__ if base.__name__.startswith("_"))]  # a private base is not shown
    init = next((vars(each)["__init__"] for each in own if "__init__" in vars(each)), None)
    if not inspect.isfunction(init) or (fields and not init.__doc__):  # a dataclass has its own
        init = None
    given = _bases(found) if init is None else _signature(_without_first(init), result=False)
    yield _code(f"class {found.__name__}{given}")
    yield from _documented(found, init)
    notes = _notes(found)
    lines = [f"- `{each.name}: {each.type}`{_default(each)}{_note(notes, each.name)}" for each in fields]
    lines += [f"- `{name}`: {text}" for name, text in notes.items() if not fields]
    if lines:
        yield "\n".join(lines)
    for name, each in vars(found).items():
        if name.startswith("_"):
            continue
        if isinstance(each, property):
            yield f"#### {found.__name__}.{name}"
            yield _property(each)
        elif isinstance(each, classmethod):
            yield from _function(each.__func__, of=found, decorator="@classmethod\n")
        elif inspect.isfunction(each):
            yield from _function(each, of=found)


def _interface(found: type) -> Iterator[str]:
    """What a class must have to be one of these: all in one block."""
    yield from _documented(found)
    lines = []
    for name, each in vars(found).items():
        if name.startswith("_"):
            continue
        if isinstance(each, property):
            assert each.fget is not None
            lines.append(f"{name}: {inspect.signature(each.fget).return_annotation}  # a property")
        elif inspect.isfunction(each):
            lines.append(f"def {name}{_signature(_without_first(each))}")
    lines[:0] = [f"{name}: {kind}" for name, kind in inspect.get_annotations(found).items()]
    yield _code("\n".join(lines))


def _documented(found: type, init: Callable[..., Any] | None = None) -> Iterator[str]:
    if found.__doc__ and not found.__doc__.startswith(f"{found.__name__}("):  # that is what dataclasses make up
        yield paragraphs(found.__doc__)
    if init is not None and init.__doc__:
        yield paragraphs(init.__doc__)


def _property(found: property) -> str:
    assert found.fget is not None
    kind = f"Property, `{inspect.signature(found.fget).return_annotation}`."
    return paragraphs(f"{kind} {found.__doc__}") if found.__doc__ else kind


def _bases(found: type) -> str:
    names = [base.__name__ for base in found.__bases__ if base is not object]
    return f"({', '.join(names)})" if names else ""


def _default(field: dataclasses.Field[Any]) -> str:
    return "" if field.default is dataclasses.MISSING else f" = `{field.default!r}`"


def _note(notes: dict[str, str], name: str) -> str:
    return f": {notes[name]}" if name in notes else ""


def _notes(found: type) -> dict[str, str]:
    """What is written below a field or an attribute of a class: a string on its own."""
    notes: dict[str, str] = {}
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(found)))
    for body in (node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)):
        for before, after in itertools.pairwise(body):
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                name = _assigned(before)
                if name and not name.startswith("_"):
                    notes[name] = " ".join(str(after.value.value).split())
    return notes


def _assigned(node: ast.stmt) -> str:
    """The name of what a statement gives a value."""
    target: ast.expr | None = None
    if isinstance(node, ast.AnnAssign):
        target = node.target
    elif isinstance(node, ast.Assign):
        target = node.targets[0]
    return target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""


# ---- functions


def _function(function: Callable[..., Any], *, of: type | None = None, decorator: str = "") -> Iterator[str]:
    name = function.__name__
    signature = inspect.signature(function) if of is None else _without_first(function)
    yield f"### {name}" if of is None else f"#### {of.__name__}.{name}"
    word = "async def" if inspect.iscoroutinefunction(function) else "def"
    yield _code(f"{decorator}{word} {name}{_signature(signature)}")
    if function.__doc__:
        yield paragraphs(function.__doc__)


def _without_first(function: Callable[..., Any]) -> inspect.Signature:
    """As a caller writes it: without `self` or `cls`."""
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _signature(signature: inspect.Signature, *, result: bool = True) -> str:
    """As it is written in the code."""
    if not result:
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    text = _plain(str(signature))
    if len(text) <= LONGEST:
        return text
    given = list(signature.parameters.values())
    parameters = [_plain(str(each)) for each in given]
    named = [place for place, each in enumerate(given) if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if named:
        parameters.insert(named[0], "*")
    after = f" -> {signature.return_annotation}" if result else ""
    return "(\n" + "".join(f"    {each},\n" for each in parameters) + ")" + after


def _plain(text: str) -> str:
    """Annotations are strings here: without their quotes. A default that is a function has no text of its own."""
    return re.sub(r"<function .*?> at 0x[0-9a-f]+>", "…", re.sub(r"(: |-> )'([^']*)'", r"\1\2", text))


def _code(text: str) -> str:
    return f"```py\n{text}\n```"
