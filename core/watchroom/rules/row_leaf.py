"""A row as the bytes that its leaf in the tree is the hash of: no two rows have the same ones. Pure.

All columns, in their order, as bencode writes them: numbers as ``i12e``, texts as ``5:alice`` (the length in
bytes of UTF-8); ``n`` where there is none. A content is not among them: the row has its checksum.
"""

from __future__ import annotations

from hashlib import sha256

from watchroom.model import Row


def has_leaf(row: Row) -> bool:
    """Whether ``row`` has a leaf. Tokens have none: not everyone may read them, and all have to find the same
    root."""
    return row.zone != "token"


def encode_row(row: Row) -> bytes:
    """The bytes of ``row``."""
    seq, time, actor, tool, zone, path, version, base, outcome, error, message, checksum, size, detail = row
    made = "n" if version is None else f"i{version}e"
    started = "n" if base is None else f"i{base}e"
    summed = "n" if checksum is None else f"{len(checksum)}:{checksum}"
    sized = "n" if size is None else f"i{size}e"
    text = (
        f"i{seq}ei{time}e{len(actor)}:{actor}{len(tool)}:{tool}{len(zone)}:{zone}{len(path)}:{path}{made}{started}"
        f"{len(outcome)}:{outcome}{len(error)}:{error}{len(message)}:{message}{summed}{sized}{len(detail)}:{detail}"
    )
    # Of ASCII each character is a byte, and most rows are of ASCII.
    return text.encode() if text.isascii() else b"".join(map(_encode, row))


def _encode(value: str | int | None) -> bytes:
    if value is None:
        return b"n"
    if isinstance(value, int):
        return b"i%de" % value
    data = value.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(data), data)


def hash_row(row: Row) -> bytes:
    """The hash of the leaf of ``row``."""
    return sha256(b"\x00" + encode_row(row)).digest()
