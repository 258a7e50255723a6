"""`outvote fleet` as people meet it: what it prints, what it refuses, exit codes, and that it shows no secret."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import ssl
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from fleet.conftest import everything
from helpers.processes import Start, free_port, request, until
from outvote.access.kits import read_edge_kit, read_server_kit
from outvote.access.tokens import TokenBook
from outvote.cli.main import main
from outvote.cli.security import Security
from outvote.cli.server import Setup, ready
from outvote.core.errors import InvalidConfiguration
from outvote.fleet.certificates import new_authority, new_certificate

SECRETS = re.compile(r"\bS[OAU][A-Z2-7]{56}\b|outvote-[A-Za-z0-9_-]{43}|PRIVATE KEY")


class Shell:
    """A folder in which commands are given."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.fleet = folder / "outvote-fleet"
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors."""
        try:
            code = main(["fleet", *words])
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def good(self, *words: str) -> str:
        code, out, err = self(*words)
        assert (code, err) == (0, ""), err
        return out

    def json(self, *words: str) -> dict[str, Any]:
        return dict(json.loads(self.good(*words, "--json")))

    def refused(self, *words: str, code: int = 2) -> str:
        found, out, err = self(*words)
        assert (found, out) == (code, ""), (found, out, err)
        assert err.startswith("outvote fleet")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        return err


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


@pytest.fixture
def made(shell: Shell) -> Shell:
    shell.good("init", "--engine", f"localhost:{free_port()}")
    return shell


def test_a_fleet_of_three_engines_elsewhere(shell: Shell) -> None:
    engines = [f"--engine=engine-{number}.example.org" for number in (1, 2, 3)]
    record = shell.json("--folder", "f", "init", *engines, "--server", "10.0.0.6:8700", "--name", "shop", "--days", "9")
    assert record["kits"] == ["server", "operator", "engine-1", "engine-2", "engine-3"]
    assert record["server"] == "https://10.0.0.6:8700"
    assert abs(record["expires"] - time.time() - 9 * 86400) < 60
    kit = read_server_kit(shell.folder / "f" / "server")
    assert kit.engine is None
    assert kit.nats == tuple(f"tls://engine-{number}.example.org:4322" for number in (1, 2, 3))


def test_edges_are_added_and_listed(made: Shell) -> None:
    assert "outvote edge --kit outvote-fleet/edges/paris" in made.good("add", "paris", "lima", "--days", "20")
    added = made.json("add", "tokyo", "--https", "10.0.0.7")["edges"][0]
    assert TokenBook(made.fleet / "edges/tokyo/tokens.json").check(added["token"].encode()).role == "application"
    listed = made.json("list")
    assert [(each["name"], each["state"], each["https"]) for each in listed["edges"]] == [
        ("lima", "expires in 19 days", None),
        ("paris", "expires in 19 days", None),
        ("tokyo", "valid", "10.0.0.7"),
    ]
    assert [(each["of"], each["name"]) for each in listed["tokens"]] == [
        ("server", "operator"),
        ("tokyo", "application"),
    ]
    assert [each["file"] for each in listed["certificates"]] == [
        "ca.pem", "engine/engine.pem", "server/https.pem", "edges/tokyo/https.pem",
    ]  # fmt: skip
    told = made.good("list")
    assert "expires in 19 days" in told
    assert "edges/tokyo/https.pem" in told


def test_tokens_are_made_shown_once_listed_and_removed(made: Shell) -> None:
    code, out, err = made("token", "add", "ci", "--role", "viewer", "--days", "5")
    assert code == 0
    assert "shown once" in err
    book = TokenBook(made.fleet / "server/tokens.json")
    assert book.check(out.strip().encode()).role == "viewer"
    listed = made.json("list")["tokens"]
    assert [(each["name"], each["role"], each["state"]) for each in listed] == [
        ("operator", "admin", "valid"),
        ("ci", "viewer", "expires in 4 days"),
    ]
    assert "ci" in made.good("list")
    made.refused("token", "add", "ci", "--role", "admin")
    made.good("token", "remove", "ci")
    made.refused("token", "remove", "ci")
    assert TokenBook(made.fleet / "server/tokens.json").check(out.strip().encode()).role is None
    made.good("add", "tokyo", "--https", "10.0.0.7")
    secret = made.json("token", "add", "app2", "--role", "application", "--edge", "tokyo")["token"]
    assert TokenBook(made.fleet / "edges/tokyo/tokens.json").check(secret.encode()).role == "application"


def test_everything_can_be_renewed(made: Shell) -> None:
    made.good("add", "paris", "lima")
    made.good("add", "tokyo", "--https", "10.0.0.7")
    assert made.json("renew", "paris")["kits"] == ["outvote-fleet/edges/paris"]
    record = made.json("renew", "--all", "--server", "--certificates", "--operator", "--days", "5")
    assert record["kits"] == [
        f"outvote-fleet/{kit}" for kit in ("edges/paris", "edges/lima", "edges/tokyo", "server", "engine", "operator")
    ]
    listed = made.json("list")
    assert {each["state"] for each in [*listed["edges"], listed["servers"]]} == {"expires in 4 days"}
    assert {each["state"] for each in listed["certificates"][1:]} == {"expires in 4 days"}


def test_no_command_shows_a_secret_but_a_new_token_once(made: Shell) -> None:
    shown = []
    for words in (
        ["add", "paris", "lima"], ["list"], ["list", "--json"], ["renew", "--all"], ["renew", "--server"],
        ["renew", "--operator"], ["renew", "--certificates"],
    ):  # fmt: skip
        shown.append(made.good(*words))
    shown.append((made.fleet / "fleet.json").read_text())
    for words in (["add", "paris"], ["push"], ["revoke", "paris"]):
        shown.append(made.refused(*words, code=2 if words[0] == "add" else 1))
    assert not SECRETS.search("".join(shown))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["init"], "exists already"),
        (
            ["--folder", "new", "init", "--engine", "a", "--engine", "b"],
            "engine must be given once or three times, got 2",
        ),
        (
            ["--folder", "new", "init", "--engine", "a", "--engine", "a", "--engine", "a"],
            "a different address each time",
        ),
        (
            ["--folder", "new", "init", "--engine=a:65001", "--engine=a:1", "--engine=a:2"],
            "a port of at most 63535, got 65001",
        ),
        (["--folder", "new", "init", "--engine", "a b"], "must be a name like"),
        (["--folder", "new", "init", "--also", "a b"], "must be a name like"),
        (["--folder", "new", "init", "--server", "http://x"], "server must be HOST or HOST:PORT"),
        (["--folder", "new", "init", "--days", "0"], "days must be"),
        (["--folder", "new", "init", "--disk", "0"], "whole number of bytes"),
        (["--folder", "new", "init", "--store", "here"], "must be a folder like"),
        (["--folder", "new", "init", "--name", "a.b"], "a fleet's name must be"),
        (["--folder", "new", "init", "--certificate", "x.pem"], "give --certificate and --key"),
        (["--folder", "new", "init", "--certificate", "x.pem", "--key", "x.key"], "give --ca"),
        (["--folder", "new", "init", "--ca", "x.pem"], "give --certificate and --key"),
        (["--folder", "new/er", "init"], "must exist"),
        (["--folder", "new", "init", "--json", "no/such.json"], "JSON file cannot be written"),
        (["--folder", "none", "list"], "holds no fleet"),
        (["--folder", "none", "push"], "holds no fleet"),
        (["add"], "required: EDGE"),
        (["add", "a.b"], "an edge's name must be"),
        (["add", "server"], "names of the fleet itself"),
        (["add", "paris"], "exists already"),
        (["add", "lima", "PARIS"], "exists already"),
        (["add", "a", "a"], "must be named once each"),
        (["add", "a", "A"], "must be named once each"),
        (["add", "a", "--days", "x"], "must be a number"),
        (["add", "a", "--days", "-1"], "days must be"),
        (["add", "a", "b", "--https", "10.0.0.1"], "one by one"),
        (["add", "a", "--https", "a b"], "must be a name like"),
        (["add", "a", "--certificate", "x", "--key", "y"], "needs --https HOST"),
        (["revoke", "nobody"], "edge 'nobody' is unknown, there are 'paris', 'tokyo'"),
        (["renew"], "nothing to renew"),
        (["renew", "paris", "nobody"], "is unknown"),
        (["renew", "--all", "--days", "0"], "days must be a number above 0"),
        (["renew", "--server", "--days=-1"], "days must be a number above 0"),
        (["renew", "--certificates", "--days", "0"], "days must be a number above 0"),
        (["renew", "--operator", "--days", "36501"], "at most 36500, got 36501"),
        (["renew", "paris", "--all"], "not both"),
        (["renew", "paris", "--certificate", "x", "--key", "y"], "certificate needs --certificates, too"),
        (["renew", "--certificates", "--certificate", "x", "--key", "y"], "signs its certificates itself"),
        (["token", "add", "a.b", "--role", "admin"], "a token's name must be"),
        (["token", "add", "a", "--role", "root"], "invalid choice"),
        (["token", "add", "a", "--role", "viewer", "--days", "0"], "days must be a number above 0"),
        (
            ["token", "add", "a", "--role", "application"],
            "role must be admin or viewer for the server, got 'application'",
        ),
        (["token", "add", "a", "--role", "admin", "--edge", "paris"], "role must be application for an edge"),
        (["token", "add", "a", "--role", "application", "--edge", "paris"], "asks for no token"),
        (["token", "remove", "app", "--edge", "nobody"], "is unknown"),
        (["token", "remove", "nobody"], "token 'nobody' is unknown"),
        (["nothing"], "invalid choice"),
        (["list", "--loud"], "unknown option"),
    ],
    ids=lambda value: " ".join(value)[:60].encode("unicode_escape").decode() if isinstance(value, list) else "",
)
def test_bad_input_is_refused_in_one_line(paris: Shell, words: list[str], said: str) -> None:
    before = everything(paris.folder)
    assert said in paris.refused(*words)
    assert everything(paris.folder) == before


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    for words in (["init", "--engine", "localhost:1"], ["add", "paris"], ["add", "tokyo", "--https", "10.0.0.7"]):
        assert main(["fleet", "--folder", str(folder / "outvote-fleet"), *words]) == 0
    return folder


@pytest.fixture
def paris(template: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A fleet with two edges, which no test changes."""
    monkeypatch.chdir(template)
    return Shell(template, capsys)


