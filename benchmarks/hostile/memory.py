"""What memory a process has, and has had at most since somebody began to look. Linux only."""

from __future__ import annotations

from pathlib import Path


def resident_mib(pid: int) -> float:
    return _status(pid, "VmRSS")


def peak_mib(pid: int) -> float:
    """The most since `start_peak`."""
    return _status(pid, "VmHWM")


def start_peak(pid: int) -> None:
    """Forget the peak until now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status(pid: int, key: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024
