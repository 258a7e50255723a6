"""Both HTTP APIs, from the OpenAPI documents that they serve, and the problems that they answer with."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import outvote
from generators.tables import cell, paragraphs, table
from outvote.edge import openapi as edge_openapi
from outvote.server.admin import openapi as admin_openapi
from outvote.web import problems, refusals

BLANK = "about:blank"


def server_reference() -> str:
    """The API for operators."""
    return "\n\n".join(_api(admin_openapi.openapi(), "server"))


def edge_reference() -> str:
    """The API for applications."""
    return "\n\n".join(_api(edge_openapi.openapi(), "edge"))


def problem_types() -> str:
    """What a program can tell apart in a refusal."""
    edge = {(f"urn:outvote:problem:{name}", status.value) for _, status, name in problems._TABLE if name}
    doors = {(f"urn:outvote:problem:{each.kind}", each.status) for each in _at_the_door()}
    edge, server = edge | doors, doors | set(_server_problems())
    rows = []
    for kind, status in sorted(edge | server):
        who = [name for name, have in (("edge", edge), ("server", server)) if (kind, status) in have]
        rows.append((f"`{kind}`", str(status), " and ".join(who)))
    return table(["type", "status", "answered by"], rows)


def _at_the_door() -> Iterator[refusals.Refusal]:
    yield from refusals.NO_TOKEN.values()
    yield from (each for each in vars(refusals).values() if isinstance(each, refusals.Refusal))


def _server_problems() -> Iterator[tuple[str, int]]:
    """Every `Refused(status, kind, …)` that is written in the modules of the API for operators."""
    for path in sorted((Path(outvote.__file__).parent / "server" / "admin").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {
            node.targets[0].id: node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refused":
                status, kind = (_constant(each, named) for each in node.args[:2])
                yield f"urn:outvote:problem:{kind}", int(str(status))


def _constant(node: ast.expr, named: Mapping[str, object]) -> object:
    return node.value if isinstance(node, ast.Constant) else named[ast.unparse(node)]


# ---- one document


def _api(document: Mapping[str, Any], whose: str) -> Iterator[str]:
    if "description" in document["info"]:
        yield paragraphs(document["info"]["description"])
    yield from _doors(document["components"])
    for path, entry in document["paths"].items():
        for method, operation in entry.items():
            if method != "parameters":
                yield from _operation(whose, method.upper(), path, entry.get("parameters", ()), operation)
    for name, schema in document["components"]["schemas"].items():
        yield from _schema(whose, name, schema)


def _doors(components: Mapping[str, Any]) -> Iterator[str]:
    """What any request may be answered with; the paths do not repeat it."""
    for scheme in components["securitySchemes"].values():
        yield f"Token, as `Authorization: Bearer TOKEN`: {scheme['description']}"
    said = {name[-3:]: answer["description"] for name, answer in components["responses"].items()}
    yield table(["any path", "meaning"], [(status, cell(text)) for status, text in sorted(said.items())])


def _operation(
    whose: str, method: str, path: str, parameters: list[dict[str, Any]], operation: Mapping[str, Any]
) -> Iterator[str]:
    yield f"### {whose}: {method} {path}"
    yield paragraphs(operation["summary"])
    for parameter in [*parameters, *operation.get("parameters", ())]:
        where = f"in the {parameter['in']}, {_kind(whose, parameter['schema'])}"
        yield f"- `{parameter['name']}` {where}. {cell(parameter.get('description', ''))}".rstrip()
    if "requestBody" in operation:
        body = operation["requestBody"]
        yield f"Body: {_content(whose, body['content'])}. {cell(body.get('description', ''))}".rstrip()
    rows = [
        (status, cell(answer["description"]), _content(whose, answer.get("content", {})), _headers(answer))
        for status, answer in sorted(operation["responses"].items())
        if "$ref" not in answer
    ]
    with_headers = any(row[3] for row in rows)
    heads = ["status", "meaning", "body", "header"]
    yield table(heads if with_headers else heads[:3], [row if with_headers else row[:3] for row in rows])


def _headers(answer: Mapping[str, Any]) -> str:
    return "; ".join(f"`{name}`: {each.get('description', '')}" for name, each in answer.get("headers", {}).items())


def _content(whose: str, content: Mapping[str, Any]) -> str:
    kinds = [(media, _kind(whose, each["schema"])) for media, each in content.items()]
    return ", ".join(kind if media.endswith("json") else f"`{media}`" for media, kind in kinds) or "none"


def _schema(whose: str, name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"#### {whose}: {name}"
    if "description" in schema:
        yield paragraphs(schema["description"])
    if "properties" not in schema:
        yield f"Is {_kind(whose, schema)}."
        return
    needed = schema.get("required", ())
    rows = [
        (f"`{field}`", _kind(whose, each), _need(field, each, needed)) for field, each in schema["properties"].items()
    ]
    closed = schema.get("additionalProperties") is False
    yield table(["field", "type", "needed"], rows) + ("\n\nOther fields are refused." if closed else "")


def _need(field: str, schema: Mapping[str, Any], needed: list[str]) -> str:
    if field in needed:
        return "yes"
    return f"no: `{json.dumps(schema['default'], ensure_ascii=False)}`" if "default" in schema else "no"


def _kind(whose: str, schema: Mapping[str, Any]) -> str:
    """A schema in words; what has a name is linked."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{whose}-{name.lower()})"
    if "anyOf" in schema or "oneOf" in schema:
        return " or ".join(_kind(whose, each) for each in schema.get("anyOf", schema.get("oneOf", ())))
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(whose, schema['items'])}" if schema.get("items") else "list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {_kind(whose, schema['additionalProperties'])}"
    return ", ".join([str(kind), *_limits(schema)])


def _limits(schema: Mapping[str, Any]) -> Iterator[str]:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
        "minLength": "characters at least",
        "maxLength": "characters at most",
    }
    for key, text in words.items():
        if key in schema:
            yield f"{text} {schema[key]:g}"
    if "pattern" in schema:
        yield f"pattern `{schema['pattern']}`"
