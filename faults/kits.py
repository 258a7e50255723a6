"""A fleet with credentials and TLS, as `outvote fleet` makes it: what engines, servers, edges and operators hold."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from faults.cluster import NOWHERE, Cluster, free_pairs
from faults.traffic import Door
from outvote.access.engine_access import Access
from outvote.fleet import members
from outvote.fleet.addresses import Address
from outvote.fleet.folder import Fleet as FleetFolder
from outvote.fleet.kit_files import CLUSTER_OFFSET
from outvote.fleet.making import Plan, make_fleet


class Kits:
    """The operator's folder, with all kits."""

    def __init__(self, place: Path, nodes: int, edges: Sequence[str]) -> None:
        self.folder = place / "outvote-fleet"
        self._engines = place / "engines"
        self._store = str(self._engines / "store")
        self._ports = free_pairs(nodes, CLUSTER_OFFSET)
        self._cluster: Cluster | None = None
        self._routes: Mapping[tuple[str, str], int] = {}
        engines = [Address("localhost", port) for port in self._ports]
        make_fleet(self.folder, Plan(engines, Address("localhost", 8600), store=self._store), now=time.time())
        members.add_edges(FleetFolder(self.folder), list(edges))

    def cluster(self) -> Cluster:
        """Its engines, which `lead` must tell how to reach each other."""
        found = Cluster(self._engines, len(self._ports))
        kits = FleetFolder(self.folder).look().engine_kits
        for node, kit, port in zip(found.nodes.values(), kits, self._ports, strict=True):
            node.port, node.route_port = port, port + CLUSTER_OFFSET
            node.store = self._engines / f"store-{node.name}"
            # Not the kit's own file: `outvote fleet` writes that anew, and an engine has a copy.
            node.configuration = self.folder / kit / "nats-here.conf"
        return found

    def lead(self, cluster: Cluster, routes: Mapping[tuple[str, str], int]) -> None:
        """Each node reaches the others by these ports."""
        self._cluster, self._routes = cluster, routes
        for name in cluster.nodes:
            self.hand_out(name)

    def hand_out(self, name: str) -> None:
        """The kit of a node as it is today: at first, and when the node has lost all that it had."""
        assert self._cluster is not None
        node = self._cluster.nodes[name]
        text = node.configuration.with_name("nats.conf").read_text().replace(self._store, str(node.store))
        for far in self._cluster.nodes.values():
            if far is not node:
                text = text.replace(f"@localhost:{far.route_port}", f"@localhost:{self._routes[name, far.name]}")
        text = text.replace("no_advertise: true", f'no_advertise: true\n  advertise: "{NOWHERE}"')
        node.configuration.write_text(text + f'\nhttp: "127.0.0.1:{node.http_port}"\n')

    def options(self, edge: str | None) -> list[str]:
        """Of the command that starts an edge; None is a server."""
        return ["--kit", str(self.folder / ("server" if edge is None else f"edges/{edge}"))]

    def door(self, port: int) -> Door:
        """Of a server: over HTTPS, with the operator's token."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        return Door(port, context=context, token=(self.folder / "operator/token").read_text().strip())

    def turn_to(self, server: Door) -> None:
        """The one that `outvote fleet` asks from now on."""
        with FleetFolder(self.folder).change() as draft:
            draft.set(server=f"localhost:{server.port}")

    def access(self) -> Access:
        """The auditor's, who may read the log."""
        return Access(self.folder / "server/server.creds", self.folder / "ca.pem")
