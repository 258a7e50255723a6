"""What memory a process has, and has had at most since somebody began to look; and its CPU time. Linux only."""

from __future__ import annotations

import os
from pathlib import Path


def resident_mib(pid: int) -> float:
    return _status(pid, "VmRSS")


def peak_mib(pid: int) -> float:
    """The most since `start_peak`."""
    return _status(pid, "VmHWM")


def start_peak(pid: int) -> None:
    """Forget the peak until now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_seconds(pid: int) -> float:
    """That it has spent since it started, in its own code and in the system's."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sleeps(pid: int) -> bool:
    """Whether it waits for something, rather than for its turn."""
    return _stat(pid)[0] == "S"


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _status(pid: int, key: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024
