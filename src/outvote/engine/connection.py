"""A connection to the engine that always reconnects, and logs each problem once.

nats-py reconnects when the network fails, but gives up when the engine refuses a credential that has expired or was
revoked. Credentials are renewed, so this connection retries, with growing pauses.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import ParseResult

from nats.aio.client import DEFAULT_BUFFER_SIZE, Client, Srv
from nats.aio.transport import TcpTransport
from nats.errors import Error as NatsError
from nats.protocol.parser import PERMISSIONS_ERR

from outvote.access.engine_access import Access
from outvote.access.watched_files import WatchedFiles
from outvote.concurrency import cancel
from outvote.core.errors import InvalidConfiguration, OutvoteError
from outvote.observability.logs import event
from outvote.observability.once_per_minute import OncePerMinute

WAIT: Final = 0.25
"""Seconds between two attempts to connect."""
LONGEST_WAIT: Final = 10.0
"""Longest pause after the engine refused the credential; the pause doubles at each attempt."""
CREDENTIAL_LOOK: Final = 2.0
"""Seconds between two checks for a renewed credential."""
ANSWER: Final = 2.0
"""Timeout of a ping, in seconds, after which the connection is considered dead."""
_SHUTDOWN: Final = 1.0  # seconds that the other side has to close TLS
_REFUSALS: Final = ("authorization violation", "authentication")  # … expired, … revoked, … timeout

_log = logging.getLogger(__name__)


class EngineUnreachable(OutvoteError):
    """The engine cannot be reached, or its configuration is not usable."""


class Connection(Client):
    """nats-py's client that never gives up reconnecting."""

    def __init__(self) -> None:
        super().__init__()
        self.forbidden = 0
        """Number of requests that the engine refused for lack of permission."""
        self.credential_expires: int | None = None
        """Expiry of the credential, in seconds since 1970."""
        self._opened = False
        self._ending = False
        self._last: Exception | None = None
        self._refusal: Exception | None = None
        self._said_trouble = True
        self._often = OncePerMinute[str]()
        self._access: Access | None = None
        self._checking = False
        self._renewing: asyncio.Task[None] | None = None

    async def open(
        self,
        urls: str,
        *,
        name: str,
        patience: float | None,
        access: Access | None,
        again: Callable[[], None],
    ) -> None:
        """Connect to one of these comma-separated addresses within `patience` seconds. None sets no limit.

        `again` is called at every reconnection.
        """

        self._said_trouble = patience is not None  # with a timeout, the exception reports it
        self._access = access
        files = WatchedFiles([] if access is None else access.files)
        self.credential_expires = None if access is None else access.credential().expires

        async def reconnected() -> None:
            self.options["reconnect_time_wait"] = WAIT
            self._said_trouble = False
            event(_log, logging.INFO, "engine_reconnected")
            again()

        connecting = self.connect(
            urls.split(","),
            name=name,
            inbox_prefix=f"_INBOX.{name}",
            max_reconnect_attempts=-1,
            reconnect_time_wait=WAIT,  # type: ignore[arg-type]  # a part of a second is good
            ping_interval=10,
            connect_timeout=2,
            error_cb=self._trouble,
            disconnected_cb=self._lost,
            reconnected_cb=reconnected,
            tls=None if access is None else access.context(),
            tls_handshake_first=access is not None,
            user_credentials=None if access is None else access.creds,  # type: ignore[arg-type]  # it takes any UserString
        )
        opening = asyncio.create_task(connecting)
        try:
            if not (await asyncio.wait([opening], timeout=patience))[0]:
                raise TimeoutError
            opening.result()
        except (NatsError, OSError, TimeoutError) as error:
            await cancel([opening])
            with suppress(NatsError, OSError):
                await self.close()
            if self._refusal is not None:
                raise EngineUnreachable(
                    f"the NATS server at {urls} does not let {name!r} in: {self._refusal}. Is its credential of this "
                    "fleet, and still good? See `outvote fleet list`"
                ) from None
            why = str(error) or (str(self._last) if self._last else "") or f"nothing within {patience:g} s"
            raise EngineUnreachable(f"no NATS answers at {urls}: {why}; start one, or name another") from None
        except asyncio.CancelledError:
            await cancel([opening])
            raise
        self._opened, self._said_trouble = True, False
        event(_log, logging.INFO, "engine_connected")
        if access is not None:
            self._renewing = asyncio.create_task(self._renew(access, files))

    async def settle(self) -> None:
        """Wait until the engine has processed what was sent. Without an answer a reconnection follows, which sends it
        again."""
        with suppress(TimeoutError, NatsError):
            await self._flush_pending(force_flush=True)  # nats-py's ping would overtake unsent data
            await self.flush()

    async def check(self) -> None:
        """Ping after a request timed out, and reconnect if the ping times out too. nats-py alone would notice a dead
        connection only after half a minute."""
        if not self.is_connected or self._checking:
            return
        self._checking = True
        try:
            await self.flush(timeout=ANSWER)  # type: ignore[arg-type]  # a part of a second is good
        except TimeoutError:
            if self.is_connected:
                self._let_go()  # a clean close would wait for an answer, too
                await self.force_reconnect()
        except NatsError:
            pass  # nats-py has noticed the loss meanwhile
        finally:
            self._checking = False

    async def end(self) -> None:
        """Close the connection and do not reconnect."""
        self._ending = True
        if self._renewing is not None:
            await cancel([self._renewing])
        await self.close()

    async def close(self) -> None:
        """Close, and ignore a `CancelledError` that is not ours. Closing cancels a running reconnection, which may be
        waiting for the old connection to close; nats-py awaits the same and would raise its cancellation."""
        try:
            await super().close()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise

    async def _renew(self, access: Access, files: WatchedFiles) -> None:
        """Reconnect whenever the credential was renewed. Unsent data is sent afterwards. Runs until cancelled."""

        def load() -> None:
            self.credential_expires = access.credential().expires
            self.options["tls"] = access.context()

        while True:
            await asyncio.sleep(CREDENTIAL_LOOK)
            try:
                if not files.reload(load):
                    continue
            except InvalidConfiguration as error:
                event(_log, logging.ERROR, "credential_not_renewed", error=str(error))
                continue
            self.options["reconnect_time_wait"] = WAIT
            await self.force_reconnect()
            event(_log, logging.INFO, "credential_renewed")

    async def _lost(self) -> None:
        if self._opened and not self._ending:
            event(_log, logging.WARNING, "engine_disconnected")

    async def _trouble(self, error: Exception) -> None:
        """Log connection errors. Errors of single requests are raised where they were made. Called at every attempt."""
        self._last = error
        text = str(error).lower()
        if PERMISSIONS_ERR in text:  # connected, but not permitted to do this
            self.forbidden += 1
            if count := self._often.note("forbidden", time.monotonic()):
                event(_log, logging.ERROR, "engine_forbids", count=count, do="is the credential that of another?")
        elif any(refusal in text for refusal in _REFUSALS):
            self._refusal = error
            self.options["reconnect_time_wait"] = min(2 * self.options["reconnect_time_wait"], LONGEST_WAIT)
            if not self._said_trouble:
                event(_log, logging.ERROR, "credential_refused", error=str(error), do="see outvote fleet list")
            self._said_trouble = True
        elif not self._opened and not self._said_trouble:
            self._said_trouble = True
            event(_log, logging.WARNING, "engine_unreachable", error=type(error).__qualname__)

    def note_false_news(self) -> None:
        """Log a forged message on a news subject: it is no record of the log, so a client of the fleet is malicious."""
        if count := self._often.note("false news", time.monotonic()):
            do = "a site of this fleet pretends to be the log: find it"
            event(_log, logging.ERROR, "false_news", count=count, do=do)

    def _let_go(self) -> None:
        """Abort a connection that is dead or was never answered: nats-py would leave its socket open."""
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()

    async def _connect_to_server(self, s: Srv) -> None:
        self._let_go()
        if self._access is None:
            await super()._connect_to_server(s)
            return
        s.last_attempt = time.monotonic()
        self._transport = _TlsTransport(self.ssl_context, self._access.called)
        await self._transport.connect(s.uri, DEFAULT_BUFFER_SIZE, self.options["connect_timeout"])

    async def _process_err(self, err_msg: str) -> None:
        """Handle an error sent by the engine. It then closes the connection, except after a permissions error."""
        if PERMISSIONS_ERR in err_msg.lower():
            await super()._process_err(err_msg)
            return
        error = NatsError("nats: " + err_msg.strip().strip("'"))
        self._err = error
        await self._error_cb(error)
        await self._process_op_err(error)


class _TlsTransport(TcpTransport):
    """TLS from the first byte: otherwise an attacker on the path could claim that TLS is not offered.

    nats-py would begin in plaintext and upgrade to TLS, and would wait for ever if that fails.
    """

    def __init__(self, context: ssl.SSLContext, called: str | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._context = context
        self._called = called

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        self._io_reader, self._io_writer = await asyncio.wait_for(
            asyncio.open_connection(
                uri.hostname,
                uri.port,
                limit=buffer_size,
                ssl=self._context,
                server_hostname=self._called or uri.hostname,
                ssl_shutdown_timeout=_SHUTDOWN,
            ),
            connect_timeout,
        )

    async def connect_tls(self, *_: object) -> None:
        """Do nothing: TLS is established by `connect`."""

    async def wait_closed(self) -> None:
        """Wait for the close; errors while closing do not matter."""
        with suppress(OSError):
            await super().wait_closed()  # type: ignore[no-untyped-call]
