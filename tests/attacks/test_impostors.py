"""Attackers in the place of the engine or the server: nobody tells them anything."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attacks.conftest import Attack
from attacks.secured import Secured
from network.processes import OUTVOTE, until
from outvote.fleet.certificates import new_authority, new_certificate

NOW = time.time()
INFO = (
    b'INFO {"server_id":"X","version":"2.12.0","proto":1,"max_payload":1048576,"nonce":"abc","auth_required":true}\r\n'
)


class Heard:
    """What an impostor was told."""

    def __init__(self) -> None:
        self.connections = 0
        self.bytes = b""


@contextmanager
def impostor(greet: Callable[[socket.socket], socket.socket]) -> Iterator[tuple[int, Heard]]:
    """Somebody who listens in the place of another, and takes down what comes."""
    heard = Heard()
    ended = threading.Event()

    def take(connection: socket.socket) -> None:
        with connection:
            connection.settimeout(0.5)
            heard.connections += 1
            try:
                talking = greet(connection)
                while chunk := talking.recv(4096):
                    heard.bytes += chunk
            except OSError:
                pass

    def listen(listener: socket.socket) -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            take(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=listen, args=(listener,))
        thread.start()
        try:
            yield int(listener.getsockname()[1]), heard
        finally:
            ended.set()
            thread.join()


def self_signed(folder: Path) -> ssl.SSLContext:
    """A certificate with the right names, of an authority that the fleet does not know."""
    authority = new_authority("somebody", now=NOW)
    signed = new_certificate(authority, ["127.0.0.1"], now=NOW)
    (folder / "fake.pem").write_bytes(signed.chain)
    (folder / "fake.key").write_bytes(signed.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "fake.pem", folder / "fake.key")
    return context


@pytest.mark.parametrize("kind", ["with a certificate of its own", "that says there is no TLS"])
def test_in_the_place_of_the_engine(secured: Secured, attack: Attack, tmp_path: Path, kind: str) -> None:
    kit = tmp_path / "kit"
    shutil.copytree(secured.kit("carol"), kit)

    def greet(connection: socket.socket) -> socket.socket:
        if kind == "that says there is no TLS":
            connection.sendall(INFO)
            return connection
        talking = self_signed(tmp_path).wrap_socket(connection, server_side=True)
        talking.sendall(INFO)
        return talking

    log = tmp_path / "edge.log"
    with impostor(greet) as (port, heard):
        own = ["--nats", f"tls://127.0.0.1:{port}", "--store", str(tmp_path / "edge.db"), "--log", "json"]
        secured.start("edge", "--kit", str(kit), "--port", "0", *own, log=log)
        until(lambda: heard.connections >= 2, "the site has tried more than once")
    assert b"CONNECT" not in heard.bytes
    assert b"jwt" not in heard.bytes
    assert len(secured.events("engine_unreachable", log)) == 1
    attack.refused(
        f"stand in the place of the engine, {kind}",
        by="somebody in between",
        happened="the site does not tell it anything, and goes on trying",
        logged="`engine_unreachable`, once, at the site",
    )


def test_in_the_place_of_the_server(secured: Secured, attack: Attack, tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    shutil.copytree(secured.kit("operator"), kit)
    context = self_signed(tmp_path)
    with impostor(lambda connection: context.wrap_socket(connection, server_side=True)) as (port, heard):
        told = json.loads((kit / "kit.json").read_text())
        (kit / "kit.json").write_text(json.dumps({**told, "server": f"https://127.0.0.1:{port}"}))
        done = subprocess.run(
            [*OUTVOTE, "task", "list", "--kit", str(kit)], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert "certificate" in done.stderr.lower()
    assert heard.bytes == b""
    attack.refused(
        "stand in the place of the server, with a certificate of its own",
        by="somebody in between",
        happened="the operator's command ends with exit code 1, and does not send its token",
        logged="nothing: the operator is told",
    )
