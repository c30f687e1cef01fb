"""The lines between the two ends: one JSON object each. Everything is bounded, because the other end is
another machine. Texts can contain any character, and must be sanitized before they are shown."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from watchroom.features.overview.agents import Status

PROTOCOL: Final = 1
"""The version of the protocol. Two ends with different versions do not work together."""
MAX_LINE: Final = 1024 * 1024
"""Maximum bytes of a line."""
BEAT_SECONDS: Final = 2.0
"""Seconds between two signs of life, in both directions."""
ANSWER_SECONDS: Final = 10.0
"""Timeout in seconds for an answer to reach the far end. The far end refuses a later answer, because the
person may have read that it did not arrive."""
MAX_AGENTS: Final = 200
MAX_NEEDS: Final = 50
MAX_DETAILS: Final = 120
"""Maximum lines about one need."""
MAX_LINE_CHARACTERS: Final = 160
"""Maximum characters of one line about a need."""
MAX_OPTIONS: Final = 50
MAX_ANSWER: Final = 100_000
MAX_TIME: Final = 2**63 - 1
_MAX_COUNT: Final = 10**9

FarAnswer: TypeAlias = Literal["approve", "reject", "reply", "choose", "seen"]
"""The answers that can be given from another machine. Other needs are settled at the machine itself."""
ResultState: TypeAlias = Literal["accepted", "refused", "absent"]
"""The fate of an answer. ``absent``: it has not arrived."""

_Id = Annotated[str, Field(max_length=200)]
_Short = Annotated[str, Field(max_length=500)]
_Time = Annotated[int, Field(ge=0, le=MAX_TIME)]
_Row = Annotated[int, Field(ge=0, le=2**62)]
_Key = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$|^$")]


class _Message(BaseModel):
    # A newer end can send more fields.
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class Hello(_Message):
    """The first line of both ends. ``place``: the workspace's name, empty from the near end."""

    type: Literal["hello"] = "hello"
    protocol: int
    version: _Id
    place: _Id = ""


class Beat(_Message):
    """A sign of life. ``time``: of the sender's clock, in nanoseconds since the epoch."""

    type: Literal["beat"] = "beat"
    time: _Time


class FarAgent(_Message):
    """An agent. ``text``: what it does. ``heard``: the time of its last row."""

    id: _Id
    status: Status
    text: _Short = ""
    heard: _Time = 0


class FarOption(_Message):
    """A choice. ``label``: for people. ``value``: for the agent."""

    label: _Short
    value: _Short


class FarNeed(_Message):
    """A need.

    - ``row``: the row that opened it, or its request. It identifies the need.
    - ``kind``: the kind in words. ``party``: its agent or file. ``matter``: what it is about.
    - ``opened``, ``deadline``: times. No deadline: 0.
    - ``answers``: the possible answers from another machine.
    - ``details``: the whole need as lines. Without all lines, ``is_cut`` is set.
    - ``is_simple``: whether it can be approved in a list: it has one call, and nothing has changed since.
    - ``shown``: a checksum of what is shown. An answer is refused if it has changed.
    """

    row: _Row
    kind: _Short
    party: _Short
    matter: _Short
    agent: _Id = ""
    opened: _Time = 0
    deadline: _Time = 0
    answers: Annotated[tuple[FarAnswer, ...], Field(max_length=5)] = ()
    details: Annotated[
        tuple[Annotated[str, Field(max_length=MAX_LINE_CHARACTERS)], ...], Field(max_length=MAX_DETAILS)
    ] = ()
    is_cut: bool = False
    options: Annotated[tuple[FarOption, ...], Field(max_length=MAX_OPTIONS)] = ()
    multi: bool = False
    is_simple: bool = False
    shown: _Digest = ""


class FarSummary(_Message):
    """The state of the workspace, whenever it changes. ``more_agents``, ``more_needs``: how many are left
    out."""

    type: Literal["summary"] = "summary"
    time: _Time
    agents: Annotated[tuple[FarAgent, ...], Field(max_length=MAX_AGENTS)] = ()
    needs: Annotated[tuple[FarNeed, ...], Field(max_length=MAX_NEEDS)] = ()
    more_agents: Annotated[int, Field(ge=0, le=_MAX_COUNT)] = 0
    more_needs: Annotated[int, Field(ge=0, le=_MAX_COUNT)] = 0


class NeedAnswer(_Message):
    """A person's answer to the need ``row``.

    - ``key``: identifies the answer. The same key never answers twice.
    - ``shown``: the checksum of the need that the person saw.
    - ``text``: a reason, or the answer to a question. ``values``: the choices.
    - ``until``: the last moment at which it may take effect, by the clock of the far end.
    """

    type: Literal["answer"] = "answer"
    key: _Key
    row: _Row
    shown: _Digest = ""
    decision: FarAnswer
    text: Annotated[str, Field(max_length=MAX_ANSWER)] = ""
    values: Annotated[tuple[str, ...], Field(max_length=MAX_OPTIONS)] = ()
    until: _Time


class Check(_Message):
    """Asks for the outcome of an answer whose result was lost. ``until``: see `NeedAnswer`."""

    type: Literal["check"] = "check"
    key: _Key
    until: _Time


class Result(_Message):
    """The outcome of the answer ``key``. ``message``: why it was refused, or who answered."""

    type: Literal["result"] = "result"
    key: _Key
    state: ResultState
    message: Annotated[str, Field(max_length=2000)] = ""


FromFar: TypeAlias = Hello | Beat | FarSummary | Result
FromNear: TypeAlias = Hello | Beat | NeedAnswer | Check
_FROM_FAR: Final[TypeAdapter[FromFar]] = TypeAdapter(Annotated[FromFar, Field(discriminator="type")])
_FROM_NEAR: Final[TypeAdapter[FromNear]] = TypeAdapter(Annotated[FromNear, Field(discriminator="type")])


_M = TypeVar("_M")


class BadLineError(Exception):
    """A line that is not a message."""


def dump_line(message: BaseModel) -> bytes:
    """Return ``message`` as a line."""
    return message.model_dump_json().encode() + b"\n"


def parse_from_far(line: bytes) -> FromFar:
    """Return the message in ``line``. Raise `BadLineError`."""
    return _parse(_FROM_FAR, line)


def parse_from_near(line: bytes) -> FromNear:
    """Return the message in ``line``. Raise `BadLineError`."""
    return _parse(_FROM_NEAR, line)


def _parse(adapter: TypeAdapter[_M], line: bytes) -> _M:
    try:
        return adapter.validate_json(line)
    except ValidationError as error:
        raise BadLineError from error