def test_what_is_told_names_folders_that_are_there_as_a_shell_reads_them(shell: Shell) -> None:
    out = shell.good("init", "--engine", "localhost", "--server", "localhost")
    assert out.splitlines()[-2:] == ["  outvote server --kit outvote-fleet/server", "  outvote fleet add paris"]
    words = ["--folder", "my fleet/", "init", "--engine", "[::1]:5322", "--server", "admin.example.org:5600"]
    assert shell.good(*words).splitlines()[-2:] == [
        "  outvote server --kit 'my fleet/server' --host 0.0.0.0 --port 5600 --engine-host ::1 --engine-port 5322",
        "  outvote fleet --folder 'my fleet' add paris",
    ]
    told = shell.good("--folder", "my fleet", "add", "paris")
    assert told.endswith(": outvote edge --kit 'my fleet/edges/paris'\n")
    assert hints("my fleet/server") == ["--kit 'my fleet/operator' list", "--kit 'my fleet/edges/paris'"]
    (shell.folder / "my fleet/server").rename("server")
    assert hints("server") == ["--kit FOLDER list", "--kit FOLDER"]
    with pytest.raises(InvalidConfiguration, match=r"^kit 'server' is a server kit; an edge kit is required$"):
        read_edge_kit(Path("server"))
    with pytest.raises(InvalidConfiguration, match="is an edge kit; a server kit is required"):
        read_server_kit(Path("my fleet/edges/paris"))


