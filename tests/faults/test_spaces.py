"""Packet filters between namespaces: what is parted is parted, in one direction or both, and only that."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from faults import spaces
from faults.spaces import Spaces

CONNECT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=0.3) as it:
    assert it.recv(2) == b"hi"
"""


def test_a_port_is_parted_from_a_namespace_and_joined_again_and_others_are_reached_meanwhile() -> None:
    reason = spaces.why_not()
    if reason is not None:
        pytest.skip(reason)
    with Spaces(["n1"], 98) as made:
        made.add("e1")
        with socket.create_server((made.gateway, 0)) as parted, socket.create_server((made.gateway, 0)) as other:
            ports = [each.getsockname()[1] for each in (parted, other)]

            def reaches(name: str, listening: socket.socket) -> bool:
                listening.settimeout(0.5)
                command = [*made.prefix(name), sys.executable, "-c", CONNECT, made.gateway]
                with subprocess.Popen(
                    [*command, str(listening.getsockname()[1])], stderr=subprocess.DEVNULL
                ) as connecting:
                    try:
                        with listening.accept()[0] as came:
                            came.sendall(b"hi")
                            return connecting.wait() == 0
                    except TimeoutError:
                        return connecting.wait() == 0

            assert reaches("e1", parted)
            for directions in (("up",), ("down",), ("up", "down")):
                made.part("e1", ports[0], directions)
                assert not reaches("e1", parted)
                made.join("e1", ports[0], directions)
            made.part("e1", ports[0], ("up", "down"))
            assert reaches("e1", other)
            assert reaches("n1", parted)
    assert not made.path("e1").exists()
