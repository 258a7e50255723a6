"""`outvote task` with a kit, or with its parts: whom it trusts, what it shows of itself, what it says when refused."""

from __future__ import annotations

import argparse
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from helpers.certificates import Authority
from helpers.holders import Holders, server_kit
from helpers.processes import Running, commands, request, until
from outvote.cli.asking import KIT, ServerTarget, ask, asked
from outvote.cli.main import main
from outvote.core.errors import InvalidConfiguration, InvalidInput
from outvote.files import write_private


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("asking")


@pytest.fixture(scope="module")
def holders(folder: Path) -> Holders:
    return Holders(server_kit(folder))


@pytest.fixture(scope="module")
def ca(holders: Holders) -> Path:
    return holders.path.with_name("ca.pem")


@pytest.fixture(scope="module")
def server(folder: Path, holders: Holders) -> Iterator[Running]:
    kit = str(holders.path.parent)
    with commands(folder) as start:
        yield start("server", "--kit", kit, "--port", "0", "--engine-port", "0", "--store", "log")


@pytest.fixture(autouse=True)
def no_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KIT, raising=False)


def kit(folder: Path, name: str, server: str, ca: Path, holders: Holders) -> Path:
    """As an operator is given it."""
    made = folder / f"kit-{name}"
    made.mkdir(exist_ok=True)
    (made / "kit.json").write_text(json.dumps({"kit": "operator", "version": 1, "server": server}))
    shutil.copy(ca, made / "ca.pem")
    write_private(made / "token", holders.secrets[name].encode() + b"\n")
    return made


