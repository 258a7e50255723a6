"""A real engine that knows the fleet: who is let in, what servers may do, how revocations, renewals and ends act."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from pathlib import Path

import pytest
from nats.js.errors import APIError

from fleet.conftest import new_fleet
from fleet.places import Place
from helpers.processes import comes, until
from outvote.access.engine_access import Access
from outvote.access.kits import read_engine_kit
from outvote.engine.nats_log import stream_config
from outvote.fleet import members
from outvote.fleet.push import push
from outvote.log.catch_up import Answer, Question
from outvote.log.log import Record
from outvote.log.records import DOWN, LIVE, UP


def test_a_server_and_an_edge_do_all_that_they_need(place: Place) -> None:
    members.add_edges(place.fleet, ["paris"])

    async def run() -> None:
        async with await place.link("server") as server, await place.link("paris") as paris:
            await server.prepare()
            read: list[Record] = []
            asked: list[str] = []
            heard: list[str] = []
            await server.follow(read.append)
            await server.overhear(lambda edge, question: asked.append(edge))
            await server.answer(lambda edge, question: Answer(read=2, tasks={}, others=(edge, *question.tasks)))
            await paris.listen(lambda subject, payload: heard.append(subject))
            assert await paris.append(f"{UP}.paris.shop.life.0", b"x")
            assert not await paris.append(f"{UP}.paris.shop.life.0", b"y")
            assert await server.append(f"{DOWN}.shop.task", b"{}")
            assert await server.stored(f"{DOWN}.shop.task") == b"{}"
            assert await server.log_end() == 2
            assert await paris.ask("paris", Question("life", {"a-1": 1})) == Answer(2, {}, others=("paris", "a-1"))
            await comes(lambda: heard == [f"{LIVE}.shop.task"], "live news")
            await comes(lambda: len(read) == 2, "the log is read")
            await comes(lambda: asked == ["paris"], "the question is overheard")
            assert server.figures().forbidden == paris.figures().forbidden == 0

    asyncio.run(run())


def test_a_server_follows_more_than_flow_control_lets_through_at_once(place: Place) -> None:
    """Answers to the engine's flow control are among what a server may send."""

    async def run() -> None:
        async with await place.link("server") as server:
            await server.prepare()
            count = 300
            for first in range(0, count, 50):
                batch = [
                    server.append(f"{DOWN}.shop.elim.{number}", b"x" * 20_000) for number in range(first, first + 50)
                ]
                await asyncio.gather(*batch)
            read: list[Record] = []
            await server.follow(read.append)
            await comes(lambda: len(read) == count, "all is read")
            assert [each.sequence for each in read] == list(range(1, count + 1))
            assert server.figures().forbidden == 0

    asyncio.run(run())


def test_a_revoked_edge_is_cut_off_at_once_and_stays_out_after_restarts(place: Place, tmp_path: Path) -> None:
    members.add_edges(place.fleet, ["paris", "lima"])
    old_kit = shutil.copytree(place.fleet.folder / "server" / "engine", tmp_path / "old")

    async def run() -> None:
        async with place.client("paris") as paris, place.client("lima") as lima:
            assert members.revoke_edge(place.fleet, "paris")
            assert not place.fleet.look().told >= place.fleet.look().claimed
            pushed = await asyncio.to_thread(push, place.fleet)
            assert pushed == ["outvote"]
            assert place.fleet.look().told == place.fleet.look().claimed
            await paris.ends()
            assert lima.client.is_connected
        assert not await place.lets_in("paris")
        await place.restart()
        assert not await place.lets_in("paris")
        await place.restart(read_engine_kit(old_kit))  # one from before: what the engine was told later stays
        assert not await place.lets_in("paris")
        place.engine.reload()
        await comes(lambda: place.logged("reloaded server configuration") == 1, "it has read its configuration again")
        assert not await place.lets_in("paris")
        assert await place.lets_in("lima")
        members.revoke_edge(place.fleet, "lima")
        await place.restart()  # it was down, and learns it from its kit
        assert not await place.lets_in("lima")

    asyncio.run(run())


