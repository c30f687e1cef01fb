"""On which line of a TOML document each key and each element stands: `tomllib` keeps no positions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|#[^\n]*|[\[\]{}=,\n]|[^\s\[\]{}=,#\"']+",
    re.DOTALL,
)


class _Token(NamedTuple):
    text: str
    line: int


def line_numbers(text: str) -> Mapping[Path, int]:
    """The line, from 1, of each key, table and array element of ``text``, which is valid TOML."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), _Token("", text.count("\n") + 1)]
        self._at = 0
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}

    def scan(self) -> Mapping[Path, int]:
        table: Path = ()
        while self._peek():
            if self._peek() == "[":
                table = self._header()
            elif self._peek() == "\n":
                self._at += 1
            else:
                self._pair(table)
        return self._lines

    def _peek(self) -> str:
        return self._tokens[self._at].text

    def _header(self) -> Path:
        """A table's header, ``[a.b]`` or ``[[a.b]]``; gives the path of the table that begins."""
        line = self._tokens[self._at].line
        opened = self._at
        while self._peek() == "[":
            self._at += 1
        is_array = self._at - opened == 2
        names = self._key()
        while self._peek() == "]":
            self._at += 1
        path: Path = ()
        for place, name in enumerate(names):
            path = (*path, name)
            self._lines.setdefault(path, line)
            if is_array and place == len(names) - 1:
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                path = (*path, self._counts[path])
            self._lines.setdefault(path, line)
        return path

    def _key(self) -> list[str]:
        names: list[str] = []
        while self._peek() not in ("=", "]", "\n", ""):
            token = self._peek()
            names += [token[1:-1]] if token[0] in "\"'" else [each for each in token.split(".") if each]
            self._at += 1
        return names

    def _pair(self, table: Path) -> None:
        line = self._tokens[self._at].line
        path: Path = (*table, *self._key())
        self._lines[path] = line
        self._at += 1
        self._value(path)

    def _value(self, path: Path) -> None:
        opening = self._peek()
        self._at += 1
        if opening not in ("[", "{"):
            return
        closing, index = ("]", 0) if opening == "[" else ("}", -1)
        while self._peek() not in (closing, ""):
            if self._peek() in (",", "\n"):
                self._at += 1
            elif index < 0:
                self._pair(path)
            else:
                self._lines[(*path, index)] = self._tokens[self._at].line
                self._value((*path, index))
                index += 1
        self._at += 1


def _tokens(text: str) -> Iterator[_Token]:
    line, at = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        if not match[0].startswith("#"):
            yield _Token(match[0], line)
