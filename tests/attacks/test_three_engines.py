"""A site with its own credential, and three engines that keep the log three times: what one of its messages can do."""

from __future__ import annotations

import asyncio
import json
from itertools import permutations
from pathlib import Path
from typing import Final

from nats.errors import Error as NatsError

from faults.kits import Kits
from helpers.bare_clients import guest
from helpers.processes import DEADLINE
from outvote.access.engine_access import Access
from outvote.engine.nats_log import STREAM, NatsLog
from outvote.engine.process import find_binary
from outvote.log.records import DOWN, UP

STOPPED_SINCE: Final = (2, 14)
"""The first NATS whose replicated streams stop for good at a message that expects another id. 2.12.8 is the last before
it, and 2.15.1 the last that was tried."""
STOPS: Final = "critical write error: last msgid mismatch"
"""What a node logs then."""


def test_a_message_that_expects_another_id_stops_the_log_of_three_engines_from_nats_2_14_on(tmp_path: Path) -> None:
    """A fault of NATS, that an edge can use. When this fails, NATS has changed, and docs/security.md must say so."""
    kits = Kits(tmp_path, 3, ["mallory"])
    cluster = kits.cluster()
    kits.lead(cluster, {(near, far): cluster.nodes[far].route_port for near, far in permutations(cluster.nodes, 2)})
    urls = [f"tls://localhost:{node.port}" for node in cluster.nodes.values()]
    own = Access(kits.folder / "edges/mallory/edge.creds", kits.folder / "ca.pem")

    def stopped() -> bool:
        return all(STOPS in node.log.read_text(errors="replace") for node in cluster.nodes.values())

    async def run() -> bool:
        async with await NatsLog.connect(
            ",".join(urls), name="server", patience=DEADLINE, access=kits.access()
        ) as link:
            await link.prepare()
            await link.append(f"{DOWN}.shop.task", b"{}")
        async with guest(urls[0], "mallory", own) as mallory:
            headers = {"Nats-Expected-Last-Msg-Id": "other"}
            answer = await mallory.client.request(f"{UP}.mallory.shop.life.0", b"", headers=headers, timeout=DEADLINE)
            assert json.loads(answer.data)["error"]["description"] == "wrong last msg ID: "
            async with asyncio.timeout(DEADLINE):
                while not stopped():
                    try:
                        stored = await mallory.client.request(f"{UP}.mallory.shop.life.1", b"", timeout=1)
                    except (TimeoutError, NatsError):  # nobody answers: it has stopped, or has no leader just now
                        await asyncio.sleep(0.05)
                        continue
                    assert json.loads(stored.data) == {"stream": STREAM, "seq": 2}
                    return False
        return True

    with cluster:
        found = asyncio.run(run())
    version = find_binary().version
    assert found == (tuple(int(part) for part in version.split(".")[:2]) >= STOPPED_SINCE), version
