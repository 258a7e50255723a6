"""TLS of the listeners: what is spoken, whom clients trust, and certificates that are renewed under requests."""

from __future__ import annotations

import asyncio
import functools
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from helpers.certificates import Authority, replace
from helpers.operating import served
from helpers.processes import DEADLINE, comes
from outvote.access import tls
from outvote.access.tls import client_context, renew, server_context
from outvote.access.watched_files import WatchedFiles
from outvote.core.errors import InvalidConfiguration
from outvote.server import own_engine


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": scope["scheme"].encode()})


async def get(port: int, context: ssl.SSLContext) -> tuple[int, str]:
    """One request on a connection of its own: the serial number of the certificate, and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    answer = await reader.readexactly(5)
    shown = writer.get_extra_info("peercert")["serialNumber"]
    writer.close()
    return int(shown, 16), answer.decode()


def with_both_loops(scenario: Callable[[], Any]) -> None:
    """A server runs on uvloop; whoever uses the package may do so on asyncio's own."""
    for loop in (uvloop.new_event_loop, asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(asyncio.wait_for(scenario(), DEADLINE))


def test_an_application_is_served_over_tls_of_today(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate = authority.issue()

    async def scenario() -> None:
        async with served(hello, certificate=certificate) as port:
            context = client_context(authority.path)
            context.set_alpn_protocols(["h2", "http/1.1"])
            assert (await get(port, context))[1] == "https"
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            spoken = writer.get_extra_info("ssl_object")
            assert spoken.version() == "TLSv1.3"
            assert spoken.selected_alpn_protocol() == "http/1.1"
            writer.close()
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.load_verify_locations(authority.path)
            old.set_ciphers("ALL:@SECLEVEL=0")
            with pytest.warns(DeprecationWarning, match="TLSv1_1"):
                old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await get(port, old)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)  # in plaintext
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with suppress(ConnectionError):
                assert b"200" not in await reader.read()
            writer.close()

    with_both_loops(scenario)


def test_a_client_trusts_whom_it_was_told_to_and_nobody_else(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    certificate = authority.issue()

    async def scenario() -> None:
        async with served(hello, certificate=certificate) as port:
            for context in (client_context(other.path), client_context(None)):
                with pytest.raises(ssl.SSLCertVerificationError):
                    await get(port, context)
            trusted = client_context(authority.path)
            with pytest.raises(ssl.SSLCertVerificationError):  # a name that the certificate is not for
                await asyncio.open_connection("127.0.0.1", port, ssl=trusted, server_hostname="other.example")

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE))
    with pytest.raises(InvalidConfiguration, match="no certificates can be read"):
        client_context(tmp_path / "none.pem")
    (tmp_path / "empty.pem").write_text("")
    with pytest.raises(InvalidConfiguration, match="no certificates can be read"):
        client_context(tmp_path / "empty.pem")


@pytest.mark.parametrize("damage", ["gone", "empty", "of another", "open to all", "password"])
def test_a_certificate_that_cannot_be_used_is_refused_before_anything_is_served(damage: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    found = authority.issue()
    if damage == "gone":
        found.chain.unlink()
    elif damage == "empty":
        found.key.write_bytes(b"")
    elif damage == "of another":
        replace(found.key, authority.make()[1])
    elif damage == "open to all":
        found.key.chmod(0o644)
    else:
        from cryptography.hazmat.primitives import serialization

        key = serialization.load_pem_private_key(found.key.read_bytes(), None)
        locked = serialization.BestAvailableEncryption(b"secret")
        form = serialization.PrivateFormat.PKCS8
        replace(found.key, key.private_bytes(serialization.Encoding.PEM, form, locked))
    with pytest.raises(InvalidConfiguration, match="mode 644" if damage == "open to all" else "cannot be used"):
        server_context(found)


def test_a_renewed_certificate_is_shown_under_requests_none_of_which_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "LOOK_AGAIN", 0.02)
    authority = Authority(tmp_path)
    certificate = authority.issue()
    context = client_context(authority.path)

    async def scenario() -> None:
        shown: list[int] = []

        async def visit(port: int) -> None:
            while True:
                serial, body = await get(port, context)
                assert body == "https"
                shown.append(serial)

        def more_than(renewed: int) -> bool:
            return len({first, *shown}) > renewed

        async with served(hello, certificate=certificate) as port:
            first, _ = await get(port, context)
            kept = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            visitors = [asyncio.create_task(visit(port)) for _ in range(3)]
            for renewed in range(1, 4):
                authority.issue()
                enough = functools.partial(more_than, renewed)
                await comes(enough, "the new one is shown")
            for each in visitors:
                assert not each.done() or each.exception() is None, each.exception()
                each.cancel()
            await asyncio.wait(visitors)
            assert len(set(shown) | {first}) == 4
            last = shown[-1]
            assert shown[shown.index(last) :] == [last] * len(shown[shown.index(last) :])  # none goes back
            kept[1].write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")  # what was open stays so
            assert b"200 OK" in await kept[0].readuntil(b"\r\n\r\n")
            kept[1].close()

    with_both_loops(scenario)


def test_a_certificate_that_is_half_written_or_damaged_changes_nothing_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    authority = Authority(tmp_path)
    found = authority.issue()
    context = server_context(found)
    look = functools.partial(renew, context, found, WatchedFiles(found))

    def said() -> list[str]:
        words = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return words

    look()
    assert said() == []
    chain, key = authority.make()
    replace(found.chain, chain)  # its key comes a moment later
    look()
    assert said() == []
    assert context.sni_callback is None
    replace(found.key, key)
    look()
    look()
    assert said() == ["certificate_renewed file=https.pem"]
    in_use = context.sni_callback
    assert in_use is not None
    for damage in (lambda: replace(found.key, b"no key"), found.chain.unlink):
        damage()
        for _ in range(4):
            look()
        assert said() == ["certificate_not_loaded file=https.pem"]
        assert context.sni_callback is in_use
    authority.issue()
    look()
    assert said() == ["certificate_renewed file=https.pem"]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_an_engine_is_told_of_a_renewed_certificate_once_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(own_engine, "CERTIFICATE_LOOK", 0.01)
    authority = Authority(tmp_path)
    found = authority.issue()
    reloads: list[bytes] = []
    engine = SimpleNamespace(
        kit=SimpleNamespace(certificate=found), reload=lambda: reloads.append(found.key.read_bytes())
    )

    async def scenario() -> None:
        watching = asyncio.create_task(own_engine.while_certificates_last(engine))  # type: ignore[arg-type]
        await asyncio.sleep(0)  # it has seen the first one
        chain, key = authority.make()
        replace(found.chain, chain)
        await comes(lambda: bool(lines(caplog)), "the half that does not fit is told")
        assert reloads == []
        replace(found.key, key)
        await comes(lambda: bool(reloads), "the engine is told")
        assert reloads == [key]
        watching.cancel()

    asyncio.run(asyncio.wait_for(scenario(), DEADLINE))
    assert lines(caplog) == ["certificate_not_loaded file=https.pem", "engine_certificate_renewed"]
