"""All texts for agents and people, in each language, by key.

Catalogues are TOML files beside this one. A key is the dotted path of a string, a text may contain
``{placeholders}``. Both languages have exactly the same keys and placeholders; a test enforces it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Literal, TypeAlias, get_args

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Catalogue:
    """The ``texts`` of one package in one language, by key."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def __call__(self, key: str, **values: object) -> str:
        """The text under ``key`` with its placeholders filled in. An unknown key is a KeyError."""
        text = self._texts[key]
        return text.format(**values) if values else text

    def __contains__(self, key: str) -> bool:
        return key in self._texts

    def keys(self) -> frozenset[str]:
        """All keys."""
        return frozenset(self._texts)


@cache
def catalogue(language: Language = "en", package: str = "watchroom.texts") -> Catalogue:
    """The catalogue of ``package`` (which contains ``en.toml`` and ``zh.toml``) in ``language``. Cached."""
    # Not loaded by who only passes texts on: compiling its patterns takes longer than most imports.
    import tomllib

    # importlib.resources would do, but takes longer to load than all our texts to read.
    (folder,) = import_module(package).__path__
    with open(os.path.join(folder, f"{language}.toml"), "rb") as file:
        return Catalogue(dict(_flat(tomllib.load(file))))


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
