"""Reads and writes the strings of SSH (RFC 4251, section 5): each a length of four bytes, then the bytes."""

from __future__ import annotations


class Damaged(ValueError):
    """The bytes end too early, or go on."""


class WireReader:
    """Reads ``data`` from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._rest = memoryview(data)

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes. Raises `Damaged`."""
        if len(self._rest) < count:
            raise Damaged
        taken, self._rest = bytes(self._rest[:count]), self._rest[count:]
        return taken

    def number(self) -> int:
        """The next four bytes as a number. Raises `Damaged`."""
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        """The next string. Raises `Damaged`."""
        return self.take(self.number())

    def end(self) -> None:
        """Raises `Damaged` where anything is left."""
        if self._rest:
            raise Damaged


def strings(*parts: bytes) -> bytes:
    """``parts``, each as a string."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
