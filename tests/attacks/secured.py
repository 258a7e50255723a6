"""A fleet with credentials, certificates and tokens, as real processes: what attackers meet.

`honest` is a site that takes part, `mallory` one whose credential an attacker has.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
from contextlib import AbstractAsyncContextManager, ExitStack
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from helpers.bare_clients import Guest, guest
from helpers.operating import TALLY, VOTES
from helpers.processes import DEADLINE, OUTVOTE, Running, commands, free_port, until
from outvote.access.engine_access import Access

SHOP: dict[str, Any] = {**TALLY, "variants": ["red", "green", "blue"], "sites": 9, "reward_window": 1}
SECRETS = re.compile(r"\bS[OAU][A-Z2-7]{56}\b|outvote-[A-Za-z0-9_-]{43}|-----BEGIN (?:EC |RSA )?PRIVATE KEY-----")
"""Seeds of NATS' keys, tokens, keys of certificates."""
REFUSED = "Violation|authentication|authorization|revoked|expired"
"""How NATS logs what it refuses."""


class Secured:
    """One fleet for all attacks of a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fleet = folder / "outvote-fleet"
        engine, server = free_port(), free_port()
        self.nats = f"tls://127.0.0.1:{engine}"
        self.command("init", "--engine", f"127.0.0.1:{engine}", "--server", f"127.0.0.1:{server}")
        self.command("add", "honest", "mallory", "carol")
        self.server_log, self.edge_log = folder / "server.log", folder / "honest.log"
        with ExitStack() as stack:
            self.start = stack.enter_context(commands(folder))
            own = ["--store", "log", "--engine-port", str(engine), "--port", str(server), "--log", "json"]
            self.server = self.start("server", "--kit", str(self.kit("server")), *own, log=self.server_log)
            self.url = self.server.url("server")
            self.token = (self.fleet / "operator" / "token").read_text().strip()
            self.operator = stack.enter_context(self.client(self.token))
            for task in (SHOP, VOTES):
                self.operator.post("/v1/tasks", json=task).raise_for_status()
            own = ["--store", "honest.db", "--port", "0", "--log", "json"]
            self.honest = self.start("edge", "--kit", str(self.kit("honest")), *own, log=self.edge_log)
            self.application = stack.enter_context(httpx.Client(base_url=self.honest.url("edge"), trust_env=False))
            until(lambda: len(self.application.get("/v1/tasks").json()["tasks"]) == 2, "the edge has its tasks")
            self.learn()  # one tally of 3 for each arm
            until(lambda: self.counts()[0]["messages"]["up"] == 3, "the honest site's messages are counted: all works")
            self._stack = stack.pop_all()

    def close(self) -> None:
        self._stack.close()

    # ---- what there is

    def command(self, *arguments: str) -> str:
        """`outvote fleet`, as people use it."""
        done = subprocess.run(
            [*OUTVOTE, "fleet", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=DEADLINE
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kit(self, name: str) -> Path:
        return self.fleet / name if name in ("server", "operator") else self.fleet / "edges" / name

    def client(self, token: str | None) -> httpx.Client:
        """Somebody who talks to the server over HTTPS."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, verify=self.trust(), trust_env=False, timeout=DEADLINE)

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.fleet / "ca.pem"))

    def task_id(self, name: str = "shop") -> str:
        return str(self.operator.get(f"/v1/tasks/{name}").json()["id"])

    def counts(self) -> list[Any]:
        """All that counts of every task: not how much was refused."""
        found = []
        for task in self.operator.get("/v1/tasks").json()["tasks"]:
            told = self.operator.get(f"/v1/tasks/{task['id']}").json()
            for how_much_was_tried in ("refused", "site_count"):
                told.pop(how_much_was_tried)
            told["sites"] = [each for each in told["sites"] if each["site"] == "honest"]
            found.append(told)
        return found

    def learn(self) -> None:
        """The honest site has nine visitors, who like nothing."""
        for _ in range(9):
            decided = self.application.post("/v1/tasks/shop/decide").json()
            body = {"ticket": decided["ticket"], "reward": 0}
            assert self.application.post("/v1/tasks/shop/reward", json=body).status_code == 204

    def speak_of(self, task: str) -> None:
        """Something that all edges hear is said after what was said before, and the honest site has heard it: a kill
        switch, there and back."""
        for change, killed in (("kill", True), ("revive", False)):
            self.operator.post(f"/v1/tasks/{task}/{change}").raise_for_status()
            until(lambda state=killed: self.application.get(f"/v1/tasks/{task}").json()["killed"] is state, change)  # type: ignore[misc]

    def messages(self, edge: str, task: str = "shop") -> int:
        """How many of a site's messages the log has."""
        edges = self.operator.get(f"/v1/tasks/{task}").json()["sites"]
        return sum(each["last_sequence"] + 1 for each in edges if each["site"] == edge)

    @cached_property
    def secrets(self) -> set[str]:
        """Every secret that there is in the fleet's folder."""
        found: set[str] = set()
        for path in self.fleet.rglob("*"):
            if path.is_file():
                found.update(SECRETS.findall(path.read_text(errors="replace")))
        return {each for each in found if not each.startswith("-----")}

    def unknown(self) -> float:
        """Records that the server has read and that belong to no task."""
        found = re.search(r"^outvote_unknown_records_total (\S+)$", self.operator.get("/metrics").text, re.MULTILINE)
        assert found is not None
        return float(found[1])

    # ---- logs

    def engine_lines(self) -> list[str]:
        """What the engine logged of what it refused."""
        lines = (self.folder / "log" / "engine.log").read_text(errors="replace").splitlines()
        return [line for line in lines if re.search(REFUSED, line, re.IGNORECASE)]

    def events(self, name: str, log: Path | None = None) -> list[dict[str, Any]]:
        """What the server, or the process with that log, has logged under a name."""
        lines = (log or self.server_log).read_text().splitlines()
        return [told for line in lines if (told := json.loads(line))["event"] == name]

    def is_told(self, name: str, log: Path | None = None, *, reason: str | None = None) -> bool:
        """Whether something that requesters can cause is in a log: at most one line a minute, however often it was."""
        told = [each for each in self.events(name, log) if reason is None or each["reason"] == reason]
        times = [datetime.fromisoformat(each["time"]) for each in told]
        assert all(later - earlier > timedelta(seconds=59) for earlier, later in pairwise(times)), times
        return bool(told)

    # ---- attackers

    def intruder(self, name: str = "mallory", *, creds: Path | None = None) -> AbstractAsyncContextManager[Guest]:
        """Somebody with an edge's credential, and any program."""
        return guest(self.nats, name, Access(creds or self.kit(name) / "edge.creds", self.fleet / "ca.pem"))


def running(process: Running) -> bool:
    return process.process.poll() is None
