"""Encodes a row as bytes. Their hash is the row's leaf in the Merkle tree. Different rows have different
bytes. Pure.

The bytes are all columns in order, in bencode: numbers as ``i12e``, texts as ``5:alice`` (with the length in
bytes of UTF-8), and ``n`` for a missing value. The content is represented by its checksum.
"""

from __future__ import annotations

from hashlib import sha256

from watchroom.model import Row


def has_leaf(row: Row) -> bool:
    """Return whether ``row`` has a leaf.

    Rows of tokens have no leaf: not everyone may read them, but everyone must compute the same root.
    """
    return row.zone != "token"


def encode_row(row: Row) -> bytes:
    """Return the bytes of ``row``."""
    seq, time, actor, tool, zone, path, version, base, outcome, error, message, checksum, size, detail = row
    made = "n" if version is None else f"i{version}e"
    started = "n" if base is None else f"i{base}e"
    summed = "n" if checksum is None else f"{len(checksum)}:{checksum}"
    sized = "n" if size is None else f"i{size}e"
    text = (
        f"i{seq}ei{time}e{len(actor)}:{actor}{len(tool)}:{tool}{len(zone)}:{zone}{len(path)}:{path}{made}{started}"
        f"{len(outcome)}:{outcome}{len(error)}:{error}{len(message)}:{message}{summed}{sized}{len(detail)}:{detail}"
    )
    # In ASCII, as in most rows, the number of characters equals the number of bytes.
    return text.encode() if text.isascii() else b"".join(map(_encode, row))


def _encode(value: str | int | None) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, int):
        return b"i%de" % value
    data = value.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(data), data)


def hash_row(row: Row) -> bytes:
    """Return the hash of the leaf of ``row``."""
    return sha256(b"\x00" + encode_row(row)).digest()
