"""`outvote server`: the synchronization server with its engine and the API for operators."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.cli import serving
from outvote.cli.options import number
from outvote.core.errors import InvalidTask

if TYPE_CHECKING:
    import socket

    from outvote.dashboard.app import Dashboard
    from outvote.network.engine import Engine, Restart
    from outvote.network.server import SyncServer

EXAMPLE = """\
examples:
  outvote server --store /var/lib/outvote
  outvote server --nats nats://10.0.0.5:4322 --port 8601
  outvote server --bit-budget 1e6 --json
"""
_log = logging.getLogger(__name__)

DEFAULT_STORE = "outvote-server"
PATIENCE = 10.0
"""Seconds in which an engine that was started elsewhere must answer."""
STORE_PATIENCE = 20.0
"""Seconds that our own engine may answer and yet store nothing."""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "server",
        help="count what a fleet's sites send, and tell them which arms are out",
        description="Run a synchronization server, with an engine of its own or on one that runs already. Ctrl-C stops "
        "everything; all that was counted stays in the engine's log.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    engine = parser.add_argument_group("engine")
    engine.add_argument("--store", metavar="FOLDER", help=f"where the engine keeps its log ({DEFAULT_STORE})")
    engine.add_argument(
        "--engine-port", type=serving.port, help="where edges connect to the engine; 0: a free one (4322)"
    )
    engine.add_argument(
        "--nats", type=serving.nats_url, metavar="URL", help="start no engine: use the NATS server at URL"
    )
    api = parser.add_argument_group("operators")
    api.add_argument("--host", default="127.0.0.1", help="address of the API for operators (127.0.0.1)")
    api.add_argument("--port", type=serving.port, default=8600, help="its port; 0 takes a free one (8600)")
    api.add_argument(
        "--bit-budget", type=number, metavar="BITS", help="the most bits that running tasks may still send (no limit)"
    )
    serving.add_ready_json(parser)
    serving.add_log_options(parser)
    parser.set_defaults(run=run, when_interrupted="everything was stopped in order")


def run(args: argparse.Namespace) -> int:
    import uvloop

    from outvote.network.engine import DEFAULT_PORT, Engine, EngineError
    from outvote.network.follower import LogReplaced
    from outvote.network.http_server import ListenError, listen
    from outvote.network.link import LinkError
    from outvote.network.logs import written

    if args.nats is not None and (args.store is not None or args.engine_port is not None):
        raise InvalidTask("--nats uses an engine that runs already: leave out --store and --engine-port")
    budget = args.bit_budget
    if budget is not None and (not isinstance(budget, int) or budget < 1):
        raise InvalidTask(f"--bit-budget must be a whole number of at least 1, got {budget!r}")
    serving.check_ready_json(args)
    engine = None
    if args.nats is None:
        port = DEFAULT_PORT if args.engine_port is None else args.engine_port
        engine = Engine(Path(args.store or DEFAULT_STORE), port=port)
    try:
        with (
            written(args.log, args.log_level),
            listen(args.host, args.port) as listening,  # taken before anything else is started
        ):
            return serving.until_told(work(args, engine, listening), loop=uvloop.new_event_loop)
    except (EngineError, LinkError, ListenError, LogReplaced) as error:
        raise serving.Failed(str(error)) from None


async def work(args: argparse.Namespace, engine: Engine | None, listening: socket.socket) -> None:
    """Engine, server, API: started in this order, stopped in the other."""
    if engine is None:
        await serve(args, args.nats, None, None, listening)
        return
    starting = asyncio.create_task(asyncio.to_thread(engine.start))
    try:
        try:
            await asyncio.shield(starting)
        finally:
            await asyncio.wait([starting])
        restarts = Restarts()
        engine.supervise(restarts.note)
        await serve(args, engine.url, engine, restarts, listening)
    finally:
        await asyncio.to_thread(engine.stop)


def dashboard() -> type[Dashboard] | None:
    """The pages, where their parts are installed."""
    if any(importlib.util.find_spec(each) is None for each in ("jinja2", "plotly")):
        return None
    from outvote.dashboard.app import Dashboard

    return Dashboard


async def serve(
    args: argparse.Namespace, url: str, engine: Engine | None, restarts: Restarts | None, listening: socket.socket
) -> None:
    from outvote.network.admin_api import make_app
    from outvote.network.http_server import run_app
    from outvote.network.link import Link
    from outvote.network.logs import event
    from outvote.network.operated import OperatedServer
    from outvote.network.together import first_of

    server = OperatedServer(await Link.connect(url, name="server", patience=PATIENCE))
    async with contextlib.AsyncExitStack() as at_the_end:
        at_the_end.callback(event, _log, logging.INFO, "stopped")
        at_the_end.push_async_callback(server.stop)
        await server.start()
        counted = None if restarts is None else lambda: restarts.count
        pages = dashboard()
        app = make_app(server, bit_budget=args.bit_budget, engine_restarts=counted, pages=pages)
        if pages is not None:
            at_the_end.push_async_callback(app.state.pages.close)
        admin = serving.http_url(args.host, listening.getsockname()[1])
        record = {
            "urls": {"server": admin, "nats": url},
            "pids": {"server": os.getpid(), "engine": None if engine is None else engine.pid},
            "store": None if engine is None else str(engine.folder),
            "bit_budget": args.bit_budget,
            "tasks": len(server.fold.tasks),
        }
        lines = [
            f"operators: {admin}   (outvote task --server {admin} list)",
            f"dashboard: {admin}"
            if pages is not None
            else "dashboard: not installed (pip install 'outvote[dashboard]')",
            f"edges:     {url}   (outvote edge --nats {url} NAME)",
            "engine:    runs elsewhere"
            if engine is None
            else f"engine:    process {engine.pid}, log in {engine.folder}",
            f"{len(server.fold.tasks)} tasks in the log; Ctrl-C stops",
        ]
        serving.tell_ready(args, record, "\n".join(lines))
        own = {} if engine is None else {"engine": url, "nats": engine.version}
        event(_log, logging.INFO, "started", **serving.versions(), api=admin, **own, tasks=len(server.fold.tasks))
        works = [
            run_app(app, listening, closing=server.changes.close),
            server.watch(),
            server.look_around(),
            *([] if engine is None else [while_it_stores(server, engine)]),
        ]
        await first_of(*works)


async def while_it_stores(server: SyncServer, engine: Engine) -> None:
    """Until our own engine answers and stores nothing, as after its disk was full: it must be started again."""
    from outvote.network.engine import EngineError

    loop = asyncio.get_running_loop()
    well = loop.time()
    while loop.time() - well < STORE_PATIENCE:
        await asyncio.sleep(STORE_PATIENCE / 10)
        if server.ready or not server.has_read:
            well = loop.time()
    raise EngineError(
        f"the engine has stored nothing for {STORE_PATIENCE:g} s: is the disk of {engine.folder} full? Its log there "
        "says more. Free some space and start the server again: what was acknowledged is kept, and edges send the rest"
    )


class Restarts:
    """How often the engine had to be started again; the supervisor's thread counts, others look."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, restart: Restart) -> None:
        from outvote.network.logs import event

        told = {"exit_code": restart.exit_code, "attempt": restart.attempt}
        if restart.error is None:
            self.count += 1
            event(_log, logging.WARNING, "engine_restarted", **told)
        else:  # the rest of the error are lines of the engine's own log
            event(_log, logging.ERROR, "engine_restart_failed", **told, error=str(restart.error).partition("\n")[0])
