"""The folder of a fleet: what is in it, who can read it, and that the next command completes what was interrupted."""

from __future__ import annotations

import errno
import itertools
import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fleet.conftest import everything, new_fleet
from outvote.access.kits import read_edge_kit, read_engine_kit, read_operator_kit, read_server_kit
from outvote.access.tokens import read_secret, read_tokens
from outvote.core.errors import InvalidConfiguration
from outvote.fleet import folder, kit_files, members
from outvote.fleet.addresses import Address
from outvote.fleet.brought import ExternalCertificate
from outvote.fleet.certificates import Signed, new_authority, new_certificate
from outvote.fleet.draft import ISSUED
from outvote.fleet.folder import UNFINISHED, Fleet, FleetError, held
from outvote.fleet.making import Plan, make_fleet
from outvote.fleet.overview import overview
from outvote.fleet.state import FleetFile

SECRETS = re.compile(rb"\bS[OAU][A-Z2-7]{56}\b|outvote-[A-Za-z0-9_-]{43}|PRIVATE KEY")
HERE = Plan([Address("localhost", 4322)], Address("localhost", 8600))


# ---- what is made


def test_the_kits_that_are_made_are_those_that_are_read(fleet: Fleet) -> None:
    members.add_edges(fleet, ["paris"])
    members.add_edges(fleet, ["lima"], https="10.0.0.7")
    state = fleet.look()
    server = read_server_kit(fleet.folder / "server")
    assert server.nats == (f"tls://{state.engines[0]}",)
    assert server.engine is not None
    assert set(server.engine.accounts) == {state.account, state.log, state.system}
    assert read_engine_kit(fleet.folder / "engine").accounts == server.engine.accounts
    operator = read_operator_kit(fleet.folder / "operator")
    assert operator.server == "https://localhost:8600"
    assert server.tokens is not None
    assert [each.role for each in read_tokens(server.tokens)] == ["admin"]
    assert read_secret(operator.token)
    paris, lima = (read_edge_kit(fleet.folder / "edges" / name) for name in ("paris", "lima"))
    assert (paris.name, paris.certificate, paris.tokens) == ("paris", None, None)
    assert lima.certificate is not None
    assert lima.tokens is not None
    assert [each.role for each in read_tokens(lima.tokens)] == ["application"]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_all_is_for_its_owner_only_under_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        fleet = new_fleet(tmp_path)
        members.add_edges(fleet, ["paris"], https="10.0.0.7")
        members.revoke_edge(fleet, "paris")
        members.renew_certificates(fleet)
    finally:
        os.umask(before)
    for each in fleet.folder.rglob("*"):
        assert each.stat().st_mode & 0o777 == (0o700 if each.is_dir() else 0o600), each
    assert fleet.folder.stat().st_mode & 0o777 == 0o700


def test_secrets_are_only_where_they_must_be(fleet: Fleet) -> None:
    members.add_edges(fleet, ["paris"], https="10.0.0.7")
    members.revoke_edge(fleet, "paris")
    found = {name for name, content in everything(fleet.folder).items() if SECRETS.search(content)}
    issued = {name for name in found if name.startswith(ISSUED)}
    assert sorted(Path(name).suffix for name in issued) == [".creds"] * 2 + [".key"] * 3 + [".token"]
    assert found - issued == {
        "keys/operator.seed", "keys/account.seed", "keys/log.seed", "keys/system.seed", "keys/ca.key",
        "engine/engine.key", "server/engine/engine.key", "server/https.key", "server/server.creds", "operator/token",
        "edges/paris/edge.creds", "edges/paris/https.key",
    }  # fmt: skip


def test_a_folder_that_is_there_is_never_touched(tmp_path: Path) -> None:
    fleet = new_fleet(tmp_path)
    before = everything(fleet.folder)
    with pytest.raises(InvalidConfiguration, match="exists already"):
        make_fleet(fleet.folder, HERE, now=time.time())
    assert everything(fleet.folder) == before
    (fleet.folder / "fleet.json").rename(tmp_path / "fleet.json")  # lost, but the keys are there
    with pytest.raises(InvalidConfiguration, match="exists already"):
        make_fleet(fleet.folder, HERE, now=time.time())
    with pytest.raises(InvalidConfiguration, match="exists already"):
        make_fleet(tmp_path / "fleet.json", HERE, now=time.time())


