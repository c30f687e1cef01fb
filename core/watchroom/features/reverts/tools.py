"""The tool with which people revert the work of agents (TIME: revert)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import Field

from watchroom.features.reverts.rules import Place, RevertSelection
from watchroom.features.reverts.service import RevertOutcome
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import NO_BOOL, FrozenModel, Message, Name, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset
from watchroom.kernel.zones import ZONES

TOOLS: Final = Toolset("revert", audience="people")
tool = TOOLS.tool

_RowCount = Annotated[int, Field(ge=0, le=2**63 - 1), NO_BOOL]
_MAX_LISTED: Final = 1000
ALL: Final = "all"
_DECIDABLE: Final = tuple(zone for zone, spec in ZONES.items() if spec.reverts == "text" and spec.owner)


class RevertWorkParams(ParamsModel):
    """The work to revert: either ``undo``, the id of a revert, or a selection of agents' work.

    - ``agents``, ``task``: the agents whose work is reverted; default: all agents.
    - ``after``, ``until``: rows after ``after`` up to ``until``; default: from the first row to now.
    - ``take_back``: private files (``private/AGENT/PATH``) and task files (``file/TASK/PATH``) whose selected
      changes are all removed, even if others built on them. ``all`` means all such files.
    - ``with_spawned``: also revert the work of agents that the selected agents spawned since.
    """

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
    """The result for a path. ``version``: the new version, 0 if there is none. ``reason``: why it could not
    be reverted."""

    zone: str
    path: str
    version: int = 0
    reason: str = ""


class RevertWorkResult(ResultModel):
    """The result of a revert, with at most 1,000 paths per list.

    - ``written``: the reverted paths; ``written_count`` is their full number.
    - ``conflicts``: paths with remaining changes that people must decide on.
    - ``could_not``: paths that could not be reverted.
    - ``items``: changed items without versions of text: documents, handoffs, requests.
    - ``not_reverted``: the number of other operations by zone, which are not reverted.
    """

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
    """Revert the selected work atomically. Raise `RevertNotFound`, `RevertTooLarge`, `HeadsMoved`,
    `InvalidName`."""
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
        context.call,
        selection,
        revert_id=params.revert_id or "",
        message=params.message or "",
        clean_only=bool(params.clean_only),
    )
    return _result(outcome)


def decided_places(named: Iterable[str]) -> tuple[Place, ...]:
    """Parse ``named`` as places in the form ``ZONE/PATH``. Other texts are ignored."""
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
            for zone, path, version in record.written[:_MAX_LISTED]
        ],
        conflicts=[RevertedPath(zone=zone, path=path) for zone, path in record.conflicts[:_MAX_LISTED]],
        could_not=[
            RevertedPath(zone=zone, path=path, reason=reason)
            for zone, path, reason in record.could_not[:_MAX_LISTED]
        ],
        items=[RevertedPath(zone=zone, path=path) for zone, path in record.items[:_MAX_LISTED]],
        not_reverted=dict(record.not_reverted),
    )
