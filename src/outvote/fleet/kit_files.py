"""The files of each kit, by name, as they follow from `fleet.json` and the keys; `outvote.access.kits` reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from outvote.access.kits import Accounts, Certificate, EngineKit, KitFile
from outvote.access.tokens import json_file, tokens_file
from outvote.engine import config as engine_conf
from outvote.fleet.addresses import Address
from outvote.fleet.draft import ISSUED, Draft
from outvote.fleet.state import Member

CLUSTER_OFFSET: Final = 2000
"""From the port for clients to the one where engines meet, as with NATS's own: 4222 and 6222."""
CLUSTER_SECRET: Final = "keys/cluster.secret"


def central_kits(draft: Draft) -> dict[str, bytes | None]:
    """Of engines, servers and operators."""
    state = draft.state
    engines = dict(zip(state.engine_kits, state.certificates, strict=True))
    if len(engines) == 1:  # the server can start it itself
        engines["server/engine"] = engines["engine"]
    files = _member_kit(draft, "server", state.servers, KitFile("server", nats=state.nats))
    for kit, certificate in engines.items():
        files |= _engine_kit(draft, kit, certificate)
    return files | {
        "operator/kit.json": json_file(KitFile("operator", server=f"https://{state.server_address}")),
        "operator/ca.pem": draft.read("ca.pem"),
        "operator/token": draft.read(f"{ISSUED}/{state.operator_token}.token"),
    }


def edge_kit(draft: Draft, name: str) -> dict[str, bytes | None]:
    kit = KitFile("edge", edge=name, nats=draft.state.nats)
    return _member_kit(draft, f"edges/{name}", draft.state.edges[name], kit)


def _member_kit(draft: Draft, folder: str, member: Member, kit: KitFile) -> dict[str, bytes | None]:
    """A credential; and a certificate and tokens if others may call. None is a file that must not be there."""
    files: dict[str, bytes | None] = {
        "kit.json": json_file(kit),
        "ca.pem": draft.read("ca.pem"),
        f"{kit.kit}.creds": draft.read(f"{ISSUED}/{member.credential.key}.creds"),
        "https.pem": None,
        "https.key": None,
        "tokens.json": None,
    }
    if member.certificate is not None:
        files |= _certificate(draft, "https", member.certificate) | {"tokens.json": tokens_file(member.tokens)}
    return {f"{folder}/{name}": content for name, content in files.items()}


def _engine_kit(draft: Draft, kit: str, certificate: str) -> dict[str, bytes]:
    """What an engine must know to let the fleet in: no key that could sign anybody in."""
    state = draft.state
    files = {
        "kit.json": json_file(KitFile("engine")),
        "ca.pem": draft.read("ca.pem"),
        **_certificate(draft, "engine", certificate),
        "operator.jwt": draft.operator_claims().encode() + b"\n",
        "accounts.json": json_file(Accounts(state.system, draft.all_claims())),
    }
    if kit in state.engine_kits:
        files["nats.conf"] = _nats_conf(draft, kit).encode()
    return {f"{kit}/{name}": content for name, content in files.items()}


def _nats_conf(draft: Draft, kit: str) -> str:
    """The configuration of an engine of your own. Names of files are relative to its kit, which it is started in."""
    state = draft.state
    number = state.engine_kits.index(kit)
    address = state.engine_addresses[number]
    certificate = Certificate(Path("engine.pem"), Path("engine.key"))
    trust = EngineKit(Path("ca.pem"), certificate, draft.operator_claims(), state.system, draft.all_claims())
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
        store=Path(state.store),
        accounts=Path(state.store) / "accounts",
        trust=trust,
        cluster=cluster,
    )
    return engine_conf.text(
        chosen,
        "Written by outvote fleet: changes are lost.",
        "Start it in this folder: nats-server --config nats.conf (2.12.8; not 2.14, 2.15: see docs/security.md).",
    )


def _certificate(draft: Draft, file: str, name: str) -> dict[str, bytes]:
    return {f"{file}.{kind}": draft.read(f"{ISSUED}/{name}.{kind}") for kind in ("pem", "key")}
