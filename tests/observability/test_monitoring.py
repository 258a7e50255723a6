"""What Prometheus, its alerts and Grafana are given: pages of real processes, rules that were tried out, a dashboard
whose every query can be read and names what is served.

promtool comes with Debian's package `prometheus`; what needs it is skipped without it.
"""

from __future__ import annotations

import json
import random
import re
import runpy
import shutil
import subprocess
import urllib.error
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from helpers.processes import an_edge, commands, request, sent_all, until

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "deploy" / "monitoring"
ALERTS = (MONITORING / "alerts.yml").read_text(encoding="utf-8")
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "grafana-dashboard.json").read_text(encoding="utf-8"))
NAME = re.compile(r"\b(?:outvote|process|python)_\w+")
SELECTOR = re.compile(r"\b((?:outvote|process|python)_\w+)\{([^}]*)\}")
OF_THE_TARGET = {"job", "instance"}
"""Labels that Prometheus adds."""
VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$task": ".*", "$site": ".*"}

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not there: it is in the package prometheus of Debian"
)


def promtool(*arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *map(str, arguments)], input=given, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """`/metrics` of a server with an engine, of one without and of an edge: after events and an elimination."""
    with commands(tmp_path_factory.mktemp("fleet")) as start:
        server = start("server", "--port", "0", "--engine-port", "0", "--store", "log")
        second = start("server", "--nats", server.url("nats"), "--port", "0")
        edge = an_edge(start, server, "ams")
        tasks, here = server.url("server") + "/v1/tasks", edge.url("edge") + "/v1/tasks"
        votes = {"name": "votes", "protocol": "dme", "variants": 4, "sites": 3, "epsilon": 0.5}
        shop = {"name": "shop", "protocol": "tally", "variants": ["red", "green"], "sites": 1, "epsilon": 0}
        request(tasks, {**votes, "reward_window": 60, "delta": 0.05})
        request(tasks, {**shop, "reward_window": 1, "delta": 0.3})
        until(lambda: len(request(here)["tasks"]) == 2, "the edge has joined")
        rng = random.Random(1)

        def finished() -> bool:
            for _ in range(20):
                decision = request(f"{here}/shop/decide", method="POST")
                reward = int(rng.random() < {"red": 0.1, "green": 0.9}[decision["variant"]])
                request(f"{here}/shop/reward", {"ticket": decision["ticket"], "reward": reward})
            return bool(request(f"{here}/shop")["finished"])

        until(finished, "a winner")
        sent_all(edge)
        for place in (0, 1):
            with pytest.raises(urllib.error.HTTPError):
                request(f"{here}/shop/reward", {"ticket": f"another_.0.1.{place}.9995000000000", "reward": 1})
        kept = request(f"{here}/shop")["messages_kept"]
        for each in (server, second):
            shown = f"{each.url('server')}/v1/tasks/shop"
            until(lambda at=shown: request(at)["messages"]["up"] == kept)  # type: ignore[misc]
        with pytest.raises(urllib.error.HTTPError):
            request(f"{here}/no/decide", method="POST")
        at = {"server": server.url("server"), "second": second.url("server"), "edge": edge.url("edge")}
        yield {name: httpx.get(f"{url}/metrics", trust_env=False).text for name, url in at.items()}


@pytest.fixture(scope="module")
def served(pages: dict[str, str]) -> dict[str, set[str]]:
    """All names, of families and of samples, with the labels that they have."""
    found: dict[str, set[str]] = {}
    for page in pages.values():
        for name in re.findall(r"^# TYPE (\S+) ", page, re.MULTILINE):
            found.setdefault(name, set())
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def queries() -> list[str]:
    """All of the dashboard, with something in place of its variables."""
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    for variable, value in VARIABLES.items():
        found = [query.replace(variable, value) for query in found]
    return found


def not_served(texts: Iterable[str], served: dict[str, set[str]]) -> set[str]:
    """Names of metrics, and of labels of one, that no page has."""
    wrong = set()
    for text in texts:
        wrong |= {name for name in NAME.findall(text) if name not in served}
        for name, selectors in SELECTOR.findall(text):
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selectors)) - OF_THE_TARGET
            wrong |= {f"{name}: {label}" for label in labels - served.get(name, set()) if served.get(name)}
    return wrong


# ---- pages


