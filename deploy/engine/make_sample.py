"""Writes the sample configuration of three engines beside this file, from the same settings as `outvote fleet init`.

Words in capitals stand for what is a fleet's own. Run `python deploy/engine/make_sample.py` after a change of settings.
"""

from __future__ import annotations

from pathlib import Path, PurePath

from outvote.access.kits import Certificate, EngineKit
from outvote.engine import config as engine_conf

HOSTS = ("engine-1.example.org", "engine-2.example.org", "engine-3.example.org")
STORE = PurePath("/var/lib/nats")
TRUST = EngineKit(
    operator="OPERATOR_CLAIMS",
    system_account="SYSTEM_KEY",
    accounts={"ACCOUNT_KEY": "ACCOUNT_CLAIMS", "SYSTEM_KEY": "SYSTEM_CLAIMS"},
    certificate=Certificate(Path("engine.pem"), Path("engine.key")),
    ca=Path("ca.pem"),
)


def text(number: int) -> str:
    """Of the first, second or third engine."""
    cluster = engine_conf.Cluster(
        "fleet", "0.0.0.0:6322", [f"{host}:6322" for host in HOSTS], password="CLUSTER_SECRET"
    )
    settings = engine_conf.settings(
        name=f"fleet-engine-{number}",
        listen="0.0.0.0:4322",
        store=STORE,
        accounts=STORE / "accounts",
        trust=TRUST,
        cluster=cluster,
    )
    return engine_conf.text(
        settings,
        f"A sample: engine {number} of three, as `outvote fleet init` with three --engine configures it.",
        "Words in capitals stand for what is a fleet's own; do not fill them in by hand, let it write its own file. It",
        "has several accounts: resolver_preload has a line for each.",
        "Start it in its kit: nats-server --config nats.conf (2.12.8; not 2.14, 2.15: see docs/security.md).",
    )


if __name__ == "__main__":
    for each in (1, 2, 3):
        Path(__file__).with_name(f"engine-{each}.conf").write_text(text(each), encoding="utf-8")
