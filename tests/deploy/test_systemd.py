"""The units of systemd: systemd itself reads and rates them, and what they start runs with their confinements on.

No systemd runs here. What a process can put on itself (`confined.py`) is put on and tried out; what needs mounts, users
or control groups is read by systemd-analyze only.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from deploy import confined
from helpers import processes
from helpers.processes import OUTVOTE, Start, request, until
from outvote.cli.main import make_parser
from outvote.engine.process import find_binary
from outvote.fleet.folder import Fleet

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
SERVER, EDGE, NATS = (FOLDER / f"{name}.service" for name in ("outvote-server", "outvote-edge@", "nats-server"))
EXPOSURE = 15
"""Tenths: the most that `systemd-analyze security` may say of a unit, 100 being no protection at all."""
CONFINED = [sys.executable, str(Path(confined.__file__))]

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there: this system has no systemd"
)


def each_unit() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


# ---- read by systemd


@needs_systemd
@each_unit()
def test_systemd_reads_each_unit_without_a_word(unit: Path, tmp_path: Path) -> None:
    """systemd also looks whether programs are there: those of this environment stand in for those of /opt."""
    text = unit.read_text(encoding="utf-8")
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", text, flags=re.MULTILINE)
    (tmp_path / unit.name).write_text(text, encoding="utf-8")
    read = analyze("verify", tmp_path / unit.name)
    assert (read.returncode, read.stdout + read.stderr) == (0, "")
    (tmp_path / unit.name).write_text(text.replace("[Service]", "[Service]\nProtectSystems=strict"), encoding="utf-8")
    assert "ProtectSystems" in analyze("verify", tmp_path / unit.name).stderr


@needs_systemd
@each_unit()
def test_the_exposure_of_each_unit_stays_low(unit: Path) -> None:
    rated = analyze("security", "--offline=true", f"--threshold={EXPOSURE}", unit)
    assert rated.returncode == 0, rated.stdout


@needs_systemd
def test_users_of_the_units_are_made() -> None:
    users = FOLDER / "outvote.sysusers"
    made = set(re.findall(r"^u (\S+)", users.read_text(encoding="utf-8"), re.MULTILINE))
    assert made == {name for unit in UNITS for name in confined.settings(unit, "User")}
    assert len(made) == len(UNITS)
    if shutil.which("systemd-sysusers"):
        told = subprocess.run(["systemd-sysusers", "--dry-run", users], capture_output=True, text=True, check=False)
        assert (told.returncode, re.search(r"Failed|Unknown|Invalid|Bad", told.stderr)) == (0, None)


# ---- what they start


def arguments(unit: Path) -> list[str]:
    """Of ExecStart, as systemd hands them over for an instance paris, with no options of the operator's."""
    [command] = confined.settings(unit, "ExecStart")
    return shlex.split(command.replace("%i", "paris").replace("$OPTIONS", ""))


def test_units_start_what_there_is() -> None:
    for unit, command in ((SERVER, "server"), (EDGE, "edge")):
        program, *given = arguments(unit)
        assert program == "/opt/outvote/bin/outvote"
        args = make_parser().parse_args(given)
        assert args.command == command
        assert args.log == "json"
        assert args.kit.startswith("/etc/outvote/")
    [state] = confined.settings(EDGE, "StateDirectory")
    assert Path(make_parser().parse_args(arguments(EDGE)[1:]).store).parent == Path("/var/lib") / state


def test_bad_usage_is_not_tried_again_and_all_else_for_ever() -> None:
    for unit in (SERVER, EDGE):
        assert confined.settings(unit, "RestartPreventExitStatus") == ["2"]
    for unit in UNITS:
        assert confined.settings(unit, "Restart") == ["on-failure"]
        assert confined.settings(unit, "StartLimitIntervalSec") == ["0"]
    code = subprocess.run([*OUTVOTE, *arguments(SERVER)[1:]], capture_output=True, check=False, timeout=60).returncode
    assert code == 2  # there is no kit here


