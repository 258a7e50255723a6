"""Runs a command with those confinements of a systemd unit that a process can put on itself: the filter of system
calls, the families of addresses, no memory that is both written and executed, no new privileges.

What needs mounts, users or control groups is left out. Usage: python confined.py UNIT COMMAND …
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

PR_SET_NO_NEW_PRIVS = 38  # of Linux's prctl
WRITE, EXECUTE, SHARED_EXECUTE = 2, 4, 0o100000  # of memory
ALLOW = 0x7FFF0000  # of libseccomp
REFUSE = 0x00050000
EQUAL, MASKED_EQUAL = 4, 7


class Compare(ctypes.Structure):
    """`struct scmp_arg_cmp`."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


def settings(unit: Path, name: str) -> list[str]:
    """All values of a setting, in their order."""
    lines = unit.read_text(encoding="utf-8").splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith(f"{name}=")]


def groups() -> dict[str, list[str]]:
    """Systemd's names for groups of system calls, with what each has: calls and other groups."""
    told = subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True).stdout
    found: dict[str, list[str]] = {}
    members: list[str] = []
    for line in re.sub(r"\x1b\[[0-9;]*m", "", told).splitlines():
        if line.startswith("@"):
            members = found[line.strip()] = []
        elif line.startswith(" ") and not line.strip().startswith("#"):
            members.append(line.strip())
    return found


def allowed_calls(unit: Path) -> set[str]:
    """The first line allows; one that begins with ~ takes away. What every program needs is always allowed."""
    known = groups()

    def calls(name: str) -> set[str]:
        return set().union(*(calls(each) for each in known[name])) if name.startswith("@") else {name}

    allowed = calls("@default")
    for value in settings(unit, "SystemCallFilter"):
        named = set().union(*(calls(name) for name in value.lstrip("~").split()))
        allowed = allowed - named if value.startswith("~") else allowed | named
    return allowed


def limits(unit: Path) -> dict[str, list[Compare]]:
    """Calls that are allowed with some arguments only, and with which: one of these."""
    found = {"socket": [Compare(0, EQUAL, family, 0) for family in families_of(unit)]}
    if settings(unit, "MemoryDenyWriteExecute") == ["yes"]:  # as systemd does it
        both = WRITE | EXECUTE
        found["mmap"] = [Compare(2, MASKED_EQUAL, both, one) for one in (0, WRITE, EXECUTE)]
        found["mprotect"] = found["pkey_mprotect"] = [Compare(2, MASKED_EQUAL, EXECUTE, 0)]
        found["shmat"] = [Compare(2, MASKED_EQUAL, SHARED_EXECUTE, 0)]
    return found


def confine(unit: Path) -> None:
    """From now on, for this process and all that it starts."""
    limited = limits(unit)
    calls = allowed_calls(unit)
    if settings(unit, "NoNewPrivileges") == ["yes"]:
        ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    library = ctypes.CDLL("libseccomp.so.2")  # what systemd is built with
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_rule_add_array.argtypes = (
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p
    )  # fmt: skip
    library.seccomp_load.argtypes = (ctypes.c_void_p,)
    rules = library.seccomp_init(REFUSE | errno.EPERM)
    for call in calls:
        number = library.seccomp_syscall_resolve_name(call.encode())
        if number < 0:  # of other processors
            continue
        if call in limited:
            for one in limited[call]:
                library.seccomp_rule_add_array(rules, ALLOW, number, 1, (Compare * 1)(one))
        else:
            library.seccomp_rule_add_array(rules, ALLOW, number, 0, None)
    if library.seccomp_load(rules):
        raise OSError(f"the filter of {unit.name} could not be loaded")


def families_of(unit: Path) -> list[int]:
    [value] = settings(unit, "RestrictAddressFamilies")
    return [int(getattr(socket, family)) for family in value.split()]


if __name__ == "__main__":
    confine(Path(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
