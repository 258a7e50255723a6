"""Tokens: what is kept of them, how one is looked at, and how files of them are read while they are in use."""

from __future__ import annotations

import hmac
import logging
import time
from pathlib import Path

import pytest

from outvote.access import tokens
from outvote.access.tokens import (
    PREFIX,
    Token,
    TokenBook,
    Verdict,
    bearer,
    make_token,
    read_secret,
    read_tokens,
    tokens_file,
)
from outvote.core.errors import InvalidConfiguration
from outvote.files import write_private

NOW = 1_800_000_000.0


def book(folder: Path, *made: tuple[str, Token]) -> TokenBook:
    write_private(folder / "tokens.json", tokens_file([token for _, token in made]))
    return TokenBook(folder / "tokens.json")


def test_a_secret_is_long_told_by_its_beginning_and_not_kept(tmp_path: Path) -> None:
    secret, token = make_token("ops", "admin", days=1, now=NOW)
    other, _ = make_token("ops", "admin", days=1, now=NOW)
    assert secret != other
    assert secret.startswith(PREFIX)
    assert len(secret) == len(PREFIX) + 43  # 256 bits
    assert (token.name, token.role, token.issued, token.expires) == ("ops", "admin", NOW, NOW + 86400)
    path = tmp_path / "tokens.json"
    write_private(path, tokens_file([token]))
    assert secret.removeprefix(PREFIX).encode() not in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_tokens(path) == [token]


def test_a_good_token_is_known_by_its_name_and_role_until_it_expires(tmp_path: Path) -> None:
    (admin, kept), (viewer, also) = (make_token(each, each, days=1, now=NOW) for each in ("admin", "viewer"))
    found = book(tmp_path, (admin, kept), (viewer, also))
    assert found.check(admin.encode(), now=NOW) == Verdict("admin", "admin", expires=kept.expires)
    assert found.check(viewer.encode(), now=NOW + 86399) == Verdict("viewer", "viewer", expires=also.expires)
    assert found.check(admin.encode(), now=NOW + 86400) == Verdict(None, "admin", "expired")


def test_what_is_like_a_token_is_none(tmp_path: Path) -> None:
    secret, token = make_token("ops", "admin", days=1)
    found = book(tmp_path, (secret, token))
    wrong = [
        secret[:-1],
        secret + "x",
        secret.upper(),
        " " + secret,
        token.sha256,
        secret.removeprefix(PREFIX),
        "é",
        "\0",
    ]
    for each in wrong:
        assert found.check(each.encode()) == Verdict(None, why="unknown"), each
    assert found.check(b"\xff" * 10_000) == Verdict(None, why="unknown")


def test_every_token_is_compared_whichever_is_asked_for_and_by_a_function_whose_time_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [make_token(f"t{number}", "viewer", days=1) for number in range(5)]
    found = book(tmp_path, *made)
    compared: list[tuple[str, str]] = []
    really = hmac.compare_digest

    def spy(kept: str, presented: str) -> bool:
        compared.append((kept, presented))
        return really(kept, presented)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    for asked in (made[0][0], made[4][0], "unknown"):
        compared.clear()
        found.check(asked.encode())
        assert [kept for kept, _ in compared] == [token.sha256 for _, token in made]
        assert {len(presented) for _, presented in compared} == {64}  # a hash, however long what was asked is


# ---- a file that changes


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "LOOK_AGAIN", -1.0)


@pytest.mark.usefixtures("at_once")
def test_a_new_token_is_good_beside_the_old_one_and_a_revoked_one_is_not_any_more(tmp_path: Path) -> None:
    old, new = make_token("old", "admin", days=1), make_token("new", "admin", days=1)
    found = book(tmp_path, old)
    path = tmp_path / "tokens.json"
    assert found.check(new[0].encode()).why == "unknown"
    write_private(path, tokens_file([old[1], new[1]]))
    assert [found.check(secret.encode()).name for secret, _ in (old, new)] == ["old", "new"]
    write_private(path, tokens_file([new[1]]))
    assert found.check(old[0].encode()) == Verdict(None, why="unknown")
    assert found.check(new[0].encode()).role == "admin"


@pytest.mark.usefixtures("at_once")
def test_a_file_that_is_gone_or_damaged_changes_nothing_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made, other = make_token("ops", "admin", days=1), make_token("other", "viewer", days=1)
    found = book(tmp_path, made)
    path = tmp_path / "tokens.json"
    for damage in (path.unlink, lambda: path.write_text('{"tokens": [{'), lambda: path.write_text('{"tokens": 3}')):
        damage()
        caplog.clear()
        for _ in range(3):
            assert found.check(made[0].encode()).role == "admin"
        assert [record.getMessage() for record in caplog.records] == ["tokens_not_read file=tokens.json"]
    caplog.set_level(logging.INFO)
    write_private(path, tokens_file([other[1]]))
    assert found.check(other[0].encode()).role == "viewer"
    assert caplog.records[-1].getMessage() == "tokens_read tokens=1"
    assert made[0] not in caplog.text


def test_a_file_is_not_read_at_every_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, other = make_token("ops", "admin", days=1), make_token("other", "admin", days=1)
    found = book(tmp_path, made)
    write_private(tmp_path / "tokens.json", tokens_file([other[1]]))
    at = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: at)  # no second has passed
    assert found.check(made[0].encode()).role == "admin"
    monkeypatch.setattr(time, "monotonic", lambda: at + 2)
    assert found.check(made[0].encode()).role is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no tokens can be read"),
        ("[]", "is not a token file"),
        ('{"tokens": [{"name": "x", "role": "root", "sha256": "", "issued": 0, "expires": 0}]}', "role"),
        ('{"tokens": [{"name": "x", "role": "admin", "sha256": "é", "issued": 0, "expires": 0}]}', "sha256"),
    ],
)
def test_a_file_that_holds_no_tokens_is_refused_at_the_start(content: str | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidConfiguration, match=says):
        TokenBook(path)


# ---- secrets in files and headers


def test_a_secret_is_read_from_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_private(path, b"outvote-x\n")
    assert read_secret(path) == "outvote-x"
    path.chmod(0o640)  # so Kubernetes gives files to a pod
    assert read_secret(path) == "outvote-x"
    for mode in (0o644, 0o660, 0o602):
        path.chmod(mode)
        with pytest.raises(InvalidConfiguration, match=f"has mode {mode:o}: others may read or change it"):
            read_secret(path)


@pytest.mark.parametrize("content", [b"", b"two tokens", b"a\nb", "é".encode(), b"a\0b"])
def test_what_is_no_token_is_refused_without_being_shown(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_private(path, content)
    with pytest.raises(InvalidConfiguration) as told:
        read_secret(path)
    assert "two tokens" not in str(told.value)
    with pytest.raises(InvalidConfiguration, match="cannot be read"):
        read_secret(tmp_path / "none")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (b"Bearer abc", b"abc"),
        (b"bearer  abc ", b"abc"),
        (b"Bearer ", None),
        (b"Bearer", None),
        (b"Basic abc", None),
        (b"abc", None),
        (None, None),
    ],
)
def test_a_token_comes_after_the_word_bearer(header: bytes | None, token: bytes | None) -> None:
    assert bearer(header) == token
