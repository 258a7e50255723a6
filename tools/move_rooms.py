"""Move modules to their rooms: files by `git mv`, and every mention of them. Run once, from the root of a clean tree.

The tables `rooms.tsv` (modules of `outvote.network`) and `tests.tsv` (files of `tests`) have a line for each file: the
old path and the new one, without `.py`.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
TEXT = {".py", ".md", ".toml", ".yml", ".yaml", ".cfg", ".json", ".sh", ".html", ".js", ".service", ".conf", ""}
ROOMS = {
    "access": "Who may do what: kits, tokens, certificates and credentials.",
    "edge": "One site: it serves decisions, learns from rewards, and keeps what must not be forgotten.",
    "engine": "NATS, and nothing else knows it: the log on JetStream, its connection, and the process of an own engine.",
    "log": "What everybody agrees on: the records of the one log, and the state that they add up to. Pure.",
    "observability": "What operators see of a process: structured logs and metrics.",
    "server": "The synchronization server.",
    "server/admin": "The operators' API.",
    "web": "What both HTTP listeners share: limits, guards, problems and OpenAPI.",
}


def table(name: str) -> dict[str, str]:
    lines = (HERE / name).read_text().splitlines()
    return dict(line.split("\t") for line in lines if line)


def move(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "mv", str(old), str(new)], check=True)


def main() -> None:
    modules = table("rooms.tsv")
    tests = table("tests.tsv")
    for old, new in modules.items():
        move(Path(f"src/outvote/network/{old}.py"), Path(f"src/outvote/{new}.py"))
    subprocess.run(["git", "rm", "-q", "src/outvote/network/__init__.py"], check=True)
    for room, says in ROOMS.items():
        Path(f"src/outvote/{room}/__init__.py").write_text(f'"""{says}"""\n')
    for old, new in tests.items():
        if Path(f"tests/{old}.py").exists():
            move(Path(f"tests/{old}.py"), Path(f"tests/{new}.py"))
    tracked = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
    for name in tracked:
        path = Path(name)
        if not name or path.suffix not in TEXT or not path.is_file():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        new_text = rewrite(text, modules, tests)
        if new_text != text:
            path.write_text(new_text)


def rewrite(text: str, modules: dict[str, str], tests: dict[str, str]) -> str:
    def imported(match: re.Match[str]) -> str:
        lines = []
        for part in match[2].split(","):
            name, _, alias = part.strip().partition(" as ")
            room, _, leaf = f"outvote/{modules[name]}".rpartition("/")
            called = alias or name
            lines.append(
                f"{match[1]}from {room.replace('/', '.')} import {leaf}" + (f" as {called}" if called != leaf else "")
            )
        return "\n".join(lines)

    text = re.sub(r"^( *)from outvote\.network import ([\w, ]+)$", imported, text, flags=re.M)
    for old, new in modules.items():
        text = re.sub(rf"\boutvote\.network\.{old}\b", f"outvote.{new.replace('/', '.')}", text)
        text = text.replace(f"outvote/network/{old}.py", f"outvote/{new}.py")
    for old, new in tests.items():
        text = text.replace(f"tests/{old}.py", f"tests/{new}.py")
        text = re.sub(
            rf"^( *(?:from|import)) {old.replace('/', '.')}\b", rf"\1 {new.replace('/', '.')}", text, flags=re.M
        )
        text = re.sub(rf'"{old}\.py"', f'"{new}.py"', text)
    return text


if __name__ == "__main__":
    main()
