"""Keys of NATS: of the fleet's operator, its accounts and their users.

A seed is a secret: it leaves this module only to be written by `write_private`, and never into an error or a log.
"""

from __future__ import annotations

import binascii
import secrets
from pathlib import Path
from typing import Any, Final, Literal

import nkeys  # type: ignore[import-untyped]  # it ships no types

from outvote.access.tokens import check_private
from outvote.core.errors import InvalidConfiguration

Kind = Literal["operator", "account", "user"]
_PREFIXES: Final[dict[Kind, int]] = {
    "operator": nkeys.PREFIX_BYTE_OPERATOR,
    "account": nkeys.PREFIX_BYTE_ACCOUNT,
    "user": nkeys.PREFIX_BYTE_USER,
}


class Key:
    """A pair of keys; what is shown of it is the public one."""

    def __init__(self, seed: bytes) -> None:
        self._pair: Any = nkeys.from_seed(seed)
        self.seed = seed
        self.public: str = bytes(self._pair.public_key).decode("ascii")

    def __repr__(self) -> str:
        return f"Key({self.public})"

    def sign(self, content: bytes) -> bytes:
        return bytes(self._pair.sign(content))


def new_key(kind: Kind) -> Key:
    return Key(bytes(nkeys.encode_seed(secrets.token_bytes(32), _PREFIXES[kind])))


def read_key(path: Path, kind: Kind) -> Key:
    """A key from its file, which only its owner can read."""
    check_private(path)
    try:
        key = Key(path.read_bytes().strip())
    except OSError as error:
        raise InvalidConfiguration(
            f"the key {str(path)!r} cannot be read: {error.strerror}; this needs the whole fleet folder"
        ) from None
    except (ValueError, binascii.Error, nkeys.NkeysError):
        problem = f"{str(path)!r} holds no key: restore it from your backup of the fleet folder"
        raise InvalidConfiguration(problem) from None
    if not key.public.startswith(kind[0].upper()):
        raise InvalidConfiguration(f"{str(path)!r} must be the key of an {kind}, got one of another kind: {key.public}")
    return key
