"""The files of each kit, by name; `outvote.network.kits` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import msgspec

from outvote.fleet.addresses import Address
from outvote.fleet.certificates import Signed
from outvote.network import engine_conf
from outvote.network.kits import Accounts, KitFile
from outvote.network.tokens import Token, tokens_file

if TYPE_CHECKING:
    from outvote.fleet.folder import Draft

CLUSTER_OFFSET: Final = 2000
"""From the port for clients to the one where engines meet, as with NATS's own: 4222 and 6222."""
CLUSTER_SECRET: Final = "keys/cluster.secret"


def engine_kit(draft: Draft, kit: str, certificate: Signed) -> dict[str, bytes]:
    """What an engine must know to let the fleet in: no key that could sign anybody in."""
    return {
        f"{kit}/kit.json": _kit(KitFile("engine")),
        f"{kit}/ca.pem": draft.read("ca.pem"),
        f"{kit}/engine.pem": certificate.chain,
        f"{kit}/engine.key": certificate.key,
        f"{kit}/operator.jwt": draft.operator_claims().encode() + b"\n",
        **engine_claims(draft, kit),
    }


def engine_claims(draft: Draft, kit: str) -> dict[str, bytes]:
    """Those files of an engine's kit that change when somebody is revoked."""
    state = draft.state
    files = {f"{kit}/accounts.json": _json(Accounts(state.system, draft.all_claims()))}
    if kit in state.engine_kits:
        files[f"{kit}/nats.conf"] = nats_conf(draft, kit).encode()
    return files


def nats_conf(draft: Draft, kit: str) -> str:
    """The configuration of an engine of your own. Names of files are relative to its kit, which it is started in."""
    state = draft.state
    number = state.engine_kits.index(kit)
    address = state.engine_addresses[number]
    trust = engine_conf.Trust(
        draft.operator_claims(),
        state.system,
        draft.all_claims(),
        PurePath("engine.pem"),
        PurePath("engine.key"),
        PurePath("ca.pem"),
    )
    cluster = None
    if len(state.engines) > 1:
        meeting = [Address(each.host, each.port + CLUSTER_OFFSET) for each in state.engine_addresses]
        cluster = engine_conf.Cluster(
            state.name,
            str(meeting[number].listen),
            [str(each) for each in meeting],
            draft.read(CLUSTER_SECRET).decode("ascii").strip(),
        )
    chosen = engine_conf.settings(
        name=f"{state.name}-{kit}",
        listen=str(address.listen),
        store=PurePath(state.store),
        accounts=PurePath(state.store) / "accounts",
        trust=trust,
        cluster=cluster,
    )
    return engine_conf.readable(
        chosen,
        "Written by outvote fleet: changes are lost.",
        "Start it in this folder: nats-server --config nats.conf (2.12.8; not 2.14, 2.15: see docs/security.md).",
    )


def server_kit(draft: Draft, credential: bytes, certificate: Signed, tokens: Sequence[Token]) -> dict[str, bytes]:
    return {
        "server/kit.json": _kit(KitFile("server", nats=draft.state.nats)),
        "server/ca.pem": draft.read("ca.pem"),
        "server/server.creds": credential,
        "server/tokens.json": tokens_file(tokens),
        **https("server", certificate),
    }


def operator_kit(draft: Draft, secret: str) -> dict[str, bytes]:
    return {
        "operator/kit.json": _kit(KitFile("operator", server=f"https://{draft.state.server_address}")),
        "operator/ca.pem": draft.read("ca.pem"),
        "operator/token": secret.encode("ascii") + b"\n",
    }


def edge_kit(draft: Draft, name: str, credential: bytes) -> dict[str, bytes]:
    return {
        f"edges/{name}/kit.json": _kit(KitFile("edge", edge=name, nats=draft.state.nats)),
        f"edges/{name}/ca.pem": draft.read("ca.pem"),
        f"edges/{name}/edge.creds": credential,
    }


def https(kit: str, certificate: Signed) -> dict[str, bytes]:
    """A kit whose owner is asked over HTTPS."""
    return {f"{kit}/https.pem": certificate.chain, f"{kit}/https.key": certificate.key}


def _kit(content: KitFile) -> bytes:
    return _json(content)


def _json(content: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"