@pytest.mark.parametrize("revoke_old", [False, True])
def test_a_renewed_credential_is_good_at_once_and_the_old_one_until_it_or_the_edge_is_revoked(
    place: Place, tmp_path: Path, revoke_old: bool
) -> None:
    members.add_edges(place.fleet, ["paris"])
    olds = {}
    for name in ("paris", "server"):
        now = place.access(name)
        olds[name] = Access(Path(shutil.copy(str(now.creds), tmp_path / f"{name}.creds")), now.ca)
    members.renew_edges(place.fleet, ["paris"], revoke_old=revoke_old)
    members.renew_server(place.fleet, revoke_old=revoke_old)

    async def run() -> None:
        for name in ("paris", "server"):
            assert await place.lets_in(name)  # without a word to the engine
            assert await place.lets_in(name, olds[name])
        await asyncio.to_thread(push, place.fleet)
        for name in ("paris", "server"):
            assert await place.lets_in(name)
            assert await place.lets_in(name, olds[name]) is not revoke_old
        renewed = Access(Path(shutil.copy(str(place.access("paris").creds), tmp_path / "new.creds")), olds["paris"].ca)
        members.revoke_edge(place.fleet, "paris")
        members.add_edges(place.fleet, ["paris"])  # again, with a new credential
        await asyncio.to_thread(push, place.fleet)
        assert await place.lets_in("paris")
        for revoked in (olds["paris"], renewed):
            assert not await place.lets_in("paris", revoked)

    asyncio.run(run())


def served_certificate(place: Place) -> bytes:
    address = place.fleet.look().engine_addresses[0]
    context = ssl.create_default_context(cafile=str(place.fleet.folder / "ca.pem"))
    with (
        socket.create_connection((address.host, address.port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=address.host) as secured,
    ):
        assert secured.version() in ("TLSv1.2", "TLSv1.3")
        return secured.getpeercert(binary_form=True) or b""


def test_a_renewed_certificate_is_shown_after_a_reload_and_connections_stay(place: Place) -> None:
    members.add_edges(place.fleet, ["paris"])

    async def run() -> None:
        async with place.client("paris") as paris:
            before = await asyncio.to_thread(served_certificate, place)
            members.renew_certificates(place.fleet)
            place.engine.reload()
            await asyncio.to_thread(until, lambda: served_certificate(place) != before, "the new one is shown")
            await paris.client.flush()
            assert paris.client.is_connected

    asyncio.run(run())


def test_old_versions_of_tls_are_refused(place: Place) -> None:
    address = place.fleet.look().engine_addresses[0]
    context = ssl.create_default_context(cafile=str(place.fleet.folder / "ca.pem"))
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with (
        socket.create_connection((address.host, address.port), timeout=10) as plain,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(plain, server_hostname=address.host)


def test_the_system_account_says_who_is_connected(place: Place, tmp_path: Path) -> None:
    members.add_edges(place.fleet, ["paris"])
    creds = tmp_path / "system.creds"
    with place.fleet.change() as draft:
        creds.write_text(draft.system_credential())
    creds.chmod(0o600)

    async def run() -> None:
        access = Access(creds, place.fleet.folder / "ca.pem")
        async with place.client("paris"), place.client("system", access) as system:
            account = place.fleet.look().account
            answer = await system.client.request(f"$SYS.REQ.ACCOUNT.{account}.CONNZ", b"", timeout=10)
            assert b'"num_connections":1' in answer.data
            await system.denied(lambda: system.client.publish(f"{UP}.paris.shop.life.0"))

    asyncio.run(run())


def test_the_limit_of_the_log_is_kept(tmp_path: Path) -> None:
    fleet = new_fleet(tmp_path, disk=200_000)

    async def run(place: Place) -> None:
        async with place.client("server") as server:
            stream = server.client.jetstream(timeout=10)
            await stream.add_stream(stream_config(1))
            for number in range(6):
                await stream.publish(f"{DOWN}.shop.elim.{number}", b"x" * 30_000)
            with pytest.raises(APIError, match="resource limits exceeded"):
                await stream.publish(f"{DOWN}.shop.elim.6", b"x" * 30_000)

    with Place(tmp_path, fleet) as place:
        asyncio.run(run(place))
