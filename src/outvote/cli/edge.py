"""`outvote edge`: one site's sidecar, which decides and learns for the applications beside it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.cli import security, serving
from outvote.cli.options import add_json, tell
from outvote.core.errors import InvalidConfiguration
from outvote.presenters.formats import plural

if TYPE_CHECKING:
    from outvote.access.kits import MemberKit
    from outvote.cli.security import Security
    from outvote.edge.store import EdgeStore

_log = logging.getLogger(__name__)

EXAMPLE = """\
examples:
  outvote edge --kit outvote-fleet/edges/paris
  outvote edge --kit /etc/outvote/kit --store /var/lib/outvote/lima.db --port 8701
  outvote edge --nats nats://127.0.0.1:4322 paris
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "edge",
        help="decide and learn at one site",
        description="Run the edge of one site: applications ask it over HTTP which variant to show, and tell it what "
        "came of it. It needs no network to do so; what it has learnt is sent when the engine can be reached.",
        epilog=EXAMPLE,
    )
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="the site's name: letters, digits, '_' or '-' (the kit's)"
    )
    parser.add_argument(
        "--nats",
        type=serving.nats_url,
        metavar="URL",
        help="where the fleet's engine is; several separated by commas (the kit's)",
    )
    parser.add_argument("--store", metavar="FILE", help="where the edge keeps its state (outvote-edge-NAME.db)")
    parser.add_argument("--host", default="127.0.0.1", help="address of the API for applications (127.0.0.1)")
    parser.add_argument("--port", type=serving.port, default=8700, help="its port; 0 takes a free one (8700)")
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let web pages of this origin use the API, like https://shop.example; * for all; may be repeated (none)",
    )
    security.add_options(parser)
    add_json(parser, serving.READY_JSON)
    serving.add_log_options(parser)
    parser.set_defaults(run=run, when_interrupted="its state was saved")


def run(args: argparse.Namespace) -> int:
    import uvloop

    from outvote.access.kits import read_edge_kit
    from outvote.edge.cors import check_origin
    from outvote.edge.store import EdgeStore
    from outvote.observability.logs import written

    kit = None if args.kit is None else read_edge_kit(Path(args.kit))
    secured = security.security(args, kit)
    name = edge_name(args, kit, secured)
    urls = args.nats or (kit and ",".join(kit.nats))
    if not urls:
        raise InvalidConfiguration(
            "is needed to find the fleet: give --kit FOLDER, or --nats URL", field="nats", code="missing"
        )
    security.check_connecting(urls, secured)
    security.check_listening("the API for applications listens at", args.host, secured)
    for origin in args.allow_origin:
        check_origin(origin)
    with written(args.log, args.log_level), EdgeStore(Path(args.store or f"outvote-edge-{name}.db")) as store:
        return serving.until_told(work(args, name, urls, secured, store), loop=uvloop.new_event_loop)


def edge_name(args: argparse.Namespace, kit: MemberKit | None, secured: Security) -> str:
    """One name in all places: an engine would let nobody speak for another."""
    from outvote.log.records import check_name

    if args.name is None and kit is None:
        raise InvalidConfiguration("is needed: give NAME, or --kit FOLDER", field="name", code="missing")
    name = check_name("an edge's name", args.name if kit is None or args.name is not None else kit.name)
    if kit is not None and name != kit.name:
        problem = f"must be {kit.name!r}, as in the kit {args.kit!r}, or left out, got {name!r}"
        raise InvalidConfiguration(problem, field="name", code="conflict")
    if secured.access is not None and (owner := secured.access.credential().name) != name:
        raise InvalidConfiguration(f"the credential is that of {owner!r}, and this edge is {name!r}: give it its own")
    return name


async def work(args: argparse.Namespace, name: str, urls: str, secured: Security, store: EdgeStore) -> None:
    from outvote.concurrency import run_until_first_exit
    from outvote.edge import api as edge_api
    from outvote.edge.site import Edge
    from outvote.engine.nats_log import NatsLog
    from outvote.observability.logs import event

    edge = Edge(name, store, clock=time.monotonic)
    bound = asyncio.Event()

    def tell_ready(port: int) -> None:
        bound.set()
        url = serving.http_url(args.host, port, secured=secured.certificate is not None)
        record = {
            "edge": edge.name,
            "urls": {"edge": url, "nats": urls},
            "pids": {"edge": os.getpid()},
            "store": str(store.path),
            "tasks": sorted(edge.tasks),
        }
        lines = [
            f"applications: {url}",
            f"engine:       {urls}, connected in the background",
            f"state:        {store.path}, {plural(len(edge.tasks), 'task')} known; Ctrl-C stops",
        ]
        tell(args, record, "\n".join(lines))
        event(_log, logging.INFO, "started", **serving.versions(), site=edge.name, api=url, tasks=len(edge.tasks))

    async def stay_connected() -> None:
        """Only once the API has its port: an edge that cannot serve does not join the fleet."""
        await bound.wait()
        await edge.start(NatsLog(urls, name=name, access=secured.access))
        await edge.watch()

    try:
        serve = edge_api.serve(
            edge,
            args.host,
            args.port,
            bound=tell_ready,
            origins=args.allow_origin,
            tokens=secured.tokens,
            certificate=secured.certificate,
        )
        await run_until_first_exit(serve, stay_connected())
    finally:
        await edge.stop()
        if bound.is_set():
            event(_log, logging.INFO, "stopped", site=edge.name)
