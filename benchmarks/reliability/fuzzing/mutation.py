"""Generate inputs: values with a meaning for some parser, random combinations, and mutations.

All choices come from a seeded generator, so that a seed repeats a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from watchroom.model import Json

HOSTILE: Final = (
    *("\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x07", "\x9b31m", "\r", "\x08", "\0", "\x7f", "\x85"),
    *("\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\u2029", "\u00ad", "\U000e0041", "\ufffe"),
    "\x0b\x0c",
    *("[red]x[/]", "[@click=app.quit]x[/]", "[/", "\\[", "&#27;", "&#x202e;", "<b>", "{0}", "${x}", "%s"),
    "$(",
    *("..", "../" * 6, "/etc/passwd", "C:\\x", "a\\b", "~", "con", "nul.txt", ".git", ".watchroom", "a/./b"),
    *("e\u0301", "\u0301" * 40, "👨\u200d👩\u200d👧", "看板", "ﬁ", "ß", "İ", "\U0001f600", "\u3000", "　x"),
    *("true", "null", "NaN", "1e999", "-0", "9" * 40, "0x1F", "'", '"', '"""', "```", "---", "\r\n", "\t"),
)
"""Texts that control a terminal, leave a folder, end a literal, or look like something else."""

NUMBERS: Final = (0, 1, -1, 2, 7, 255, 2**31, 2**53, 2**63, -(2**63), 2**64, 10**30, 0.5, -0.0, 1e308, 1e-320)
MAX_REPEATS: Final = 4000


def some_text(chance: Random, longest: int = 12) -> str:
    """Return a short text: hostile, of letters, or of any characters except surrogates."""
    kind = chance.random()
    if kind < 0.4:
        return chance.choice(HOSTILE)
    length = chance.randint(0, longest)
    if kind < 0.8:
        return "".join(chance.choice("abcxyz019 _-./#*|>:=[](){}\n\"'\\,") for _ in range(length))
    return "".join(_any_character(chance) for _ in range(length))


def _any_character(chance: Random) -> str:
    code = chance.choice((0x80, 0x800, 0x3000, 0x10000, 0x110000))
    found = chance.randrange(code)
    return "\ufffd" if 0xD800 <= found < 0xE000 else chr(found)


def some_json(chance: Random, leaves: Sequence[Json] = (), depth: int = 3) -> Json:
    """Return a JSON value, often one of ``leaves``. Its texts can contain a lone surrogate."""
    kind = chance.random()
    if leaves and kind < 0.4:
        return chance.choice(leaves)
    if depth and kind > 0.85:
        return [some_json(chance, leaves, depth - 1) for _ in range(chance.randint(0, 3))]
    if depth and kind > 0.7:
        return {
            some_text(chance, 5): some_json(chance, leaves, depth - 1) for _ in range(chance.randint(0, 3))
        }
    return chance.choice((None, True, False, chance.choice(NUMBERS), some_text(chance), "\ud800x"))


def _some_key(chance: Random) -> str:
    return chance.choice(("", "\ud800", "x" * 20_000, "a\0b", some_text(chance), some_text(chance)))


def mutated_json(value: Json, chance: Random, leaves: Sequence[Json] = ()) -> Json:
    """Return ``value`` with one change: something replaced, removed, duplicated or moved."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        changed = dict(value)
        what = chance.random()
        if what < 0.1:
            del changed[key]
        elif what < 0.25:
            changed[_some_key(chance)] = changed[key]
        else:
            changed[key] = mutated_json(value[key], chance, leaves)
        return changed
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        what = chance.random()
        if what < 0.15:
            return value[:at] + value[at + 1 :]
        if what < 0.3:
            return value[:at] + [value[at]] * chance.choice((2, 3, 100)) + value[at:]
        return [*value[:at], mutated_json(value[at], chance, leaves), *value[at + 1 :]]
    if isinstance(value, str) and chance.random() < 0.6:
        data = value.encode("utf-8", "surrogatepass")
        return mutated(data, chance, 100_000).decode("utf-8", "replace")
    if isinstance(value, int) and chance.random() < 0.6:
        return value + chance.choice((-1, 1, 2**31, -(2**31)))
    return some_json(chance, leaves)


def to_bytes(value: Json) -> bytes:
    """Return ``value`` as JSON, with lone surrogates, infinities and NaN."""
    return json.dumps(value, ensure_ascii=True).encode()


def mutated(
    data: bytes, chance: Random, size: int, tokens: Sequence[bytes] = (), other: bytes = b""
) -> bytes:
    """Return ``data`` with one to four changes.

    Parts are removed, bits flipped, tokens inserted, and parts moved, duplicated or copied from ``other``.
    Rarely a part is repeated up to ``size`` bytes.
    """
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        data = chance.choice(_CHANGES)(data, chance, tokens, other)
    if chance.random() < 0.01:
        data = _blown_up(data, chance, size)
    return data[:size]


def _blown_up(data: bytes, chance: Random, size: int) -> bytes:
    start, end = _stretch(data, chance, 40)
    piece = data[start:end] or b"["
    room = max(0, size - len(data)) // len(piece)
    times = chance.choice((room, min(room, MAX_REPEATS), min(room, 100)))
    return data[:start] + piece * times + data[end:]


def _stretch(data: bytes, chance: Random, longest: int) -> tuple[int, int]:
    start = chance.randint(0, len(data))
    return start, min(len(data), start + chance.randint(0, longest))


def _cut(data: bytes, chance: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    start, end = _stretch(data, chance, chance.choice((1, 8, 400)))
    return data[:start] + data[end:]


def _flip(data: bytes, chance: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _put_in(data: bytes, chance: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    start, end = _stretch(data, chance, chance.choice((0, 0, 4)))
    piece = chance.choice(tokens) if tokens and chance.random() < 0.7 else some_text(chance).encode()
    return data[:start] + piece + data[end:]


def _double(data: bytes, chance: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    start, end = _stretch(data, chance, chance.choice((2, 20, 200)))
    to = chance.randint(0, len(data))
    return data[:to] + data[start:end] * chance.choice((1, 1, 2, 30)) + data[to:]


def _splice(data: bytes, chance: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    start, end = _stretch(other, chance, 200)
    to = chance.randint(0, len(data))
    return data[:to] + other[start:end] + data[to:]


def _swap_lines(data: bytes, chance: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    lines = data.split(b"\n")
    one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return b"\n".join(lines)


def _join(data: bytes, chance: Random, tokens: Sequence[bytes], other: bytes) -> bytes:
    return data + (b"\n" if chance.random() < 0.5 else b"") + other


_CHANGES: Final[Sequence[Callable[[bytes, Random, Sequence[bytes], bytes], bytes]]] = (
    *(_cut, _flip, _put_in, _put_in, _put_in, _double, _splice, _swap_lines, _join),
)
