"""Names with a meaning in subjects, paths and files are refused wherever a name enters."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import quote

import pytest
from nats.errors import Error as NatsError

from attacks.conftest import Attack
from attacks.secured import SHOP, Secured
from attacks.test_at_the_engine import tally
from helpers.processes import DEADLINE, until
from outvote.cli.main import main
from outvote.engine.nats_log import STREAM
from outvote.log.records import UP

NAMES = ["*", ">", "a.b", "../etc", "a/b", "a b", "a\nb", "a\r\nX: y", "", "é", "x" * 65]
RESERVED = ["server", "SERVER", "system", "operator", "engine", "engine-1", "Engine-12"]


def test_names(secured: Secured, attack: Attack, capsys: pytest.CaptureFixture[str]) -> None:
    create = ["task", "create", "--kit", str(secured.kit("operator")), "--variants", "2", "--sites", "2"]
    there = sorted((secured.fleet / "edges").iterdir())
    for name in NAMES:
        for command in (
            ["fleet", "add", "--folder", str(secured.fleet), "--", name],
            ["edge", "--nats", "nats://127.0.0.1:1", "--", name],
            [*create, f"--name={name}"],
        ):
            assert main(command) == 2, command
            assert "Traceback" not in capsys.readouterr().err
        assert secured.operator.post("/v1/tasks", json={**SHOP, "name": name}).status_code == 422
        path = f"/v1/tasks/{quote(name, safe='')}"
        assert secured.operator.post(f"{path}/stop").status_code in (404, 422)
        assert secured.operator.post(f"/v1/sites/{quote(name, safe='')}/discount").status_code in (404, 422)
        assert secured.application.post(f"{path}/decide").status_code in (404, 422)
    for name in RESERVED:
        assert main(["fleet", "add", "--folder", str(secured.fleet), "--", name]) == 2
    assert sorted((secured.fleet / "edges").iterdir()) == there
    attack.refused(
        f"names for sites and tasks: {', '.join(ascii(each) for each in NAMES if len(each) < 20)}, 65 letters; and the "
        f"fleet's own names, like {RESERVED[0]!r}",
        by="an operator, or an application",
        happened="refused where they enter: exit code 2, or 404 and 422 over HTTP",
        logged="nothing: whoever asked is told",
    )


@pytest.mark.parametrize("subject", [f"{UP}.mallory.*.life.0", f"{UP}.mallory.>", f"{UP}.mallory.a b.c.0"])
def test_subjects_with_wildcards(secured: Secured, attack: Attack, subject: str) -> None:
    async def run() -> None:
        async with secured.intruder() as mallory:
            mallory.client._skip_subject_validation = True
            with suppress(NatsError, TimeoutError):
                await mallory.client.jetstream(timeout=1).publish(subject, tally(), stream=STREAM)
        async with secured.intruder() as mallory:  # the engine may have ended the connection
            await mallory.client.jetstream(timeout=DEADLINE).publish(
                f"{UP}.mallory.t.after.{place}", b"", stream=STREAM
            )

    unknown = secured.unknown()
    place = int(unknown)
    asyncio.run(run())
    until(lambda: secured.unknown() > unknown, "it was read")
    attack.refused(
        f"publish on the subject `{subject}`",
        by="a site with its own credential",
        happened="not taken, or stored and of no task: it has no effect",
        logged="nothing; the metric `outvote_unknown_records_total`",
    )