def test_an_empty_folder_may_become_a_fleet(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir(mode=0o755)
    make_fleet(tmp_path / "empty", HERE, now=time.time())
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o700


# ---- interruptions


class Killed(BaseException):
    """As if the process had ended here."""


def die_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Let nothing more happen from the n-th change of a name on: a new folder, a rename, a removal."""
    count = itertools.count(1)

    def counted(real: object) -> object:
        def call(*arguments: object, **options: object) -> object:
            if next(count) >= step:
                raise Killed
            return real(*arguments, **options)  # type: ignore[operator]

        return call

    for name in ("mkdir", "replace", "touch", "unlink"):
        monkeypatch.setattr(Path, name, counted(getattr(Path, name)))


def check_is_whole(fleet: Fleet) -> FleetFile:
    """All kits are those that follow from `fleet.json`, and no secret is there that it does not name."""
    with fleet.change() as draft:
        kits = kit_files.central_kits(draft)
        for name in draft.state.edges:
            kits |= kit_files.edge_kit(draft, name)
        for name, content in kits.items():
            path = fleet.folder / name
            assert (path.read_bytes() if path.exists() else None) == content, name
        assert {each.name for each in (fleet.folder / ISSUED).iterdir()} == draft.state.issued_files
    assert not (fleet.folder / UNFINISHED).exists()
    for name in draft.state.edges:
        assert read_edge_kit(fleet.folder / "edges" / name).name == name
    return draft.state


def add_lima(fleet: Fleet) -> None:
    members.add_edges(fleet, ["lima"], https="10.0.0.8")


def revoke_paris(fleet: Fleet) -> None:
    members.revoke_edge(fleet, "paris")


@pytest.mark.parametrize("command", [add_lima, revoke_paris, members.renew_certificates, members.renew_operator])
def test_a_command_that_is_killed_at_any_step_has_done_nothing_or_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fleet: Fleet, command: Callable[[Fleet], object]
) -> None:
    members.add_edges(fleet, ["paris"], https="10.0.0.7")
    before = fleet.look()
    seen = []
    for step in itertools.count(1):
        killed = Fleet(shutil.copytree(fleet.folder, tmp_path / f"killed-{step}"))
        with monkeypatch.context() as patched:
            die_at(patched, step)
            try:
                command(killed)
                done = True
            except Killed:
                done = False
        seen.append(check_is_whole(killed) != before)
        if done:
            break
    assert len(seen) > 8
    assert seen == sorted(seen)  # nothing up to one step, all of it from there on
    assert seen[-1]
    assert not seen[0]


def test_an_init_that_is_killed_at_any_step_is_done_again_or_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in itertools.count(1):
        folder = tmp_path / f"killed-{step}"
        with monkeypatch.context() as patched:
            die_at(patched, step)
            try:
                make_fleet(folder, HERE, now=time.time())
                break
            except Killed:
                pass
        if not (folder / "fleet.json").exists():
            make_fleet(folder, HERE, now=time.time())
        check_is_whole(Fleet(folder))
    assert step > 30


def test_a_disk_that_is_full_is_told_and_the_next_command_completes_what_was_begun(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(FleetError, match="cannot be changed: No space left on device"):
            members.add_edges(fleet, ["paris"])
    assert not check_is_whole(fleet).edges


def test_two_commands_at_once_take_turns(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = [threading.Thread(target=members.add_edges, args=(fleet, [f"edge{n}"])) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert len(fleet.look().edges) == 8
    monkeypatch.setattr(folder, "PATIENCE", 0.05)
    with held(fleet.folder), pytest.raises(FleetError, match="another command uses"):
        fleet.look()


@pytest.mark.parametrize(("content", "said"), [("{}", "missing required field"), ('{"version": 2}', "has version 2, ")])
def test_a_damaged_folder_or_one_of_another_version_is_told(fleet: Fleet, content: str, said: str) -> None:
    (fleet.folder / "fleet.json").write_text(content)
    with pytest.raises(InvalidConfiguration, match=rf"fleet\.json cannot be read: .*{said}"):
        fleet.look()


# ---- members and time


class Clock:
    def __init__(self) -> None:
        self.now = float(int(time.time()))

    def __call__(self) -> float:
        return self.now


def test_states_go_from_valid_over_soon_to_expired(fleet: Fleet) -> None:
    clock = Clock()
    timed = Fleet(fleet.folder, clock=clock)
    members.add_edges(timed, ["paris", "lima"], days=60)
    members.revoke_edge(timed, "lima")

    def states() -> dict[str, str]:
        return {each["name"]: each["state"] for each in overview(timed)["edges"]}

    assert states() == {"paris": "valid", "lima": "revoked"}
    clock.now += 40 * 86400
    assert states()["paris"] == "expires in 20 days"
    clock.now += 18.5 * 86400
    assert states()["paris"] == "expires in 1 day"
    clock.now += 2 * 86400
    assert states() == {"paris": "expired", "lima": "revoked"}


def test_claims_are_newer_with_every_revocation_even_in_one_second_or_if_the_clock_goes_back(fleet: Fleet) -> None:
    clock = Clock()
    timed = Fleet(fleet.folder, clock=clock)
    members.add_edges(timed, ["a", "b", "c"])
    seen = [timed.look().claimed]
    for name, step in (("a", 0), ("b", 0), ("c", -5000)):
        clock.now += step
        members.revoke_edge(timed, name)
        seen.append(timed.look().claimed)
    assert seen == sorted(set(seen))
    assert seen[-1] < seen[0] + 10


def test_revocations_of_what_has_expired_are_forgotten(fleet: Fleet) -> None:
    clock = Clock()
    timed = Fleet(fleet.folder, clock=clock)
    members.add_edges(timed, ["a", "b"], days=10)
    members.revoke_edge(timed, "a")
    assert len(timed.look().revoked) == 1
    clock.now += 30 * 86400
    members.revoke_edge(timed, "b")
    assert set(timed.look().revoked) == {timed.look().edges["b"].credential.key}


def test_all_edges_are_renewed_but_revoked_ones(fleet: Fleet) -> None:
    members.add_edges(fleet, ["a", "b", "c"])
    members.revoke_edge(fleet, "b")
    before = fleet.look().edges
    assert members.renew_edges(fleet, None) == ["a", "c"]
    after = fleet.look().edges
    assert after["b"] == before["b"]
    assert after["a"].older == [before["a"].credential]
    with pytest.raises(InvalidConfiguration, match="is revoked: `outvote fleet add b`"):
        members.renew_edges(fleet, ["b"])


def test_a_revoked_edge_is_added_again_under_the_same_name_with_a_kit_that_is_new(fleet: Fleet) -> None:
    members.add_edges(fleet, ["paris"], https="10.0.0.7")
    members.revoke_edge(fleet, "paris")
    with pytest.raises(InvalidConfiguration, match="add 'paris' again"):
        members.add_edges(fleet, ["Paris"])
    members.add_edges(fleet, ["paris"])
    kit = read_edge_kit(fleet.folder / "edges" / "paris")
    assert (kit.certificate, kit.tokens) == (None, None)
    assert not (fleet.folder / "edges/paris/https.key").exists()


def test_an_operators_token_is_renewed_and_the_old_one_stays_or_goes(fleet: Fleet) -> None:
    where = fleet.folder / "server" / "tokens.json"
    first = (fleet.folder / "operator" / "token").read_text()
    members.renew_operator(fleet)
    assert (fleet.folder / "operator" / "token").read_text() != first
    assert [each.name for each in read_tokens(where)] == ["operator", "operator"]
    members.renew_operator(fleet, revoke_old=True)
    assert len(read_tokens(where)) == 1


# ---- certificates of one's own


def bring(folder: Path, authority: Signed, *hosts: str) -> ExternalCertificate:
    signed = new_certificate(authority, hosts, now=time.time())
    for name, content in (("my.pem", signed.chain), ("my.key", signed.key), ("my-ca.pem", authority.chain)):
        (folder / name).write_bytes(content)
    return ExternalCertificate(folder / "my.pem", folder / "my.key", folder / "my-ca.pem")


def test_a_fleet_with_certificates_of_its_own_has_no_authority(tmp_path: Path) -> None:
    authority = new_authority("mine", now=time.time())
    brought = bring(tmp_path, authority, "engine.example.org", "admin.example.org")
    plan = Plan([Address("engine.example.org", 4322)], Address("admin.example.org", 8600), brought=brought)
    make_fleet(tmp_path / "fleet", plan, now=time.time())
    fleet = Fleet(tmp_path / "fleet")
    assert not (fleet.folder / "keys" / "ca.key").exists()
    assert (fleet.folder / "ca.pem").read_bytes() == authority.chain
    for kit in ("server/https", "engine/engine", "server/engine/engine"):
        assert (fleet.folder / f"{kit}.pem").read_bytes() == brought.certificate.read_bytes()
        assert (fleet.folder / f"{kit}.key").read_bytes() == brought.key.read_bytes()
    with pytest.raises(InvalidConfiguration, match="certificates are yours"):
        members.renew_certificates(fleet)
    with pytest.raises(InvalidConfiguration, match="certificates are yours"):
        members.add_edges(fleet, ["paris"], https="paris.example.org")
    newer = bring(tmp_path, authority, "engine.example.org", "admin.example.org", "paris.example.org")
    members.add_edges(fleet, ["paris"], https="paris.example.org", brought=newer)
    assert members.renew_certificates(fleet, brought=newer) == ["engine", "server"]
    assert (fleet.folder / "engine/engine.pem").read_bytes() == newer.certificate.read_bytes()


def test_a_certificate_that_does_not_cover_the_fleet_makes_none(tmp_path: Path) -> None:
    brought = bring(tmp_path, new_authority("mine", now=time.time()), "engine.example.org")
    plan = Plan([Address("engine.example.org", 4322)], Address("admin.example.org", 8600), brought=brought)
    with pytest.raises(InvalidConfiguration, match=r"not valid for 'admin\.example\.org'"):
        make_fleet(tmp_path / "fleet", plan, now=time.time())
    assert not (tmp_path / "fleet").exists()
