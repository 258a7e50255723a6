"""`outvote server`: the synchronization server with its engine and the API for operators."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import logging
import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from outvote.cli import security, serving
from outvote.cli.options import add_json, tell
from outvote.core.errors import InvalidConfiguration
from outvote.presenters.formats import plural

if TYPE_CHECKING:
    import socket

    from outvote.access.kits import MemberKit
    from outvote.cli.security import Security
    from outvote.dashboard.app import Dashboard
    from outvote.engine.process import Engine

EXAMPLE = """\
examples:
  outvote server --store /var/lib/outvote
  outvote server --kit outvote-fleet/server --store /var/lib/outvote
  outvote server --nats nats://127.0.0.1:4322 --port 8601
"""
_log = logging.getLogger(__name__)

DEFAULT_STORE = "outvote-server"
PATIENCE = 10.0
"""Seconds in which an engine that was started elsewhere must answer."""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "server",
        help="count what a fleet's sites send, and tell them which arms are out",
        description="Run a synchronization server, with an engine of its own or on one that runs already. Ctrl-C stops "
        "everything; all that was counted stays in the engine's log.",
        epilog=EXAMPLE,
    )
    engine = parser.add_argument_group("engine")
    engine.add_argument("--store", metavar="FOLDER", help=f"where the engine keeps its log ({DEFAULT_STORE})")
    engine.add_argument(
        "--engine-port", type=serving.port, help="where edges connect to the engine; 0: a free one (4322)"
    )
    engine.add_argument(
        "--engine-host",
        metavar="ADDRESS",
        help="the address that the engine listens on (as --host)",
    )
    engine.add_argument(
        "--nats",
        type=serving.nats_url,
        metavar="URL",
        help="start no engine: use the NATS server at URL, or one of several separated by commas",
    )
    api = parser.add_argument_group("operators")
    api.add_argument(
        "--host",
        help="address of the API for operators (127.0.0.1; all addresses with the kit of a fleet of several machines)",
    )
    api.add_argument("--port", type=serving.port, default=8600, help="its port; 0 takes a free one (8600)")
    security.add_options(parser)
    add_json(parser, serving.READY_JSON)
    serving.add_log_options(parser)
    parser.set_defaults(run=run, when_interrupted="everything was stopped in order")


def run(args: argparse.Namespace) -> int:
    import uvloop

    from outvote.observability.logs import written
    from outvote.web.listener import listen

    setup = read_setup(args)
    # The port is taken before anything else is started.
    with written(args.log, args.log_level), listen(setup.host, args.port) as listening:
        return serving.until_told(work(args, setup, listening), loop=uvloop.new_event_loop)


@dataclass(frozen=True)
class Setup:
    """What the options and the kit come to."""

    host: str
    """Of the API for operators."""
    security: Security
    urls: str | None
    """Of the engines that run already; None with one of our own."""
    engine: Engine | None


def read_setup(args: argparse.Namespace) -> Setup:
    """All that can be refused is refused here, before anything is started."""
    from outvote.access.kits import read_server_kit

    kit = None if args.kit is None else read_server_kit(Path(args.kit))
    secured = security.security(args, kit)
    here = "0.0.0.0" if kit is not None and security.reaches_beyond(kit.nats) else "127.0.0.1"
    host = args.host or here
    security.check_listening("the API for operators listens at", host, secured)
    urls = args.nats or (",".join(kit.nats) if kit is not None and kit.engine is None else None)
    if urls is None:
        if secured.access is not None and kit is not None:  # it is on this machine, and may be certified by name only
            secured = replace(secured, access=replace(secured.access, called=urlsplit(kit.nats[0]).hostname))
        return Setup(host, secured, None, own_engine(args, kit, args.engine_host or here))
    if (args.store, args.engine_port, args.engine_host) != (None, None, None):
        given = "--nats" if args.nats else "the kit"
        problem = f"{given} names an engine that runs already: leave out --store, --engine-port, --engine-host"
        raise InvalidConfiguration(problem, code="conflict")
    security.check_connecting(urls, secured)
    return Setup(host, secured, urls, None)


def own_engine(args: argparse.Namespace, kit: MemberKit | None, host: str) -> Engine:
    from outvote.engine.process import DEFAULT_PORT, Engine
    from outvote.web.exposure import check_exposed

    known = None if kit is None else kit.engine
    check_exposed("the engine listens at", host, secured=known is not None, insecure=args.insecure)
    port = DEFAULT_PORT if args.engine_port is None else args.engine_port
    return Engine(Path(args.store or DEFAULT_STORE), host=host, port=port, kit=known)


async def work(args: argparse.Namespace, setup: Setup, listening: socket.socket) -> None:
    """Engine, server, API: started in this order, stopped in the other. If the engine dies, all of it ends."""
    from outvote.concurrency import run_until_first_exit
    from outvote.server.own_engine import while_certificates_last, while_it_runs

    engine = setup.engine
    if engine is None:
        await serve(args, setup, str(setup.urls), listening)
        return
    try:
        engine.launch()  # here and not in another thread, whose end would be the engine's
        await asyncio.to_thread(engine.wait_ready)
        served = serve(args, setup, engine.url, listening)
        await run_until_first_exit(served, while_it_runs(engine), while_certificates_last(engine))
    finally:
        await asyncio.to_thread(engine.stop)


def dashboard() -> type[Dashboard] | None:
    """The pages, where what they need is installed."""
    if importlib.util.find_spec("jinja2") is None:
        return None
    from outvote.dashboard.app import Dashboard

    return Dashboard


async def serve(args: argparse.Namespace, setup: Setup, url: str, listening: socket.socket) -> None:
    from outvote.concurrency import run_until_first_exit
    from outvote.engine.nats_log import NatsLog
    from outvote.observability.logs import event
    from outvote.server.admin.api import make_app
    from outvote.server.own_engine import while_it_stores
    from outvote.server.sync_server import SyncServer
    from outvote.web.exposure import own_hosts
    from outvote.web.listener import run_app

    engine, secured = setup.engine, setup.security
    server = SyncServer(await NatsLog.connect(url, name="server", patience=PATIENCE, access=secured.access))
    async with contextlib.AsyncExitStack() as at_the_end:
        at_the_end.callback(event, _log, logging.INFO, "stopped")
        at_the_end.push_async_callback(server.stop)
        await server.start()
        pages = dashboard()
        app = make_app(
            server,
            pages=pages,
            tokens=secured.tokens,
            hosts=None if secured.tokens is not None else own_hosts(setup.host),
        )
        if pages is not None:
            at_the_end.push_async_callback(app.state.pages.close)
        port = listening.getsockname()[1]
        admin = serving.http_url(setup.host, port, secured=secured.certificate is not None)
        record = {
            "urls": {"server": admin, "nats": url},
            "pids": {"server": os.getpid(), "engine": None if engine is None else engine.pid},
            "store": None if engine is None else str(engine.folder),
            "tasks": len(server.state.tasks),
        }
        tell(args, record, ready(args, setup, admin, url, tasks=len(server.state.tasks)))
        own = {} if engine is None else {"engine": url, "nats": engine.version}
        event(_log, logging.INFO, "started", **serving.versions(), api=admin, **own, tasks=len(server.state.tasks))
        works = [
            run_app(
                app,
                listening,
                closing=server.monitor.changes.close,
                certificate=secured.certificate,
                watch=app.state.watch,
            ),
            server.watch(),
            server.look_around(),
        ]
        if engine is not None:
            works.append(while_it_stores(server, engine))
        await run_until_first_exit(*works)


def _beside(kit: str, other: str) -> str:
    """Another kit of the fleet, as a shell reads it, if it is on this machine; FOLDER if not."""
    return next((shlex.quote(str(folder)) for folder in sorted(Path(kit).parent.glob(other))), "FOLDER")


def ready(args: argparse.Namespace, setup: Setup, admin: str, url: str, *, tasks: int) -> str:
    """What a person is told, with what to do next."""
    engine = setup.engine
    kit = f"--kit {_beside(args.kit, 'operator')}" if args.kit else f"--server {admin}"
    joins = f"--kit {_beside(args.kit, 'edges/*')}" if args.kit else f"--nats {url} NAME"
    has_pages = dashboard() is not None
    return "\n".join(
        [
            f"operators: {admin}   (outvote task {kit} list)",
            f"dashboard: {admin}" if has_pages else "dashboard: not installed (pip install 'outvote[dashboard]')",
            f"edges:     {url}   (outvote edge {joins})",
            "engine:    runs elsewhere"
            if engine is None
            else f"engine:    process {engine.pid}, log in {engine.folder}",
            f"{plural(tasks, 'task')} in the log; Ctrl-C stops",
        ]
    )
