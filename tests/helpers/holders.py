"""Who holds tokens, the file of them that a process reads, and kits that the file can be put into."""

from __future__ import annotations

import time
from pathlib import Path

from outvote.access.tokens import Role, TokenBook, make_token, tokens_file
from outvote.files import write_private
from outvote.fleet.addresses import Address
from outvote.fleet.folder import Fleet
from outvote.fleet.making import Plan, make_fleet
from outvote.fleet.members import add_edges

HOLDERS: dict[str, tuple[Role, float]] = {
    "ops": ("admin", 1),
    "looker": ("viewer", 1),
    "shop": ("application", 1),
    "former": ("admin", -1),
}
"""By name: a role, and the days that a token is good."""


def server_kit(folder: Path) -> Path:
    """Of a new fleet on this machine. Its authority is `ca.pem` in the kit."""
    make_fleet(folder / "fleet", Plan([Address("localhost", 4322)], Address("localhost", 8600)), now=time.time())
    return folder / "fleet" / "server"


def edge_kit(folder: Path, name: str) -> Path:
    """The same of an edge that listens for other machines."""
    fleet = Fleet(server_kit(folder).parent)
    [added] = add_edges(fleet, [name], https="localhost")
    return fleet.folder / added.kit


class Holders:
    """Tokens of several people and programs; the last one's has expired."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tokens.json"
        made = {name: make_token(name, role, days=days) for name, (role, days) in HOLDERS.items()}
        self.secrets = {name: secret for name, (secret, _) in made.items()}
        self._tokens = {name: token for name, (_, token) in made.items()}
        self._write()

    @property
    def book(self) -> TokenBook:
        return TokenBook(self.path)

    def header(self, name: str) -> dict[str, str]:
        """What a request of this holder has; of one who is not known a token that nobody was given."""
        return {"Authorization": f"Bearer {self.secrets.get(name, f'outvote-{name}')}"}

    def add(self, name: str, role: Role) -> str:
        """One more token, in the file from now on."""
        self.secrets[name], self._tokens[name] = make_token(name, role, days=1, now=time.time())
        self._write()
        return self.secrets[name]

    def revoke(self, name: str) -> None:
        del self._tokens[name]
        self._write()

    def _write(self) -> None:
        write_private(self.path, tokens_file(self._tokens.values()))
