"""Bases and field types of the models that tools take as parameters and return as results.

Descriptions of parameters stand in the text catalogues, under ``tool.TOOL`` and ``argument``.
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
"""Refuses ``true`` and ``false`` for a whole number, although Python counts them among its integers.

It comes after the limits of a field. Limits that come later are ``ge`` and ``le`` in pydantic's schema."""
NO_BOOL_AS_FLOAT: Final = _no_bool("float_type")
"""As `NO_BOOL`, for a number with a fraction."""
Integer: TypeAlias = Annotated[int, NO_BOOL]
"""A whole number without limits."""

Message = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(max_length=2000)]
"""A path or an identifier; the zone checks its form."""
Version = Annotated[int, Field(ge=1, le=2**31 - 1), NO_BOOL]
RowNumber = Annotated[int, Field(ge=1, le=2**62), NO_BOOL]


class FrozenModel(BaseModel):
    """Base of all: frozen. Its validator is built when it is first used, since building is slow."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class ParamsModel(FrozenModel):
    """Base of the parameters of tools: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class NoParams(ParamsModel):
    """The parameters of a tool that takes none."""


class ResultModel(FrozenModel):
    """Base of the results of tools."""

    success: bool = True

    def to_dict(self) -> dict[str, Json]:
        """Return the result as JSON, by alias, without the fields that are None."""
        return self.model_dump(by_alias=True, exclude_none=True)


class Failure(FrozenModel):
    """A refusal: a stable code, what happened, and what to do next."""

    success: Literal[False] = False
    error: str
    message: str
    suggestion: str


class ConflictFailure(Failure):
    """A write that came too late, with everything needed to recover (FILES-3.5)."""

    is_conflict: Literal[True] = True
    conflict_id: int
    base_version: int
    current_version: int
    current_content: str | None
    current_author: str | None
    current_message: str | None
    your_content: str | None
    missed_changes: str | None
    """A unified diff from the base version to the current one; None where there is no base."""
