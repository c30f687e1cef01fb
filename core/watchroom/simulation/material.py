"""What the agents write about: documents, notes and remarks, from the data files beside this one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from random import Random
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

_LOWER_START = re.compile(r"^(- (?:\[.\] )?)([a-z])")


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Section(_Data):
    """A part of a document that grows by whole lines, its entries (see the head of material.toml)."""

    heading: str
    prefix: str
    most: int
    lines: tuple[str, ...]
    messages: tuple[str, ...]
    roles: tuple[str, ...] = ()
    frame: tuple[str, ...] = ()
    closing: str = ""
    above: int = 1
    same: str = ""
    order: Literal["", "text", "month"] = ""
    condensed: str = ""

    @property
    def spaced(self) -> bool:
        """Whether entries are paragraphs, set apart by blank lines."""
        return self.prefix in ("", "> ")

    def subject(self, entry: str) -> str:
        """What an entry is about: two of the same are one too many."""
        match = re.match(self.same, entry) if self.same else None
        return match.group() if match else entry

    @property
    def language(self) -> str:
        return "" if self.heading.isascii() else "_zh"


class Document(_Data):
    """A file that agents of some roles (none named: of all) keep working on."""

    path: str
    title: str
    summary: str
    weight: int = 1
    roles: tuple[str, ...] = ()
    sections: Annotated[tuple[Section, ...], Field(alias="section")]

    def is_for(self, role: str) -> bool:
        return not self.roles or role in self.roles

    def sections_for(self, role: str) -> list[Section]:
        return [section for section in self.sections if not section.roles or role in section.roles]


class Mistakes(_Data):
    outside: str
    nobody: tuple[str, ...]
    missing: tuple[str, ...]


class Said(_Data):
    """Messages and remarks that belong to no document."""

    condense: tuple[str, ...]
    condense_zh: tuple[str, ...]
    tick: tuple[str, ...]
    correct: tuple[str, ...]
    shorten: tuple[str, ...]
    correct_zh: tuple[str, ...]
    merge: tuple[str, ...]
    merge_zh: tuple[str, ...]
    unchecked: tuple[str, ...]
    rollback: tuple[str, ...]
    scratch: tuple[str, ...]
    scratch_text: tuple[str, ...]
    scratch_zh: tuple[str, ...]
    scratch_text_zh: tuple[str, ...]
    handoff: tuple[str, ...]
    handoff_zh: tuple[str, ...]
    follow_up: str
    mistakes: Mistakes

    @cached_property
    def by_kind(self) -> dict[str, tuple[str, ...]]:
        return {name: value for name, value in self if isinstance(value, tuple)}


class Material(_Data):
    """Everything in material.toml."""

    words: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, tuple[int, int]]
    documents: Annotated[tuple[Document, ...], Field(alias="document")]
    notes: Annotated[tuple[Document, ...], Field(alias="note")]
    said: Said

    def filling(self, rng: Random, **given: object) -> Filling:
        return Filling(self, rng, given)


class Filling(Mapping[str, object]):
    """Chooses what each {slot} of a template stands for, once: the same word means the same throughout."""

    def __init__(self, material: Material, rng: Random, given: Mapping[str, object]) -> None:
        self._material = material
        self._rng = rng
        self._chosen = dict(given)

    def __getitem__(self, slot: str) -> object:
        if slot not in self._chosen:
            limits = self._material.numbers.get(slot)
            self._chosen[slot] = self._rng.randint(*limits) if limits else self._word(slot)
        return self._chosen[slot]

    def _word(self, slot: str) -> str:
        """A word for the slot that no other slot has: no train goes from a town to the same town."""
        taken = set(self._chosen.values())
        words = self._material.words[slot]
        return self(self._rng.choice([word for word in words if word not in taken] or words))

    def __iter__(self) -> Iterator[str]:
        return iter(self._chosen)

    def __len__(self) -> int:
        return len(self._chosen)

    def __call__(self, template: str) -> str:
        """The template with its slots filled."""
        return _LOWER_START.sub(lambda m: m[1] + m[2].upper(), template.format_map(self))

    def one_of(self, templates: Sequence[str]) -> str:
        return self(self._rng.choice(templates))


@cache
def material() -> Material:
    """The material, read once."""
    return Material.model_validate(load("material.toml"))


def load(name: str) -> dict[str, object]:
    """A data file of this package."""
    return tomllib.loads(files(__package__ or "").joinpath(name).read_text(encoding="utf-8"))
