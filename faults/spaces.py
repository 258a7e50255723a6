"""Network namespaces, one for each node, edge and server, on a bridge of their own; packet filters part them. Needs
root. Nothing here reaches beyond the bridge."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

_NETWORK: Final = 0x40000000  # CLONE_NEWNET of Linux


def why_not() -> str | None:
    """Why there can be no namespaces here; None if there can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    missing = [tool for tool in ("ip", "iptables") if shutil.which(tool) is None]
    if missing:
        return f"there is no {' and no '.join(missing)}: install iproute2 and iptables"
    name = f"outvote-try-{os.getpid()}"
    tried = [["ip", "netns", "add", name], ["ip", "netns", "exec", name, "iptables", "-L", "-n"]]
    try:
        for command in tried:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                return f"`{' '.join(command)}` fails: {done.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return None


def may_mount() -> bool:
    """Whether small disks can be mounted, to be filled."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


class Spaces:
    """Namespaces by name, each with an address; `with` removes them. `number`, 0 to 99, keeps several sets apart."""

    def __init__(self, names: list[str], number: int) -> None:
        self._tag = f"ov{os.getpid() % 100_000}x{number % 100}"
        self._net = f"10.{77 + number % 100}.{os.getpid() % 250}"
        self._first = names
        self._changing = threading.Lock()
        self._over = False
        self.gateway = f"{self._net}.1"
        """This side, as all of them reach it."""
        self.spaces: dict[str, str] = {}
        self.hosts: dict[str, str] = {}

    def __enter__(self) -> Spaces:
        try:
            _ip("link", "add", self._tag, "type", "bridge")
            _ip("addr", "add", f"{self.gateway}/24", "dev", self._tag)
            _ip("link", "set", self._tag, "up")
            for name in self._first:
                self.add(name)
        except BaseException:
            self.remove()
            raise
        return self

    def add(self, name: str) -> None:
        """One more; none when all were removed meanwhile."""
        with self._changing:
            if not self._over:
                self._add(name)

    def _add(self, name: str) -> None:
        place = len(self.spaces)
        space, host = f"{self._tag}{name}", f"{self._net}.{place + 2}"
        outer, inner = self._outer(place), f"in{place}"
        self.spaces[name], self.hosts[name] = space, host
        _ip("netns", "add", space)
        _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
        _ip("link", "set", outer, "master", self._tag, "up")
        _ip("-n", space, "addr", "add", f"{host}/24", "dev", inner)
        _ip("-n", space, "link", "set", inner, "up")
        _ip("-n", space, "link", "set", "lo", "up")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def _outer(self, place: int) -> str:
        """This end of the cable to a namespace; a name has at most 15 letters."""
        return f"{self._tag}-{place}"[-15:]

    def remove(self) -> None:
        with self._changing:
            self._over = True
            for place, space in enumerate(self.spaces.values()):
                # By itself a cable goes only with the last connection at its other end, which may be a minute later.
                for command in (("link", "del", self._outer(place)), ("netns", "del", space)):
                    with suppress(subprocess.CalledProcessError):
                        _ip(*command)
            with suppress(subprocess.CalledProcessError):
                _ip("link", "del", self._tag)

    def prefix(self, name: str) -> list[str]:
        """What starts a command there."""
        return ["ip", "netns", "exec", self.spaces[name]]

    def deafen(self, name: str, *others: str) -> None:
        """It hears nothing more of these; they may hear it."""
        for other in others:
            self._filter(name, "-A", "INPUT", "-s", self.hosts[other], "-j", "DROP")

    def heal(self, name: str) -> None:
        """It hears all."""
        self._filter(name, "-F", "INPUT")

    def part(self, name: str, port: int, directions: Iterable[str]) -> None:
        """Packets between it and one port of this side are lost: what it says (`up`), what it hears (`down`)."""
        for each in directions:
            self._filter(name, "-A", *self._rule(port, each))

    def join(self, name: str, port: int, directions: Iterable[str]) -> None:
        """What `part` did is put right."""
        for each in directions:
            self._filter(name, "-D", *self._rule(port, each))

    def _rule(self, port: int, direction: str) -> list[str]:
        chain = ["OUTPUT", "-d"] if direction == "up" else ["INPUT", "-s"]
        side = "--dport" if direction == "up" else "--sport"
        return [*chain, self.gateway, "-p", "tcp", side, str(port), "-j", "DROP"]

    def path(self, name: str) -> Path:
        """What a process enters it by."""
        return Path("/run/netns") / self.spaces[name]

    def _filter(self, name: str, *arguments: str) -> None:
        command = ["ip", "netns", "exec", self.spaces[name], "iptables", "-w", *arguments]
        subprocess.run(command, check=True, capture_output=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def enter(path: str) -> None:
    """This process is in that namespace from now on. (Python 3.11 has no `os.setns`.)"""
    with open(path, "rb") as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), _NETWORK):
            raise OSError(ctypes.get_errno(), f"cannot enter {path}")
