"""Bytes really on the wire: what Linux counted on the connection's socket, where clients count payloads only."""

from __future__ import annotations

import socket
import struct
from typing import Any, Final

from nats.aio.client import Client

HEADERS: Final = 52
"""Bytes of the headers of IPv4 (20) and of TCP with its time stamps (32), which every segment carries."""

_COUNTS = struct.Struct("=QQII")  # of tcp_info at byte 120: acknowledged, received, segments out, segments in
_AT: Final = 120


class WireBytes:
    """The sum over a client's connections, one after the other; what a connection carried between the last count and
    its loss is not in it."""

    def __init__(self) -> None:
        self._past = 0
        self._now = 0
        self._address: Any = None

    def count(self, client: Client) -> int:
        """Both ways, with the headers of TCP and IP; 0 where the system does not tell."""
        address, carried = _carried(_socket(client))
        if address is not None:
            if address != self._address:  # another connection
                self._past, self._now, self._address = self._past + self._now, 0, address
            self._now = max(self._now, carried)
        return self._past + self._now


def _socket(client: Client) -> Any:
    writer = getattr(getattr(client, "_transport", None), "_io_writer", None)
    return None if writer is None or not client.is_connected else writer.get_extra_info("socket")


def _carried(connection: Any) -> tuple[Any, int]:
    """The connection's own address and what went over it; None and 0 if it has just been closed."""
    try:
        address = connection.getsockname()
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _AT + _COUNTS.size)
        acknowledged, received, segments_out, segments_in = _COUNTS.unpack_from(info, _AT)
    except (AttributeError, OSError, ValueError, struct.error):  # uvloop has a negative file descriptor then
        return None, 0
    return address, int(acknowledged + received + HEADERS * (segments_out + segments_in))
