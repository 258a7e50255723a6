"""HTTP connections with limits: whatever a client sends or leaves unread, memory and time are bounded.

uvicorn parses and answers. This module decides which bytes its parser sees, and when: a head only once it is complete,
and one request at a time. Further bytes wait unparsed, and reading pauses, until the response is written.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from outvote.web.limits import CLOSING, UNFINISHED, Watch

LARGEST_HEAD: Final = 16 * 1024
MOST_FIELDS: Final = 100
RECEIVE_BUFFER: Final = 16 * 1024
"""Bytes buffered before the parser, in the kernel and in the TLS layer."""
SEND_BUFFER: Final = 64 * 1024
"""Bytes of a response buffered for a client that does not read, in the kernel and in the TLS layer."""

BAD_REQUEST: Final = HTTPStatus.BAD_REQUEST
SERVICE_UNAVAILABLE: Final = HTTPStatus.SERVICE_UNAVAILABLE
TOO_MUCH: Final = (
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    f"the head of a request may have {MOST_FIELDS} fields and {LARGEST_HEAD} bytes",
)

_END: Final = b"\r\n\r\n"
_CHUNKED: Final = -1
"""Stands for the unknown length of a chunked body."""
_BUFFERED: Final = 128 * 1024
"""Maximum bytes of a request in memory at once: uvicorn's buffer and the application's."""


def _problem(status: HTTPStatus, detail: str) -> bytes:
    """Return a complete response that closes the connection."""
    body = f'{{"type":"about:blank","title":"{status.phrase}","status":{status},"detail":"{detail}"}}'
    head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/problem+json\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode("ascii")


TOO_MANY: Final = _problem(SERVICE_UNAVAILABLE, "too many connections are open: try again later")


class Connection(HttpToolsProtocol):
    """One connection. Its parser sees one request at a time."""

    def __init__(
        self, watch: Watch, config: uvicorn.Config, state: ServerState, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(config, state, {}, loop)
        self.watch = watch
        self.waiting = b""
        """Bytes received and not parsed yet."""
        self.paused = False
        """Reading is paused until the request is answered."""
        self.body_left = 0
        """Bytes of the body still to be received, or `_CHUNKED`; 0 between requests."""
        self.body_size = 0
        self.held = 0
        """Bytes that this connection adds to `Watch.held`."""
        self.since = 0
        """The second in which the unfinished request began; 0 if there is none."""
        self.late = 0
        """Seconds since it began to close, or since the client last read some of its response."""
        self.unread = 0
        self.refusal = BAD_REQUEST, "this is not a valid HTTP/1.1 request"
        """The response if the parser fails."""
        self.is_refused = False
        """The last response was sent; it closes when the client does."""

    # ---- called by the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.since = self.watch.now
        if self.scheme == "https":  # TLS would buffer half a megabyte by default
            transport.set_read_buffer_limits(RECEIVE_BUFFER)  # type: ignore[attr-defined]  # TLS transports have it
            transport.set_write_buffer_limits(SEND_BUFFER)
        self.watch.idle[self] = self.watch.now

    def data_received(self, data: bytes) -> None:
        if self.is_refused:
            return
        self.watch.idle.pop(self, None)
        if not self.since:
            self.since = self.watch.now
        self.waiting += data
        self._parse()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self.watch.idle.pop(self, None)
        super().connection_lost(exc)
        self.transport.set_protocol(asyncio.Protocol())  # break a reference cycle of TLS

    # ---- one request at a time

    def _parse(self) -> None:
        """Pass complete parts to the parser, up to the end of one request."""
        while self.waiting and not self._is_answering() and not self.transport.is_closing():
            size = self._parsable()
            if not size:
                break
            piece, self.waiting = self.waiting[:size], self.waiting[size:]
            if self.body_left:
                self.body_size += size
                if self.body_left > 0:
                    self.body_left -= size
            super().data_received(piece)
        if self.waiting or self.body_left or self.held or self.paused:
            self._wait()

    def _wait(self) -> None:
        """Pause or resume reading, and count the bytes held in memory, while a request is unfinished or queued."""
        is_answering = self._is_answering()
        if self.transport.is_closing() or self.is_refused:
            self._forget()
            return
        if self.waiting and is_answering:
            self.paused = True
            self.transport.pause_reading()
        elif self.paused:
            self.paused = False
            if not self.flow.read_paused:  # uvicorn also pauses, while a body waits for the application
                self.transport.resume_reading()
        if not self.since and not is_answering:
            self.since = self.watch.now
        held = len(self.waiting) + (min(self.body_size, _BUFFERED) if self.body_left else 0)
        self.watch.held += held - self.held
        self.held = held
        if held and self.watch.held > self.watch.most_held:
            self.watch.turn_away()
            self._refuse(SERVICE_UNAVAILABLE, "too many requests are unfinished: send them at once")
        elif len(self.headers or ()) > MOST_FIELDS:  # trailers of a chunked body
            self._refuse(*TOO_MUCH)

    def _is_answering(self) -> bool:
        """A complete request was received, and its response is not written yet."""
        return self.cycle is not None and not (self.body_left or self.cycle.response_complete)

    def _parsable(self) -> int:
        """How many waiting bytes certainly belong to one request: a complete head, or part of a body."""
        if self.body_left > 0:
            return min(self.body_left, len(self.waiting))
        end = self.waiting.find(_END) + len(_END)
        is_found = end >= len(_END)
        if self.body_left == _CHUNKED:  # the last three bytes may be the start of `_END`
            return end if is_found else max(0, len(self.waiting) - 3)
        if (end if is_found else len(self.waiting)) > LARGEST_HEAD:
            self._refuse(*TOO_MUCH)
            return 0
        if is_found:
            return end
        self.waiting = self.waiting.lstrip(b"\r\n")  # some clients send an empty line after a body
        if self.waiting and not self.waiting[:1].isalpha():  # perhaps a TLS handshake, which never contains `_END`
            self._refuse(*self.refusal)
        return 0

    def _forget(self) -> None:
        """Free the memory of a finished request: its connection may stay open for long."""
        self.waiting = b""
        self.headers = []
        self.scope = None  # type: ignore[assignment]  # as uvicorn has it before the first request
        self.watch.held -= self.held
        self.held = 0

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer with a problem, unless another response has started, and close."""
        cycle = self.cycle
        is_idle = cycle is None or cycle.response_complete
        if is_idle or (self.body_left and not cycle.response_started):
            self.transport.write(_problem(status, detail))
        self._forget()
        if is_idle and self.transport.can_write_eof():
            self.is_refused = True  # discard further bytes: closing at once would reset the connection
            self.transport.write_eof()
        else:
            self.transport.close()

    # ---- called by the parser and uvicorn

    def on_headers_complete(self) -> None:
        """Refuse ambiguous requests, which proxies may read differently. Determine the length of the body."""
        hosts, body_left = [], 0
        for name, value in self.headers:
            if name == b"host":
                hosts.append(value.lower())
            elif name == b"transfer-encoding":
                body_left = _CHUNKED
                if value.lower() != b"chunked":
                    self._reject(BAD_REQUEST, "a Transfer-Encoding other than chunked is not understood")
            elif name == b"content-length":
                body_left = int(value)
        version = self.parser.get_http_version()
        if len(self.headers) > MOST_FIELDS:
            self._reject(*TOO_MUCH)
        if version not in ("1.1", "1.0"):
            self._reject(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.1 and HTTP/1.0 are understood")
        if len(hosts) > 1 or (not hosts and version == "1.1"):
            self._reject(BAD_REQUEST, f"a request has one Host field, this has {len(hosts)}")
        if not self.url.startswith(b"/"):
            scheme, _, host, *_ = [*self.url.lower().split(b"/", 3), b"", b""]
            if [host] != hosts or scheme not in (b"http:", b"https:"):
                self._reject(BAD_REQUEST, "a request's address must name the same host as its Host field")
        if body_left == _CHUNKED and version == "1.0":
            self._reject(BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding: send Content-Length")
        if body_left and self.parser.should_upgrade():  # the parser would take the body as the next request
            self._reject(BAD_REQUEST, "a request with an Upgrade field has no body")
        self.body_left, self.body_size = body_left, 0
        super().on_headers_complete()
        self.headers = []  # trailers are ignored

    def on_message_complete(self) -> None:
        self.body_left = 0
        if not self.cycle.response_complete:  # otherwise keep the deadline: it limits the wait for the next request
            self.since = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Replaces uvicorn's, which has a timer for every idle connection and a queue of requests."""
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.waiting:
            self.loop.call_soon(self._parse)
        elif not self.body_left:
            self.scope = self.cycle.scope = None  # type: ignore[assignment]  # free the headers of an idle connection
            self.watch.idle[self] = self.watch.now

    def send_400_response(self, msg: str) -> None:
        self._refuse(*self.refusal)

    def _reject(self, status: HTTPStatus, detail: str) -> None:
        """Make the parser fail: uvicorn then calls `send_400_response`."""
        self.refusal = status, detail
        raise ValueError(detail)

    # ---- deadlines

    def look(self, now: int) -> bool:
        """Check deadlines once a second. Return whether the connection was closed for one."""
        transport = self.transport
        if transport.is_closing() or self.is_refused:
            self.late += 1
            if self.late > CLOSING:
                transport.abort()
            return False
        if self.flow.write_paused:
            return self._is_stuck()
        self.late = self.unread = 0
        if not self.since or now - self.since <= self.watch.patience:
            return False
        if self.flow.read_paused:  # we have paused reading: not the client's delay
            self.since = now
            return False
        if self.waiting or self.body_left:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"the request was not whole within {UNFINISHED} s")
        transport.close()
        return True

    def _is_stuck(self) -> bool:
        unread = self.transport.get_write_buffer_size()
        self.late = 0 if self.unread and unread < self.unread else self.late + 1
        self.unread = unread
        if self.late <= self.watch.stuck:
            return False
        self.transport.abort()  # a clean close would wait for the client to read the rest
        return True
