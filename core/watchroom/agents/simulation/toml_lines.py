"""Finds the line of each key and each element in a TOML document, because `tomllib` keeps no positions.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_LEXEME: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|#[^\n]*|[\[\]{}=,\n]|[^\s\[\]{}=,#\"']+",
    re.DOTALL,
)


def line_numbers(text: str) -> Mapping[Path, int]:
    """Return the line, from 1, of each key, table and array element of ``text``, which is valid TOML."""
    lines: dict[Path, int] = {}
    lengths: dict[Path, int] = {}  # of the arrays read so far
    table: Path = ()
    containers: list[Path] = []  # the open arrays and inline tables
    keys: list[str] = []
    value: Path | None = None  # the path of the next value
    brackets = 0  # in the header of a table
    for lexeme, line in _lexemes(text + "\n"):
        container = containers[-1] if containers else table
        if brackets and lexeme == "\n":
            table = _begin_table(keys, brackets > 1, line, lines, lengths)
            brackets, keys = 0, []
        elif lexeme in ("\n", ","):
            value, keys = None, []
        elif lexeme in ("]", "}"):
            containers = containers[:-1]
        elif lexeme == "=":
            value, keys = (*container, *keys), []
            lines[value] = line
        elif value is None and not (containers and container in lengths):
            brackets += lexeme == "["
            keys += _names(lexeme)
        else:
            if value is None:
                value = (*container, lengths[container])
                lengths[container] += 1
                lines[value] = line
            if lexeme in ("[", "{"):
                containers.append(value)
                lengths |= {value: 0} if lexeme == "[" else {}
            value = None
    return lines


def _begin_table(
    names: list[str], is_element: bool, line: int, lines: dict[Path, int], lengths: dict[Path, int]
) -> Path:
    """Record the table with the header ``names``. Return its path."""
    path: Path = ()
    for name in names:
        path = (*path, name)
        lines.setdefault(path, line)
        if is_element and len(path) - sum(isinstance(each, int) for each in path) == len(names):
            lengths[path] = lengths.get(path, 0) + 1
        if path in lengths:
            path = (*path, lengths[path] - 1)
            lines.setdefault(path, line)
    return path


def _names(lexeme: str) -> list[str]:
    """Return the names in ``lexeme``, a key or a part of a key."""
    if lexeme[0] in "\"'":
        return [lexeme[1:-1]]
    return [name for name in lexeme.split(".") if name not in ("", "[")]


def _lexemes(text: str) -> Iterator[tuple[str, int]]:
    line, at = 1, 0
    for match in _LEXEME.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if not match[0].startswith("#"):
            yield match[0], line