def refused(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert main(["task", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.strip().removeprefix("outvote task: error: ")


SHOP = ("create", "--name", "shop", "--variants", "2", "--sites", "2")
CREATE = (*SHOP, "--reward-window", "60s")


def test_a_kit_is_all_that_an_operator_needs_or_a_variable_that_names_it(
    tmp_path: Path,
    server: Running,
    ca: Path,
    holders: Holders,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = server.url("server")
    admin, viewer = (kit(tmp_path, name, url, ca, holders) for name in ("ops", "looker"))
    assert main(["task", "--kit", str(admin), *CREATE]) == 0
    follow = f"follow it with: outvote task watch shop --kit {admin}\n"
    assert capsys.readouterr().out.endswith(follow), "what has to be typed, with whom to ask"
    monkeypatch.setenv(KIT, str(viewer))
    assert main(["task", "list"]) == 0
    assert "shop" in capsys.readouterr().out
    assert "a viewer's, who may look" in refused(capsys, 1, "stop", "shop")
    assert main(["task", "stop", "shop", "--kit", str(admin)]) == 0
    capsys.readouterr()
    told = refused(capsys, 1, "list", "--server", url, "--ca", str(ca))  # then the variable does not count
    assert told == f"the server at {url} wants a token: give --kit FOLDER, or --token-file FILE"
    parts = ("--server", url, "--ca", str(ca), "--token-file", str(viewer / "token"))
    assert main(["task", *parts, "list"]) == 0


def test_refusals_say_what_to_do_and_show_no_token(
    tmp_path: Path, server: Running, ca: Path, holders: Holders, capsys: pytest.CaptureFixture[str]
) -> None:
    url = server.url("server")
    found = {name: str(kit(tmp_path, name, url, ca, holders)) for name in ("ops", "former", "shop")}
    assert refused(capsys, 1, "list", "--kit", found["former"]).startswith(
        "the token has expired: `outvote fleet token`"
    )
    assert "for applications at an edge" in refused(capsys, 1, "list", "--kit", found["shop"])
    wrong = tmp_path / "wrong"
    write_private(wrong, b"outvote-made-up")
    told = refused(capsys, 1, "list", "--kit", found["ops"], "--token-file", str(wrong))
    assert told.startswith(f"the server at {url} does not know this token")
    assert "made-up" not in told
    other = Authority(tmp_path, "other")
    told = refused(capsys, 1, "list", "--kit", found["ops"], "--ca", str(other.path))
    assert told.startswith(f"the certificate that {url} shows is not to be trusted: ")
    told = refused(capsys, 1, "list", "--server", url.replace("https", "http"))
    assert told.endswith("does it speak https://?")
    wrong.chmod(0o644)
    assert "has mode 644" in refused(capsys, 2, "list", "--kit", found["ops"], "--token-file", str(wrong))
    assert "cannot be read: kit.json" in refused(capsys, 2, "list", "--kit", str(tmp_path / "none"))


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(
        **{"server": None, "kit": None, "token_file": None, "ca": None, "insecure": False, **given}
    )


def test_a_token_is_not_sent_in_plaintext_beyond_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "token"
    write_private(file, b"outvote-secret")
    for server in ("http://127.0.0.1:8600", "http://localhost:1", "http://[::1]:1"):
        assert asked(options(server=server, token_file=file)) == ServerTarget(server, "outvote-secret")
    with pytest.raises(
        InvalidConfiguration, match=r"the token would be sent in plaintext to '10\.0\.0\.5', which others"
    ):
        asked(options(server="http://10.0.0.5:8600", token_file=file))
    found = asked(options(server="http://10.0.0.5:8600", token_file=file, insecure=True))
    assert found.token == "outvote-secret"
    assert "secret" not in repr(found)
    assert asked(options(server="http://10.0.0.5:8600")).token is None


@contextmanager
def answering(status: int, body: bytes, seen: list[str | None] | None = None) -> Iterator[str]:
    """The address of something that answers every request so, and leads elsewhere."""

    class Answers(BaseHTTPRequestHandler):
        def answer(self) -> None:
            if seen is not None:
                seen.append(self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answers) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{other.server_port}"
        other.shutdown()


def test_a_token_is_not_taken_elsewhere_by_who_leads_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    write_private(file, b"outvote-secret")
    seen: list[str | None] = []
    with answering(302, b"", seen) as url:
        told = refused(capsys, 1, "list", "--server", url, "--token-file", str(file))
    assert told.startswith(f"what answers at {url} is no outvote server: it says 302; ")
    assert seen == ["Bearer outvote-secret", None]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (None, "must be given: how long after a decision may its reward come"),
        ("0", "must be from 1 second to 7 days (1 to 604800, in seconds), got 0"),
        ("0.9", "must be from 1 second to 7 days (1 to 604800, in seconds), got 0.9"),
        ("-20s", "must be from 1 second to 7 days (1 to 604800, in seconds), got -20"),
        ("365d", "must be from 1 second to 7 days (1 to 604800, in seconds), got 31536000"),
        ("soon", "must be a duration like 90, 60s, 30m, 2h or 1d, got 'soon'"),
        ("", "must be a duration like 90, 60s, 30m, 2h or 1d, got ''"),
    ],
)
def test_without_a_window_from_a_second_to_seven_days_no_task_is_created(
    server: Running,
    tmp_path: Path,
    ca: Path,
    holders: Holders,
    capsys: pytest.CaptureFixture[str],
    written: str | None,
    said: str,
) -> None:
    operator = str(kit(tmp_path, "ops", server.url("server"), ca, holders))
    asked = ["create", "--name", "windowless", *SHOP[3:], "--kit", operator]
    if written is not None:
        asked.append(f"--reward-window={written}")
    assert refused(capsys, 2, *asked).startswith(f"reward_window {said}")
    assert main(["task", "list", "--kit", operator, "--json"]) == 0
    assert "windowless" not in capsys.readouterr().out


def test_a_file_with_a_window_that_is_none_creates_nothing(
    server: Running, tmp_path: Path, ca: Path, holders: Holders, capsys: pytest.CaptureFixture[str]
) -> None:
    operator = str(kit(tmp_path, "ops", server.url("server"), ca, holders))
    file = tmp_path / "shop.toml"
    for written in ("0", "-1", '"20s"', "true", "31_536_000"):
        file.write_text(f'name = "from-file"\nvariants = 2\nsites = 2\nreward_window = {written}\n')
        assert refused(capsys, 2, "create", "--file", str(file), "--kit", operator).startswith("reward_window must be")
    assert main(["task", "list", "--kit", operator, "--json"]) == 0
    assert "from-file" not in capsys.readouterr().out


ACTIONS = [
    CREATE, ("list",), ("sites",), ("show", "shop"), ("watch", "shop"), ("stop", "shop"), ("kill", "shop"),
    ("revive", "shop"), ("delete", "shop", "--yes"), ("expect", "shop", "--traffic", "5"),
]  # fmt: skip


def test_an_edge_or_an_engine_in_the_place_of_a_server_is_told_for_every_action(
    tmp_path: Path, server: Running, holders: Holders, ca: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with commands(tmp_path) as start:
        plain = start("server", "--port", "0", "--engine-port", "0")
        edge = start("edge", "ams", "--nats", plain.url("nats"), "--port", "0")
        assert main(["task", "--server", plain.url("server"), *CREATE]) == 0
        until(lambda: bool(request(f"{edge.url('edge')}/v1/tasks")["tasks"]), "the edge has the task")
        capsys.readouterr()
        engines = [plain.url("nats").replace("nats", "http"), f"https://localhost:{server.port('nats')}"]
        for action in ACTIONS:
            said = f"what answers at {edge.url('edge')} is an edge, not a server: name an outvote server with --server"
            assert refused(capsys, 1, *action, "--server", edge.url("edge")).startswith(said)
            for engine in engines:
                said = f"what answers at {engine} is the engine (NATS), not a server: name an outvote server with"
                assert refused(capsys, 1, *action, "--server", engine, "--ca", str(ca)).startswith(said)


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"<html>"), (200, b"{}"), (200, b"[1]"), (200, b'{"status": "ok"}'), (404, b"no"), (500, b"{}")],
)
def test_any_other_http_server_is_told_for_every_action(
    capsys: pytest.CaptureFixture[str], status: int, body: bytes
) -> None:
    with answering(status, body) as url:
        for action in ACTIONS:
            said = f"what answers at {url} is no outvote server: it says {status}; name an outvote server with --server"
            assert refused(capsys, 1, *action, "--server", url).startswith(said)


@pytest.mark.parametrize("named", [{}, {"field": "variants", "code": "range"}])
def test_a_refused_value_is_told_in_the_servers_words(
    capsys: pytest.CaptureFixture[str], named: dict[str, str]
) -> None:
    detail = "variants must be from 2 to 9, got 1"
    with answering(422, json.dumps({"detail": detail} | named).encode()) as url:
        assert refused(capsys, 2, *CREATE, "--server", url) == detail
        with pytest.raises(InvalidInput) as refusal:
            ask(options(server=url), "POST", "/v1/tasks", {})
    assert (refusal.value.field, refusal.value.code) == (named.get("field"), named.get("code", "invalid"))
