"""A row as the bytes that its leaf in the tree is the hash of: no two rows have the same ones. Pure.

All columns, in their order, as bencode writes them: numbers as ``i12e``, texts as ``5:alice`` (the length in
bytes of UTF-8); ``n`` where there is none. A content is not among them: the row has its checksum.
"""

from __future__ import annotations

from hashlib import sha256

from watchroom.model import Row


def encode_row(row: Row) -> bytes:
    """The bytes of ``row``."""
    seq, time, actor, tool, zone, path, version, base, outcome, error, message, checksum, size, detail = row
    a, t, z, p, o, e, m, d = (
        each.encode("utf-8", "surrogatepass")
        for each in (actor, tool, zone, path, outcome, error, message, detail)
    )
    return b"i%dei%de%d:%b%d:%b%d:%b%d:%b%b%b%d:%b%d:%b%d:%b%b%b%d:%b" % (
        *(seq, time, len(a), a, len(t), t, len(z), z, len(p), p),
        b"n" if version is None else b"i%de" % version,
        b"n" if base is None else b"i%de" % base,
        *(len(o), o, len(e), e, len(m), m),
        b"n" if checksum is None else b"%d:%b" % (len(checksum), checksum.encode()),
        b"n" if size is None else b"i%de" % size,
        *(len(d), d),
    )


def hash_row(row: Row) -> bytes:
    """The hash of the leaf of ``row``."""
    return sha256(b"\x00" + encode_row(row)).digest()
