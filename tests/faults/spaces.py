"""Network namespaces, one for each engine node, on a bridge of their own; packet filters part them. Needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from types import TracebackType


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
        self.spaces = {name: f"{self._tag}{name}" for name in names}
        self.hosts = {name: f"{self._net}.{place}" for place, name in enumerate(names, 2)}

    def __enter__(self) -> Spaces:
        try:
            _ip("link", "add", self._tag, "type", "bridge")
            _ip("addr", "add", f"{self._net}.1/24", "dev", self._tag)
            _ip("link", "set", self._tag, "up")
            for place, (name, space) in enumerate(self.spaces.items()):
                outer, inner = f"{self._tag}{place}"[-15:], f"in{place}"
                _ip("netns", "add", space)
                _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
                _ip("link", "set", outer, "master", self._tag, "up")
                _ip("-n", space, "addr", "add", f"{self.hosts[name]}/24", "dev", inner)
                _ip("-n", space, "link", "set", inner, "up")
                _ip("-n", space, "link", "set", "lo", "up")
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        for space in self.spaces.values():
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", space)
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

    def _filter(self, name: str, *arguments: str) -> None:
        command = ["ip", "netns", "exec", self.spaces[name], "iptables", "-w", *arguments]
        subprocess.run(command, check=True, capture_output=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
