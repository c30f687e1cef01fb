"""All texts for agents and people, in each language, by key.

Catalogues are TOML files beside this one. A key is the dotted path of a string, a text may contain
``{placeholders}``. Both languages have exactly the same keys and placeholders; a test enforces it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final, Literal, TypeAlias, get_args

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_HEADER: Final = re.compile(r"^\[([\w.]+)\]$", re.MULTILINE)
"""Begins a table."""


class Catalogue:
    """The ``texts`` of one package in one language, by key.

    ``toml`` is the file of them. Each of its tables is parsed when one of its texts is first asked for: to
    parse all of them takes as long as most commands.
    """

    def __init__(self, toml: str) -> None:
        first, *tables = _HEADER.split(toml)
        self._unparsed = {"": first, **dict(zip(tables[::2], tables[1::2], strict=True))}
        self._texts: dict[str, str] = {}

    def __call__(self, key: str, **values: object) -> str:
        """The text under ``key`` with its placeholders filled in. An unknown key is a KeyError."""
        if key not in self._texts:
            self._parse_tables_above(key)
        text = self._texts[key]
        return text.format(**values) if values else text

    def __contains__(self, key: str) -> bool:
        if key not in self._texts:
            self._parse_tables_above(key)
        return key in self._texts

    def keys(self) -> frozenset[str]:
        """All keys."""
        for table in tuple(self._unparsed):
            self._parse_table(table)
        return frozenset(self._texts)

    def _parse_tables_above(self, key: str) -> None:
        table = key
        while table:
            table = table.rpartition(".")[0]
            self._parse_table(table)

    def _parse_table(self, table: str) -> None:
        # Not loaded by who only passes texts on: compiling its patterns takes longer than most imports.
        import tomllib

        toml = self._unparsed.get(table)
        if toml is not None:
            self._texts.update(_flat(tomllib.loads(toml), f"{table}." if table else ""))
            # Only now: another thread finds the texts, or parses the table once more.
            self._unparsed.pop(table, None)


@cache
def catalogue(language: Language = "en", package: str = "watchroom.texts") -> Catalogue:
    """The catalogue of ``package`` (which contains ``en.toml`` and ``zh.toml``) in ``language``. Cached."""
    # importlib.resources would do, but takes longer to load than all our texts to read.
    (folder,) = import_module(package).__path__
    with open(os.path.join(folder, f"{language}.toml"), encoding="utf-8") as file:
        return Catalogue(file.read())


def _flat(table: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, str):
            texts.append((prefix + key, value.strip("\n")))
        elif isinstance(value, dict):
            texts.extend(_flat(value, f"{prefix}{key}."))
        else:
            raise TypeError(f"catalogue entry {prefix}{key} is neither a text nor a table")
    return texts
