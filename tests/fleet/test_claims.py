"""Claims as they are written: signed by whom they say, with what was asked for and nothing else."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import nkeys  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fleet.places import read_claims
from outvote.core.errors import InvalidConfiguration, InvalidInput
from outvote.core.task import NAME
from outvote.fleet.claims import account_claims, creds, user_claims
from outvote.fleet.keys import Key, new_key, read_key
from outvote.fleet.permissions import (
    SHARED,
    check_edge_name,
    edge_permissions,
    server_permissions,
    system_permissions,
)

NOW = 1_800_000_000.9


def is_signed_by(token: str, key: Key) -> bool:
    content, _, signature = token.rpartition(".")
    given = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    return bool(nkeys.from_seed(key.seed).verify(content.encode(), given))


def test_only_the_log_has_a_stream_and_revocations_are_told() -> None:
    operator, log, edges, user = new_key("operator"), new_key("account"), new_key("account"), new_key("user")
    held = read_claims(account_claims(operator, log.public, name="log", now=NOW, log=True, disk=1000, offers=SHARED))
    limits = held["nats"]["limits"]
    assert (limits["disk_storage"], limits["streams"], limits["leaf"], limits["imports"]) == (1000, 1, 0, 0)
    assert [each["subject"] for each in held["nats"]["exports"]] == [
        "outvote.up.*.>",
        "outvote.sync.*",
        "outvote.live.>",
    ]
    assert [each["type"] for each in held["nats"]["exports"]] == ["service", "service", "stream"]
    token = account_claims(
        operator, edges.public, name="edges", now=NOW, takes=SHARED, of=log.public, revoked={user.public: 12}
    )
    taken = read_claims(token)["nats"]
    assert is_signed_by(token, operator)
    assert "disk_storage" not in taken["limits"]
    assert {each["account"] for each in taken["imports"]} == {log.public}
    assert taken["revocations"] == {user.public: 12}


def test_a_user_has_what_was_permitted_an_end_and_a_name_of_its_own() -> None:
    account, user = new_key("account"), new_key("user")
    token = user_claims(account, user.public, name="paris", may=edge_permissions("paris"), now=NOW, expires=NOW + 86400)
    assert is_signed_by(token, account)
    claims = read_claims(token)
    assert (claims["name"], claims["exp"]) == ("paris", 1_800_086_400)
    assert claims["nats"]["pub"] == {"allow": ["outvote.up.paris.>", "outvote.sync.paris"]}
    assert claims["nats"]["sub"] == {"allow": ["outvote.live.>", "_INBOX.paris.>"]}
    assert claims["nats"]["subs"] == 8
    assert claims["nats"]["payload"] == 256 * 1024
    again = user_claims(account, user.public, name="paris", may=edge_permissions("paris"), now=NOW, expires=NOW + 1)
    assert read_claims(again)["jti"] != claims["jti"]
    text = creds(token, user)
    assert token in text
    assert user.seed.decode() in text


def test_the_largest_question_of_an_edge_fits_its_limit() -> None:
    """An edge that knows 2,900 tasks with the longest names."""
    tasks = {f"{'x' * 64}-{number:08x}": 1 << 30 for number in range(2900)}
    question = json.dumps({"incarnation": "x" * 32, "tasks": tasks}).encode()
    assert len(question) <= edge_permissions("paris").payload


@given(st.text(max_size=70))
@example("_INBOX")
@example("outvote")
def test_a_name_is_good_for_a_subject_and_a_folder_or_refused(name: str) -> None:
    try:
        checked = check_edge_name(name)
    except InvalidInput:
        return
    assert NAME.fullmatch(checked)
    may, of_another = edge_permissions(checked), edge_permissions("another")
    for own, other in zip(
        (*may.publish, may.subscribe[1]), (*of_another.publish, of_another.subscribe[1]), strict=True
    ):
        pairs = list(zip(own.split("."), other.split("."), strict=True))
        assert pairs.count((checked, "another")) == 1
        assert all(mine == theirs for mine, theirs in pairs if theirs != "another")


def test_nobody_may_do_everything() -> None:
    for may in (edge_permissions("paris"), server_permissions(), system_permissions()):
        for subject in (*may.publish, *may.subscribe):
            assert subject not in (">", "*", "$JS.>", "$JS.API.>", "$SYS.>", "_INBOX.>", "outvote.>")


def test_a_key_is_read_from_its_own_file_only(tmp_path: Path) -> None:
    key = new_key("account")
    path = tmp_path / "account.seed"
    with pytest.raises(InvalidConfiguration, match="No such file"):
        read_key(path, "account")
    path.write_bytes(key.seed)
    path.chmod(0o644)
    with pytest.raises(InvalidConfiguration, match="mode 644"):
        read_key(path, "account")
    path.chmod(0o600)
    assert read_key(path, "account").public == key.public
    assert key.seed.decode() not in repr(key)
    with pytest.raises(InvalidConfiguration, match="must be the key of an operator"):
        read_key(path, "operator")
    for bad in (b"", b"SAAAA", key.seed[:-1], b"\xff" * 58):
        path.write_bytes(bad)
        with pytest.raises(InvalidConfiguration, match="holds no key"):
            read_key(path, "account")