@needs_systemd
def test_a_server_with_its_engine_and_an_edge_run_confined(
    monkeypatch: pytest.MonkeyPatch, small_fleet: Fleet, start: Start
) -> None:
    """With kits, so with TLS, at all addresses: a task that the operator creates reaches the edge."""
    state, folder = small_fleet.look(), small_fleet.folder
    monkeypatch.setattr(processes, "OUTVOTE", [*CONFINED, str(SERVER), *OUTVOTE])
    ports = ("--port", str(state.server_address.port), "--engine-port", str(state.engine_addresses[0].port))
    everywhere = ("--host", "0.0.0.0", "--engine-host", "0.0.0.0")
    server = start("server", "--kit", str(folder / "server"), *ports, *everywhere, "--store", "log")
    monkeypatch.setattr(processes, "OUTVOTE", [*CONFINED, str(EDGE), *OUTVOTE])
    edge = start("edge", "--kit", str(folder / "edges" / "paris"), "--port", "0", "--store", "edge.db")
    task = {"name": "shop", "variants": ["red", "green"], "sites": 1, "reward_window": 60, "delta": 0.05}
    created = httpx.post(
        server.url("server") + "/v1/tasks",
        json=task,
        headers={"Authorization": f"Bearer {(folder / 'operator' / 'token').read_text().strip()}"},
        verify=ssl.create_default_context(cafile=str(folder / "ca.pem")),
        trust_env=False,
    )
    assert created.status_code == 201, created.text
    here = edge.url("edge") + "/v1/tasks"
    until(lambda: bool(request(here)["tasks"]), "the edge has joined")
    assert request(f"{here}/shop/decide", method="POST")["variant"] in ("red", "green")
    for process in (edge, server):
        assert "Seccomp:\t2" in Path(f"/proc/{process.process.pid}/status").read_text()
        assert process.end(signal.SIGTERM)[0] == 0


@needs_systemd
def test_an_engine_of_ones_own_runs_confined(tmp_path: Path) -> None:
    """At all addresses: for those it asks which the machine has, by AF_NETLINK."""
    conf = tmp_path / "nats.conf"
    conf.write_text(
        'listen: "0.0.0.0:-1"\njetstream {store_dir: "store", sync_interval: always}\nports_file_dir: "."\n'
    )
    command = [*CONFINED, str(NATS), str(find_binary().path), "--config", str(conf)]
    log = tmp_path / "log"
    with log.open("wb") as file:
        engine = subprocess.Popen(command, cwd=tmp_path, stdout=file, stderr=file)
    try:
        until(lambda: "Server is ready" in log.read_text(), "the engine is ready")
        until(lambda: bool(list(tmp_path.glob("*.ports"))), "it has told its ports")
    finally:
        engine.terminate()
        assert engine.wait(processes.DEADLINE) in (0, 1)  # NATS's own code for SIGTERM
    assert not re.search(r"\[(ERR|FTL)\]", log.read_text()), log.read_text()


@needs_systemd
def test_what_the_planner_compiles_with_runs_confined_but_not_without_memory_that_is_executed(tmp_path: Path) -> None:
    """Why the server's unit has no MemoryDenyWriteExecute, and the others have."""
    compiles = "import numba; print(numba.njit(lambda number: number + 1)(1))"

    def run(unit: Path) -> subprocess.CompletedProcess[str]:
        command = [*CONFINED, str(unit), sys.executable, "-c", compiles]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert confined.settings(SERVER, "MemoryDenyWriteExecute") == []
    assert run(SERVER).stdout == "2\n"
    stricter = tmp_path / SERVER.name
    stricter.write_text(SERVER.read_text(encoding="utf-8") + "MemoryDenyWriteExecute=yes\n", encoding="utf-8")
    assert "cannot allocate executable memory" in run(stricter).stderr
    for unit in (EDGE, NATS):
        assert confined.settings(unit, "MemoryDenyWriteExecute") == ["yes"]


@needs_systemd
def test_confinement_confines() -> None:
    """What the tests above put on does refuse something."""
    tries = (
        "import os, socket\n"
        "for attempt in (lambda: socket.socket(socket.AF_PACKET), lambda: os.chroot('/')):\n"
        "    try: attempt()\n"
        "    except PermissionError: print('refused')\n"
        "socket.socket(socket.AF_INET).close()\n"
    )
    for unit in UNITS:
        told = subprocess.run([*CONFINED, str(unit), sys.executable, "-c", tries], capture_output=True, text=True)
        assert told.stdout.split() == ["refused", "refused"], told.stderr
