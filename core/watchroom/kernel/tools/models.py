"""Base classes and field types of the parameters and results of tools.

The text catalogues describe parameters under ``tool.TOOL`` and ``argument``.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticKnownError

from watchroom.model import Json


def _no_bool(problem: Literal["int_type", "float_type"]) -> BeforeValidator:
    def refuse_bool(value: object) -> object:
        if isinstance(value, bool):
            raise PydanticKnownError(problem)
        return value

    return BeforeValidator(refuse_bool)


NO_BOOL: Final = _no_bool("int_type")
"""Refuses ``true`` and ``false`` as an integer, because Python accepts them.

It must follow the limits of a field, because pydantic's schema calls later limits ``ge`` and ``le``.
"""
NO_BOOL_AS_FLOAT: Final = _no_bool("float_type")
"""Refuses ``true`` and ``false`` as a float."""
Integer: TypeAlias = Annotated[int, NO_BOOL]
"""An integer without limits."""

Message = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(max_length=2000)]
"""A path or an identifier. The feature checks its form."""
Version = Annotated[int, Field(ge=1, le=2**31 - 1), NO_BOOL]
RowNumber = Annotated[int, Field(ge=1, le=2**62), NO_BOOL]


class FrozenModel(BaseModel):
    """Base of all models: frozen. The validator is built on first use, because building is slow."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class ParamsModel(FrozenModel):
    """Base of the parameters of tools. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class NoParams(ParamsModel):
    """The parameters of a tool without parameters."""


class ResultModel(FrozenModel):
    """Base of the results of tools."""

    success: bool = True

    def to_dict(self) -> dict[str, Json]:
        """Return the result as JSON, by alias, without fields that are None."""
        return self.model_dump(by_alias=True, exclude_none=True)


class Failure(FrozenModel):
    """The result of a refused call: a stable code, a message, and a suggestion."""

    success: Literal[False] = False
    error: str
    message: str
    suggestion: str


class ConflictFailure(Failure):
    """The result of a conflicting write, with all data for a recovery (FILES-3.5)."""

    is_conflict: Literal[True] = True
    conflict_id: int
    base_version: int
    current_version: int
    current_content: str | None
    current_author: str | None
    current_message: str | None
    your_content: str | None
    missed_changes: str | None
    """A unified diff from the base version to the current version; None if there is no base."""