def hints(kit: str) -> list[str]:
    """The options in what a server tells people to do next."""
    args, setup = argparse.Namespace(kit=kit), Setup("localhost", Security(None, None, None, False), "", None)
    told = ready(args, setup, "https://localhost:5600", "tls://localhost:5322", tasks=1)
    assert "\n1 task in the log; " in told
    return re.findall(r"\(outvote (?:task|edge) (.*)\)", told)


def test_a_certificate_of_ones_own_is_taken(shell: Shell) -> None:
    now = time.time()
    authority = new_authority("mine", now=now)
    signed = new_certificate(authority, ["localhost"], now=now)
    for name, content in (("my.pem", signed.chain), ("my.key", signed.key), ("ca.pem", authority.chain)):
        (shell.folder / name).write_bytes(content)
    shell.good("init", "--certificate", "my.pem", "--key", "my.key", "--ca", "ca.pem")
    assert (shell.fleet / "server" / "https.pem").read_bytes() == signed.chain
    shell.good("renew", "--certificates", "--certificate", "my.pem", "--key", "my.key")
    shell.refused("renew", "--certificates")


def test_from_nothing_to_a_vote_over_tls_to_a_discount(shell: Shell, start: Start) -> None:
    """Every process as the command before it says; an edge that is revoked sends no more, and what it sent can be
    discounted."""
    engine, port = free_port(), free_port()
    made = shell.good("init", "--engine", f"localhost:{engine}", "--server", f"localhost:{port}")
    serve, add = (shlex.split(line)[1:] for line in made.splitlines()[-2:])
    server = start(*serve)
    edge = start(*shlex.split(shell.good(*add[1:]).partition(": outvote ")[2]), "--port", "0").url("edge")
    assert server.url("server") == f"https://127.0.0.1:{port}"

    token = (shell.fleet / "operator" / "token").read_text().strip()
    trust = ssl.create_default_context(cafile=str(shell.fleet / "ca.pem"))
    operator = httpx.Client(
        base_url=server.url("server"), headers={"Authorization": f"Bearer {token}"}, verify=trust, trust_env=False
    )

    def messages() -> int:
        return int(sum(each["messages"] for each in operator.get("/v1/sites").json()["sites"]))

    create = ["create", "--name", "banner", "--variants=2", "--sites=3", "--reward-window=1s"]
    assert main(["task", "--kit", "outvote-fleet/operator", *create]) == 0
    until(lambda: len(request(f"{edge}/v1/tasks")["tasks"]) == 1, "the edge has heard of the task")
    for _ in range(9):
        decided = request(f"{edge}/v1/tasks/banner/decide", method="POST")
        request(f"{edge}/v1/tasks/banner/reward", {"ticket": decided["ticket"], "reward": 0})
    until(lambda: messages() > 0, "its first message is counted")
    assert "goes on counting" in shell.good("revoke", "paris")
    record = shell.json("revoke", "paris", "--discount")
    assert record == {"revoked": "paris", "engines": ["outvote"], "discounted": ["banner"]}
    assert shell.json("revoke", "paris", "--discount")["discounted"] == []
    operator.close()