@needs_promtool
@pytest.mark.parametrize("page", ["server", "second", "edge"])
def test_pages_follow_the_conventions_of_prometheus(pages: dict[str, str], page: str) -> None:
    checked = promtool("check", "metrics", given=pages[page])
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_what_is_counted_is_what_happened(pages: dict[str, str]) -> None:
    def value(page: str, name: str, **labels: str) -> float:
        [found] = [
            sample.value
            for family in text_string_to_metric_families(pages[page])
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]
        return float(found)

    for page in ("server", "second"):
        assert value(page, "outvote_engine_connected") == value(page, "outvote_log_writable") == 1
        assert value(page, "outvote_log_records") == value(page, "outvote_log_last_record")
        assert value(page, "outvote_log_records_behind") == 0
        assert value(page, "outvote_task_winner_found", task="shop") == 1
        assert value(page, "outvote_task_running", task="votes") == 1
        assert value(page, "outvote_task_variants_remaining", task="votes") == 4
        assert value(page, "outvote_task_bound_bytes", task="votes") == 4.5  # 2·N·(K−1)·⌈log₂K⌉ bits
        last = value(page, "outvote_task_last_message_timestamp_seconds", task="shop")
        assert last > value(page, "outvote_task_created_timestamp_seconds", task="shop")
        assert value(page, "outvote_sites", state="alive") == 1
        assert value(page, "outvote_site_last_sign_timestamp_seconds", site="ams") > 0
    assert value("server", "outvote_http_requests_total", route="/v1/tasks", method="POST", status="201") == 2
    looks = value("server", "outvote_http_requests_total", route="/v1/tasks/{task}", method="GET", status="200")
    labels = {"route": "/v1/tasks/{task}", "method": "GET"}
    assert value("server", "outvote_http_request_duration_seconds_count", **labels) == looks > 0
    decisions = value("edge", "outvote_edge_decisions_total")
    assert decisions == value("edge", "outvote_edge_rewards_total") > 0
    counted = value("edge", "outvote_edge_task_decisions_total", task="shop")
    assert decisions >= counted >= value("edge", "outvote_edge_task_rewarded_decisions_total", task="shop") > 0
    assert value("edge", "outvote_edge_task_uncounted_decisions_total", task="shop") == 0
    ignored = {"task": "shop", "variant": "green"}
    assert value("edge", "outvote_edge_task_ignored_rewards_total", **ignored, reason="late") == 0
    assert value("edge", "outvote_edge_task_ignored_rewards_total", **ignored, reason="unknown") == 2
    # One reward at most was under way when the variants were out.
    assert value("edge", "outvote_edge_task_ignored_rewards_total", **ignored, reason="out") <= 1
    assert value("edge", "outvote_edge_refused_requests_total", status="404") == 1
    assert value("edge", "outvote_edge_refused_requests_total", status="409") == 2
    kept = value("edge", "outvote_edge_messages_kept")
    assert kept == value("server", "outvote_task_messages_total", task="shop", direction="up") > 0
    assert value("edge", "outvote_edge_messages_waiting") == 0
    assert value("edge", "outvote_edge_save_seconds_count") > 0
    assert value("edge", "outvote_edge_save_seconds_sum") > 0
    assert value("edge", "outvote_edge_last_catch_up_timestamp_seconds") > 0
    assert value("edge", "outvote_edge_info", site="ams") == 1


# ---- alerts


@needs_promtool
@pytest.mark.parametrize(
    "check",
    [("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml"), ("check", "config", "prometheus.yml")],
    ids=" ".join,
)
def test_rules_and_configuration_are_right(check: tuple[str, str, str], tmp_path: Path) -> None:
    """In a folder that also has what an operator puts there."""
    for file in MONITORING.glob("*.yml"):
        shutil.copy(file, tmp_path)
    for name in ("outvote.token", "ca.pem"):
        (tmp_path / name).write_text("here it is only looked whether it is there")
    done = promtool(*check[:2], tmp_path / check[2])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


def test_each_alert_says_what_to_do_is_tried_out_and_is_in_the_documents() -> None:
    tried = (MONITORING / "alerts_test.yml").read_text(encoding="utf-8")
    document = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", document, re.MULTILINE)
    _, *alerts = re.split(r"^      - alert: ", ALERTS, flags=re.MULTILINE)
    assert len(alerts) > 15
    for alert in alerts:
        name = alert.split()[0]
        for part in (r"for: \d+[mhd]", r"severity: (warning|critical)", r"summary: \S", r"description: \S"):
            assert re.search(part, alert), (name, part)
        said = " ".join(alert.split())
        section = re.search(r'See "([^"]+)" in docs/operations\.md', said)
        assert section, name
        assert section[1] in headings, name
        assert f'alertname="{name}"' in tried
        assert f"`{name}`" in document
    listed = set(re.findall(r"^\| `(Outvote\w+)`", document, re.MULTILINE))
    assert listed == {alert.split()[0] for alert in alerts}


# ---- the dashboard


def test_the_dashboard_is_what_its_program_writes() -> None:
    written = runpy.run_path(str(MONITORING / "make_dashboard.py"))["text"]()
    assert (MONITORING / "grafana-dashboard.json").read_text(encoding="utf-8") == written, (
        "run python deploy/monitoring/make_dashboard.py"
    )


@needs_promtool
def test_every_query_of_the_dashboard_can_be_read(tmp_path: Path) -> None:
    rules = [{"record": f"panel:query:{number}", "expr": query} for number, query in enumerate(queries())]
    assert len(rules) > 40
    assert not [rule for rule in rules if "$" in rule["expr"]]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = promtool("check", "rules", tmp_path / "rules.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_dashboard_and_alerts_name_what_is_served(served: dict[str, set[str]]) -> None:
    definitions = [each["definition"] for each in DASHBOARD["templating"]["list"]]
    tried = (MONITORING / "alerts_test.yml").read_text(encoding="utf-8")
    assert not_served([*queries(), *definitions, ALERTS, tried], served) == set()
    assert not_served(['sum(outvote_edge{state="alive"})'], served) == {"outvote_edge"}
    assert not_served(['sum(outvote_sites{status="alive"})'], served) == {"outvote_sites: status"}
