"""`outvote edge`: one site's sidecar, which decides and learns for the applications beside it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outvote.cli import serving

if TYPE_CHECKING:
    from outvote.network.edge_store import EdgeStore

_log = logging.getLogger(__name__)

EXAMPLE = """\
examples:
  outvote edge --nats nats://10.0.0.5:4322 paris
  outvote edge --nats nats://10.0.0.5:4322 lima --store /var/lib/outvote/lima.db --port 8701
"""


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser(
        "edge",
        help="decide and learn at one site",
        description="Run the edge of one site: applications ask it over HTTP which variant to show, and tell it what "
        "came of it. It needs no network to do so; what it has learnt is sent when the engine can be reached.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="the site's name: letters, digits, '_' or '-'")
    parser.add_argument(
        "--nats", type=serving.nats_url, required=True, metavar="URL", help="where the fleet's engine is"
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
    serving.add_ready_json(parser)
    serving.add_log_options(parser)
    parser.set_defaults(run=run, when_interrupted="its state was saved")


def run(args: argparse.Namespace) -> int:
    import uvloop

    from outvote.network.cors import check_origin
    from outvote.network.edge_store import EdgeStore, StoreFailed, StoreLocked
    from outvote.network.http_server import ListenError
    from outvote.network.logs import written
    from outvote.network.records import check_name

    name = check_name("an edge's name", args.name)
    serving.check_ready_json(args)
    for origin in args.allow_origin:
        check_origin(origin)
    try:
        with (
            written(args.log, args.log_level),
            EdgeStore(Path(args.store or f"outvote-edge-{name}.db")) as store,
        ):
            return serving.until_told(work(args, store), loop=uvloop.new_event_loop)
    except (StoreLocked, StoreFailed, ListenError) as error:
        raise serving.Failed(str(error)) from None


async def work(args: argparse.Namespace, store: EdgeStore) -> None:
    from outvote.network import edge_api
    from outvote.network.edge import Edge
    from outvote.network.logs import event
    from outvote.network.together import first_of

    edge = Edge(args.name, store, clock=time.monotonic)
    bound = asyncio.Event()

    def tell(port: int) -> None:
        bound.set()
        url = serving.http_url(args.host, port)
        record = {
            "edge": edge.name,
            "urls": {"edge": url, "nats": args.nats},
            "pids": {"edge": os.getpid()},
            "store": str(store.path),
            "tasks": sorted(edge.tasks),
        }
        lines = [
            f"applications: {url}",
            f"engine:       {args.nats}, connected in the background",
            f"state:        {store.path}, {len(edge.tasks)} tasks known; Ctrl-C stops",
        ]
        serving.tell_ready(args, record, "\n".join(lines))
        event(_log, logging.INFO, "started", **serving.versions(), edge=edge.name, api=url, tasks=len(edge.tasks))

    async def stay_connected() -> None:
        """Only once the API has its port: an edge that cannot serve does not join the fleet."""
        await bound.wait()
        await edge.start(args.nats)
        await edge.watch()

    try:
        await first_of(
            edge_api.serve(edge, args.host, args.port, bound=tell, origins=args.allow_origin), stay_connected()
        )
    finally:
        await edge.stop()
        if bound.is_set():
            event(_log, logging.INFO, "stopped", edge=edge.name)
