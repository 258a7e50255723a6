"""What both OpenAPI documents say of who may ask: tokens, and the answers to who is turned away. Said once for all."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from outvote.web import problems
from outvote.web.connections import LARGEST_HEAD, MOST_FIELDS
from outvote.web.limits import UNFINISHED

SAID: Final = {
    "401": "A token is needed and there is none, or it is not known, or has expired: the type tells which.",
    "403": "This token may not do that; or who asks is a page of another origin, or calls this process by a name that "
    "is not its own.",
    "408": f"The request was not whole within {UNFINISHED} s.",
    "431": f"The head of the request has more than {MOST_FIELDS} fields, or more than {LARGEST_HEAD:,} bytes.",
}
"""By status: what any path may answer."""
BY_THE_LISTENER: Final = ("408", "431")
"""Those that come before anybody looks at the path."""


def add_security(
    document: dict[str, Any], *, tokens: str, without: Collection[str], failures: str = ""
) -> dict[str, Any]:
    """The document with them. `tokens` says whose are good, `without` are the paths that need none; `failures` are the
    paths that refuse with `EvaluationFailed`."""
    parts = document["components"]
    parts["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": f"{tokens} Needed when the process was started with tokens, else by nobody.",
        }
    }
    parts["responses"] = {f"Refused{status}": _response(status, said) for status, said in SAID.items()}
    if failures:
        parts["responses"] |= {
            f"Failed{status}": _response(status, said, "EvaluationFailed")
            for status, said in SAID.items()
            if status not in BY_THE_LISTENER
        }
    document["security"] = [{"token": []}, {}]
    for path, item in document["paths"].items():
        own = "Failed" if failures and path.startswith(failures) else "Refused"
        for method, operation in item.items():
            if method != "parameters":
                item[method] = _guarded(operation, is_open=path in without, own=own)
    return document


def _guarded(operation: dict[str, Any], *, is_open: bool, own: str) -> dict[str, Any]:
    kinds = {"401": own, "403": own, **dict.fromkeys(BY_THE_LISTENER, "Refused")}
    if is_open:
        del kinds["401"]
    references = {status: {"$ref": f"#/components/responses/{kind}{status}"} for status, kind in kinds.items()}
    return operation | {"responses": operation["responses"] | references} | ({"security": []} if is_open else {})


def _response(status: str, said: str, kind: str = "Problem") -> dict[str, Any]:
    media = problems.CONTENT_TYPE.decode() if kind == "Problem" else "application/json"
    found: dict[str, Any] = {
        "description": said,
        "content": {media: {"schema": {"$ref": f"#/components/schemas/{kind}"}}},
    }
    if status == "401":
        found["headers"] = {"WWW-Authenticate": {"description": "`Bearer`", "schema": {"type": "string"}}}
    return found
