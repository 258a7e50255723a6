"""What we use of libraries beyond their public interfaces: all of it is named here, and their versions are capped.

A new version of one of them that lacks a part, or calls it in another way, fails here and not at a site. When this
passes with a new version, raise its bound in pyproject.toml.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import tomllib
from pathlib import Path
from typing import Any, TypeGuard

import pytest
import uvicorn
from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from outvote.engine import connection
from outvote.web import connections as http_connections
from outvote.web import listener as http_server

ROOT = Path(__file__).parents[2]
CAPPED = ("httptools", "httpx", "nats-py", "openfeature-sdk", "uvicorn")
"""httpx and openfeature-sdk have no stable version yet: what is public there may change, too."""

OVERRIDDEN: dict[type, dict[str, tuple[str, ...]]] = {
    HttpToolsProtocol: {
        "connection_made": ("transport",),
        "connection_lost": ("exc",),
        "data_received": ("data",),
        "on_headers_complete": (),
        "on_message_complete": (),
        "on_response_complete": (),
        "send_400_response": ("msg",),
    },
    uvicorn.Server: {"capture_signals": (), "startup": ("sockets",), "on_tick": ("counter",)},
    Client: {"_connect_to_server": ("s",), "_process_err": ("err_msg",)},
    TcpTransport: {
        "connect": ("uri", "buffer_size", "connect_timeout"),
        "connect_tls": ("uri", "ssl_context", "buffer_size", "connect_timeout"),
        "wait_closed": (),
    },
}
"""By class: the methods that ours replace, and the names of their parameters."""

READ: dict[type, set[str]] = {
    HttpToolsProtocol: {
        *("connections", "cycle", "flow", "headers", "loop", "parser", "scheme", "scope", "transport", "url"),
    },
    uvicorn.Server: {"config", "server_state", "servers", "started"},
    Client: {"_err", "_error_cb", "_flush_pending", "_process_op_err", "_transport"},
    TcpTransport: {"_io_reader", "_io_writer"},
    FlowControl: {"read_paused", "resume_reading", "write_paused"},
    RequestResponseCycle: {"response_complete", "response_started", "scope"},
}
"""By class: what ours read or call."""

OURS = {
    HttpToolsProtocol: http_connections.Connection,
    uvicorn.Server: http_server._Server,
    Client: connection.Connection,
    TcpTransport: connection._TlsTransport,
}


def example(kind: type) -> Any:
    """One of it, with what its constructor sets."""
    config = uvicorn.Config(lambda: None, log_config=None)
    if kind is HttpToolsProtocol:
        loop = asyncio.new_event_loop()
        loop.close()
        return HttpToolsProtocol(config, ServerState(), {}, loop)
    if kind is uvicorn.Server:
        return uvicorn.Server(config)
    if kind is FlowControl:
        return FlowControl(None)  # type: ignore[arg-type]
    return kind() if kind in (Client, TcpTransport) else kind


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.__name__)
def test_every_part_that_we_read_is_there(kind: type) -> None:
    found = example(kind)
    names = set(dir(found)) | set(kind.__init__.__code__.co_names)  # type: ignore[misc]
    if kind is uvicorn.Server:
        names.add("servers")  # set when it starts
        assert "self.servers" in inspect.getsource(uvicorn.Server.startup)
    if kind is HttpToolsProtocol:
        names.add("url")  # set when a request begins
        assert "self.url" in inspect.getsource(HttpToolsProtocol.on_message_begin)
    assert READ[kind] - names == set()


@pytest.mark.parametrize("kind", OVERRIDDEN, ids=lambda kind: kind.__name__)
def test_every_method_that_we_replace_is_called_as_ours_is(kind: type) -> None:
    for name, parameters in OVERRIDDEN[kind].items():
        assert tuple(inspect.signature(getattr(kind, name)).parameters)[1:] == parameters, name


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_no_part_is_used_that_is_not_named_here(kind: type) -> None:
    """Public names of nats-py are no private parts; all of uvicorn's protocol is one."""
    ours = OURS[kind]
    of_self = [node for node in ast.walk(ast.parse(inspect.getsource(ours))) if is_of_self(node)]
    inherited = set(dir(kind)) | set(vars(example(kind)))
    used = {node.attr for node in of_self} | set(vars(ours))
    made_by_ours = set(vars(ours)) | {node.attr for node in of_self if isinstance(node.ctx, ast.Store)}
    is_public = kind in (Client, TcpTransport)
    public = {name for name in inherited if is_public and not name.startswith("_")}
    named = READ[kind] | set(OVERRIDDEN[kind]) | public | {"_abc_impl"}
    beyond = used - (made_by_ours - inherited) - named
    assert {name for name in beyond if not name.startswith("__")} == set()


@pytest.mark.parametrize(("name", "kind"), [("cycle", RequestResponseCycle), ("flow", FlowControl)])
def test_no_part_of_a_connection_s_parts_is_used_that_is_not_named_here(name: str, kind: type) -> None:
    """`self.cycle.part`, or `cycle.part` where it has a name of its own."""
    tree = ast.parse(inspect.getsource(http_connections.Connection))
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = {node.attr for node in attributes if ast.unparse(node.value) in (name, f"self.{name}")}
    assert used == READ[kind]


def is_of_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """`self.name` or `super().name`."""
    if not isinstance(node, ast.Attribute):
        return False
    owner = node.value
    is_super = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
    return is_super or (isinstance(owner, ast.Name) and owner.id == "self")


def test_versions_with_private_parts_are_capped() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = [requirement for extra in ("network", "client", "openfeature") for requirement in extras[extra]]
    for name in CAPPED:
        found = [requirement for requirement in needed if requirement.startswith(f"{name}>=")]
        assert found
        assert all(",<" in requirement for requirement in found), found
