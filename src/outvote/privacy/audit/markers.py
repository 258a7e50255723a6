"""Markers: secrets that every request of the audit's users carries, and the search for them in whatever form.

One rule: all markers of a run contain one secret, so one search finds any of them.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import zlib
from collections.abc import Iterator
from typing import Final

FORMS: Final = (
    "as it is",
    "in capitals",
    "backwards",
    "in hex",
    "in base64",
    "percent-encoded",
    "with escapes of JSON",
    "in UTF-16",
    "compressed (zlib, gzip)",
    "hashed (MD5, SHA-1, SHA-256, in hex)",
)
LARGEST: Final = 1 << 20
"""Bytes that are unpacked of what may be compressed."""
_STREAM = re.compile(rb"\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]")
_HEX = re.compile(rb"[0-9a-f]{32,}")


class Markers:
    """Makes them, and finds them again."""

    def __init__(self) -> None:
        self.secret = "zq" + secrets.token_hex(9)
        self.made = 0
        self._hashes: set[bytes] = set()
        self._forms = tuple(_forms(self.secret))

    def new(self, kind: str) -> str:
        """A marker that no other request has."""
        self.made += 1
        return f"{self.secret}-{kind}-{self.made}"

    def person(self, name: str) -> str:
        """A marker that a user keeps; it is also looked for in hashes."""
        self.made += 1
        marker = f"{self.secret}-{name}"
        for digest in (hashlib.md5, hashlib.sha1, hashlib.sha256):
            self._hashes.add(digest(marker.encode()).hexdigest().encode())  # not for safety: it is looked for
        return marker

    def find(self, data: bytes) -> list[str]:
        """How markers occur in this: words for people."""
        found = ["a marker"] if self._seen_in(data) else []
        if self._hashes.intersection(_HEX.findall(data)):
            found.append("the hash of a user's marker")
        if any(self._seen_in(text) for text in _unpacked(data)):
            found.append("a marker in compressed data")
        return found

    def _seen_in(self, data: bytes) -> bool:
        return any(form in data for form in self._forms)


def _forms(secret: str) -> Iterator[bytes]:
    raw = secret.encode()
    yield from (raw, raw.upper(), raw[::-1])
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    yield from ("".join(f"%{byte:02x}" for byte in raw).encode(), "".join(f"%{byte:02X}" for byte in raw).encode())
    yield from ("".join(f"\\u{byte:04x}" for byte in raw).encode(), "".join(f"\\u{byte:04X}" for byte in raw).encode())
    yield from (secret.encode("utf-16-le"), secret.encode("utf-16-be"))
    for before in range(3):  # where in a group of three bytes it begins
        text = base64.b64encode(bytes(before) + raw)
        first, last = -(-before * 4 // 3), (before + len(raw)) * 4 // 3
        yield text[first:last]


def _unpacked(data: bytes) -> Iterator[bytes]:
    for hit in _STREAM.finditer(data):
        unpack = zlib.decompressobj(wbits=47)  # zlib or gzip, as its head says
        try:
            text = unpack.decompress(data[hit.start() :], LARGEST)
        except zlib.error:
            continue
        if text:
            yield text
