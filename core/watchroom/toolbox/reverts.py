"""The tool with which people revert what agents did (TIME: revert)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import Field

from watchroom.model import Zone
from watchroom.rules.reverts import Place, RevertSelection
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import NO_BOOL, FrozenModel, Message, Name, ParamsModel, ResultModel
from watchroom.toolbox.tool import Toolset
from watchroom.zones.reverts import RevertOutcome

TOOLS: Final = Toolset("revert", audience="people")
tool = TOOLS.tool

_RowCount = Annotated[int, Field(ge=0, le=2**63 - 1), NO_BOOL]
_MOST_LISTED: Final = 1000
ALL: Final = "all"
_DECIDABLE: Final[tuple[Zone, ...]] = ("private", "file")


class RevertWorkParams(ParamsModel):
    """Either ``undo``, the id of a revert; or what ``agents`` did (none: all), those of ``task`` if one is
    named, ``after`` a row and up to row ``until`` (none: now). ``take_back`` are private files
    (``private/AGENT/PATH``) and files of tasks (``file/TASK/PATH``), or ``all`` of them, of which everything
    goes, also where others went on from it. ``with_spawned``: what those did, too, whom the agents spawned
    since then."""

    agents: Annotated[list[Name] | None, Field(max_length=1000)] = None
    task: Name | None = None
    after: _RowCount | None = None
    until: _RowCount | None = None
    undo: Name | None = None
    clean_only: bool | None = None
    take_back: Annotated[list[Name] | None, Field(max_length=1000)] = None
    with_spawned: bool | None = None
    revert_id: Name | None = None
    message: Message | None = None


class RevertedPath(FrozenModel):
    """What became of a path: its new ``version``, 0 where it has none; ``reason`` says why it could not be
    reverted."""

    zone: str
    path: str
    version: int = 0
    reason: str = ""


class RevertWorkResult(ResultModel):
    """The first 1,000 paths each that were ``written``, where people have to decide about the rest
    (``conflicts``), and that could not be reverted (``could_not``); ``written_count`` of them were written.
    ``items`` are the first 1,000 that are no texts and were changed: documents, handoffs, requests.
    ``not_reverted`` counts by zone what else was done and stays."""

    revert_id: str
    agents: list[str]
    written_count: int
    written: list[RevertedPath]
    conflicts: list[RevertedPath]
    could_not: list[RevertedPath]
    items: list[RevertedPath]
    not_reverted: dict[str, int]


@tool("revert_work", zone="revert", path=("revert_id",), destroys=True, idempotent=True, may_conflict=True)
def revert_work(context: ToolContext, params: RevertWorkParams) -> RevertWorkResult:
    """Revert what ``params`` select, for the person of ``context``: all of it or nothing. Raises
    `RevertNotFound`, `RevertTooLarge`, `HeadsMoved`, `InvalidName`."""
    selection = RevertSelection(
        tuple(params.agents or ()),
        params.task or "",
        params.after or 0,
        params.until,
        undo=params.undo or "",
        decided=decided_places(params.take_back or ()),
        decides_all=ALL in (params.take_back or ()),
        with_spawned=bool(params.with_spawned),
    )
    outcome = context.zones.reverts.apply(
        context.actor,
        selection,
        revert_id=params.revert_id or "",
        message=params.message or "",
        clean_only=bool(params.clean_only),
    )
    return _result(outcome)


def decided_places(named: Iterable[str]) -> tuple[Place, ...]:
    """The places that ``named`` name, each as ``ZONE/PATH``; others name none."""
    pairs = (each.partition("/") for each in named)
    return tuple((zone, path) for name, _, path in pairs for zone in _DECIDABLE if name == zone)


def _result(outcome: RevertOutcome) -> RevertWorkResult:
    record = outcome.record
    return RevertWorkResult(
        revert_id=outcome.id,
        agents=[*record.agents],
        written_count=len(record.written),
        written=[
            RevertedPath(zone=zone, path=path, version=version)
            for zone, path, version in record.written[:_MOST_LISTED]
        ],
        conflicts=[RevertedPath(zone=zone, path=path) for zone, path in record.conflicts[:_MOST_LISTED]],
        could_not=[
            RevertedPath(zone=zone, path=path, reason=reason)
            for zone, path, reason in record.could_not[:_MOST_LISTED]
        ],
        items=[RevertedPath(zone=zone, path=path) for zone, path in record.items[:_MOST_LISTED]],
        not_reverted=dict(record.not_reverted),
    )
