"""All texts for agents and people, in each language, by key.

The catalogues are the TOML files in this folder. A key is the dotted path of a string. Texts may contain
``{placeholders}``. A test checks that both languages have the same keys and placeholders.
"""

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
"""The header of a table."""


class Catalogue:
    """The texts of one package in one language, by key.

    ``toml``: the content of the file. A table is parsed when its first text is needed, because parsing all
    tables takes as long as most commands.
    """

    def __init__(self, toml: str) -> None:
        first, *tables = _HEADER.split(toml)
        self._unparsed = {"": first, **dict(zip(tables[::2], tables[1::2], strict=True))}
        self._texts: dict[str, str] = {}

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of ``key`` with ``values`` for its placeholders.

        Raise KeyError for unknown keys.
        """
        if key not in self._texts:
            self._parse_tables_above(key)
        text = self._texts[key]
        return text.format(**values) if values else text

    def __contains__(self, key: str) -> bool:
        if key not in self._texts:
            self._parse_tables_above(key)
        return key in self._texts

    def keys(self) -> frozenset[str]:
        """Return all keys."""
        for table in tuple(self._unparsed):
            self._parse_table(table)
        return frozenset(self._texts)

    def _parse_tables_above(self, key: str) -> None:
        table = key
        while table:
            table = table.rpartition(".")[0]
            self._parse_table(table)

    def _parse_table(self, table: str) -> None:
        # Loaded on demand, because compiling its patterns takes longer than most imports.
        import tomllib

        toml = self._unparsed.get(table)
        if toml is not None:
            self._texts.update(_flatten(tomllib.loads(toml), f"{table}." if table else ""))
            # The table is removed last, so that other threads find the texts or parse the table again.
            self._unparsed.pop(table, None)


@cache
def catalogue(language: Language = "en", package: str = "watchroom.texts") -> Catalogue:
    """Return the cached catalogue of ``package``, which contains ``en.toml`` and ``zh.toml``. Texts of other
    packages may be in English only."""
    # Loading importlib.resources takes longer than reading all texts.
    (folder,) = import_module(package).__path__
    path = os.path.join(folder, f"{language}.toml")
    if not os.path.exists(path):
        path = os.path.join(folder, "en.toml")
    with open(path, encoding="utf-8") as file:
        return Catalogue(file.read())


def _flatten(table: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, str):
            texts.append((prefix + key, value.strip("\n")))
        elif isinstance(value, dict):
            texts.extend(_flatten(value, f"{prefix}{key}."))
        else:
            raise TypeError(f"catalogue entry {prefix}{key} is neither a text nor a table")
    return texts
