"""Bytes on the wire, from the socket statistics of Linux. Clients count payloads only."""

from __future__ import annotations

import socket
import struct
from typing import Any, Final

from nats.aio.client import Client

HEADERS: Final = 52
"""Header bytes of a segment: IPv4 (20) and TCP with timestamps (32)."""

_COUNTS = struct.Struct("=QQII")  # of tcp_info at byte 120: acknowledged, received, segments out, segments in
_AT: Final = 120


class WireBytes:
    """Sum of the bytes over a client's successive connections. Bytes between the last count and the loss of a
    connection are not included."""

    def __init__(self) -> None:
        self._past = 0
        self._now = 0
        self._address: Any = None

    def count(self, client: Client) -> int:
        """Return bytes in both directions, with TCP and IP headers; 0 where the system has no statistics."""
        address, carried = _carried(_socket(client))
        if address is not None:
            if address != self._address:  # a new connection
                self._past, self._now, self._address = self._past + self._now, 0, address
            self._now = max(self._now, carried)
        return self._past + self._now


def _socket(client: Client) -> Any:
    writer = getattr(getattr(client, "_transport", None), "_io_writer", None)
    return None if writer is None or not client.is_connected else writer.get_extra_info("socket")


def _carried(connection: Any) -> tuple[Any, int]:
    """Return the local address and the bytes transferred; None and 0 if the connection has just been closed."""
    try:
        address = connection.getsockname()
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _AT + _COUNTS.size)
        acknowledged, received, segments_out, segments_in = _COUNTS.unpack_from(info, _AT)
    except (AttributeError, OSError, ValueError, struct.error):  # uvloop has a negative file descriptor then
        return None, 0
    return address, int(acknowledged + received + HEADERS * (segments_out + segments_in))
