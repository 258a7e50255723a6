"""The tables of all that is stored, sent and logged, from the closed schemas."""

from __future__ import annotations

from generators.tables import table
from outvote.privacy import schemas


def privacy_schemas() -> str:
    """One section for each thing."""
    parts = ["`[]` is each of a list; `*` is the id of a task."]
    for schema in schemas.SCHEMAS:
        rows = [
            (f"`{each.path}`", each.what + ("; may be left out" if each.optional else ""), _kind(each.kind), each.why)
            for each in schema.fields
        ]
        heads = ["field", "what it is", "what it can hold", "why it may be there"]
        parts += [f"#### {schema.title}", table(heads, rows)]
    lines = [(f"`{name}`", what, _kind(kind)) for name, (kind, what) in schemas.LOG_FIELDS.items()]
    names = ", ".join(f"`{each}`" for each in sorted(schemas.LOG_EVENTS))
    parts += ["#### Lines of a log", table(["field", "what it is", "what it can hold"], lines), f"Events: {names}."]
    return "\n\n".join(parts)


def _kind(kind: str) -> str:
    return schemas.KINDS[kind][0]
