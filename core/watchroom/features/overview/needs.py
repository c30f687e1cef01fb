"""Needs: items that wait for a person. Some rows open them, and other rows close them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from watchroom.errors import ConfigInvalid, SettingsUnsigned
from watchroom.features.budgets.rules import budget_key
from watchroom.features.checks.rows import read_end
from watchroom.features.config.rows import Agent
from watchroom.features.handoffs.rows import HANDOFF_NEED, acknowledges, delivers, split_handoff
from watchroom.features.needs.rules import URGENCY, NeedKind, need_key, need_opened_by
from watchroom.features.overview.configuration import CONFIG_ZONES
from watchroom.features.overview.model import Need, order_needs
from watchroom.features.overview.processes import OpenWork
from watchroom.features.plans.rows import OVERLAP_NEED, is_plan, read_plan
from watchroom.features.sessions.rows import is_leave, parking_of
from watchroom.features.sessions.view import RequestView
from watchroom.features.trees.rows import (
    INTO,
    LAND,
    LANDING_PREFIX,
    PREDICT,
    is_landing_path,
    read_prediction,
    split_repo_path,
)
from watchroom.kernel.rules.conflicts import EDIT_UNDONE, NOT_A_FILE, ConflictView, checkout_of
from watchroom.kernel.rules.details import get_count, get_text
from watchroom.kernel.zones import DELIVERED, SHARED
from watchroom.model import CANCEL, END_CHECK, MESSAGE, OUTSIDE, RESUME, SEEN, SET_BUDGET, SYSTEM, Row

REPEATED_REFUSALS: Final = 3
"""The number of successive refusals of one path that open a need."""
MAX_COUNTED_PATHS: Final = 50
"""Maximum number of paths per agent whose refusals are counted. The most recently tried paths are kept."""


MAX_SEPARATE_EDITS: Final = 3
"""Maximum number of external edits found together that are separate needs."""
TOGETHER_NS: Final = 10 * 10**9
"""Maximum time between two external edits that were found together, in nanoseconds."""


class NeedProjection:
    """The open needs. A need stays open until somebody deals with it.

    Needs for conflicts and requests are derived from the open conflicts and requests. Other needs are kept
    here.
    """

    DERIVED: ClassVar[Mapping[str, object]] = {
        "_changed": True,
        "_current": (),
        "_conflicts": (),
        "_requests": (),
        "_work": MappingProxyType({}),
        "_quiet": frozenset(),
        "_plans": frozenset(),
    }
    """Attributes that a snapshot leaves out (see `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        self._open: dict[NeedKind, dict[str, Need]] = {kind: {} for kind in URGENCY}
        self._refusals: dict[str, dict[str, int]] = {}
        """The refusals by agent and path since the agent's last success. The most recently tried path comes
        last."""
        self._authors: dict[str, str] = {}
        self._expired: list[Row] = []
        """The ends of requests that expired since a person last acknowledged them."""
        self._dismissed: dict[str, frozenset[str]] = {}
        """The files of predicted conflicts that a person has dismissed, by the need's key."""
        self._quiet: frozenset[str] = frozenset()
        self._plans: frozenset[int] = frozenset()
        self._work: Mapping[str, OpenWork] = MappingProxyType({})
        self._current: tuple[Need, ...] = ()
        self._conflicts: tuple[ConflictView, ...] = ()
        self._requests: tuple[RequestView, ...] = ()
        self._changed = False
        self._task_of: Mapping[str, str] = MappingProxyType({})
        self._bursts: dict[str, list[tuple[int, int]]] = {}
        """External edits found together, by zone and checkout: the row of the first edit, and the time of the
        last."""

    def register(self, agents: Iterable[Agent]) -> None:
        """Replace the registered agents by ``agents``, because an agent is lost together with its task."""
        self._task_of = {agent.id: agent.task for agent in agents if agent.task}

    def apply(self, row: Row, *, counts: bool = True, is_known: bool = False) -> None:
        """Apply ``row``, an operation.

        - ``counts``: whether it can close needs. A decision without a required signature does not count.
        - ``is_known``: it is already a need as a forged decision, and opens no second need.
        """
        if counts:
            self._close_by(row)
        kind = need_opened_by(row) if not is_known else None
        if row.actor == OUTSIDE:
            self._apply_edit(row)
        if kind == "denied":
            self._count_refusal(row)
        elif kind == "unchecked":
            author = self._authors.get(need_key(kind, row.actor, row), row.actor)
            if author != row.actor:
                self._add(kind, row, author)
        elif kind in ("budget", "breaker", "forged", "unproven"):
            self._add(kind, row)
        elif kind == HANDOFF_NEED:
            self._add(kind, row, split_handoff(row.path)[1])
        elif kind == "message" and row.kind == "agent":
            # Failures that Watchroom reports to people are already needs.
            self._add(kind, row, row.actor)
        elif kind == "outside" and (row.zone not in SHARED or row.error == NOT_A_FILE):
            self._add(kind, row)
        elif kind == "expired":
            self._expired.append(row)
            self._show_expired()
        if row.zone in SHARED and row.version is not None:
            self._authors[need_key("unchecked", row.actor, row)] = row.actor

    def open_invalid_config(self, row: Row) -> None:
        """Open a need because the config of ``row`` is invalid. It closes with the next version."""
        self._add("outside", row._replace(error=ConfigInvalid.code))

    def open_unsigned_settings(self, row: Row, names: Iterable[str]) -> None:
        """Open a need because the config file of ``row`` differs from the signed settings in ``names``.

        It closes when the settings are signed, or when the file equals them again.
        """
        self._add("outside", row._replace(error=SettingsUnsigned.code), ", ".join(names))

    def close_unsigned_settings(self) -> None:
        """Close the need, because the config file equals the signed settings."""
        for key, need in [*self._open["outside"].items()]:
            if need.row.error == SettingsUnsigned.code:
                self._close("outside", key)

    def open_forged(self, row: Row, flaw: str) -> None:
        """Open a need because the decision ``row`` does not count: it breaks the rule ``flaw``."""
        self._add("forged", row._replace(error=flaw))

    def open_unreadable(self, row: Row, rule: str) -> None:
        """Open a need because ``row`` cannot be read: it breaks ``rule``. All such rows are one need."""
        self._add("unreadable", row._replace(error=rule))

    def apply_step(self, row: Row) -> None:
        """Apply ``row``, a step of a session. A failed or parked session is a need until it continues."""
        if row.version is None:
            return
        kind = need_opened_by(row)
        if kind == "failed":
            self._add("failed", row)
        else:
            self._close("failed", row.actor)
        parking = parking_of(row)
        if kind != "parked" or parking is None:
            self._close("parked", row.actor)
        elif parking.since == row.version:
            # Later steps of a parked session do not open a need again that a person has settled.
            self._close("parked", row.actor)
            self._add("parked", row)

    def end_agent(self, agent: str) -> None:
        """Close the needs of ``agent``, which has ended. Its messages to people stay open."""
        self._close("failed", agent)
        self._close("parked", agent)
        self._close("breaker", agent)
        self._close("unproven", agent)
        self._close_denied(agent)

    def lose(self, row: Row, work: OpenWork, opened_at: int) -> None:
        """Open a need because a process died with unfinished ``work``. ``row`` reports its death.

        ``opened_at``: the time of the process's last row, in nanoseconds since the epoch.
        """
        self._open["lost"][row.path] = lost_need(row, work, opened_at)
        self._changed = True

    def current(
        self,
        conflicts: tuple[ConflictView, ...],
        requests: tuple[RequestView, ...],
        work: Mapping[str, OpenWork] = MappingProxyType({}),
        quiet: frozenset[str] = frozenset(),
        plans: frozenset[int] = frozenset(),
    ) -> tuple[Need, ...]:
        """Return all open needs in the order of `order_needs`, the same object if none changed.

        - ``conflicts``, ``requests``: the open conflicts and requests. Each is a need.
        - ``work``: the unfinished work of each process, by lease. Needs of lost processes without work are
          closed.
        - ``quiet``: the trees whose agents have stopped. A predicted conflict of two of them is a need.
        - ``plans``: the rows of the active plans. An overlap of two of them is a need.
        """
        if (quiet, plans) != (self._quiet, self._plans):
            self._quiet, self._plans, self._changed = quiet, plans, True
        if work is not self._work:
            self._work = work
            self._update_lost(work)
        if self._changed or conflicts is not self._conflicts or requests is not self._requests:
            self._changed = False
            self._conflicts, self._requests = conflicts, requests
            needs = [
                need
                for kind, opened in self._open.items()
                for key, need in opened.items()
                if kind != OVERLAP_NEED and (kind != "predicted" or quiet.issuperset(key.split()))
            ]
            needs = [*join_parked(needs)]
            needs += _needs_of_plans(self._open[OVERLAP_NEED].values(), plans)
            needs += self._needs_of_conflicts(conflicts)
            needs += [_need_of_request(each) for each in requests]
            self._current = order_needs(needs)
        return self._current

    def apply_check(self, row: Row) -> None:
        """Apply ``row``, a note about a check. Work that passes is proven."""
        if row.tool == END_CHECK and read_end(row).state == "passed":
            self._close("unproven", row.path)

    def apply_prediction(self, row: Row) -> None:
        """Apply ``row`` if it predicts the conflicts of two trees. A dismissed need stays dismissed until
        other files conflict."""
        if row.tool != PREDICT or row.actor != SYSTEM:
            return
        prediction, key = read_prediction(row), need_key("predicted", row.actor, row)
        if not prediction.paths:
            self._dismissed.pop(key, None)
            self._close("predicted", key)
        elif not self._dismissed.get(key, frozenset()).issuperset(prediction.paths):
            self._dismissed.pop(key, None)
            known = self._open["predicted"].get(key)
            since, opened_at = (known.since, known.opened_at) if known is not None else (row.seq, row.time)
            self._open["predicted"][key] = Need("predicted", key, row, since=since, opened_at=opened_at)
            self._changed = True

    def apply_plan(self, row: Row) -> None:
        """Apply ``row`` if it declares or clears a plan."""
        if is_plan(row):
            self._close(OVERLAP_NEED, row.path)
            if read_plan(row).overlaps:
                self._add(OVERLAP_NEED, row)

    def apply_landing(self, row: Row) -> None:
        """Apply ``row`` if it is a conflict of a landing. Its file needs no prediction any more, because the
        conflict itself is a need."""
        if row.tool != LAND or row.outcome != "conflict" or not is_landing_path(row.path):
            return
        tree, name = split_repo_path(row.path.removeprefix(LANDING_PREFIX))
        into = get_text(row.detail, INTO)
        for key, need in [*self._open["predicted"].items()]:
            prediction = read_prediction(need.row)
            if tree in prediction.trees and into in prediction.names:
                self._dismissed[key] = self._dismissed.get(key, frozenset()) | {name}
                if self._dismissed[key].issuperset(prediction.paths):
                    self._close("predicted", key)

    def _dismiss(self, seen: int) -> None:
        """Close the need of the prediction in row ``seen``, if there is no newer prediction of the pair."""
        for key, need in [*self._open["predicted"].items()]:
            if need.row.seq == seen:
                self._dismissed[key] = frozenset(read_prediction(need.row).paths)
                self._close("predicted", key)

    def _apply_edit(self, row: Row) -> None:
        """Apply the external edit ``row``. It replaces an earlier edit of the same path."""
        if row.error != NOT_A_FILE and (
            row.zone in SHARED or row.version is not None or row.error == EDIT_UNDONE
        ):
            self._close("outside", need_key("outside", row.actor, row))
        if row.zone in SHARED and row.outcome == "conflict":
            self._extend_burst(row)

    def _extend_burst(self, row: Row) -> None:
        """Add the external edit ``row`` to the current burst of edits, or begin a new burst."""
        bursts = self._bursts.setdefault(f"{row.zone} {checkout_of(row)}", [])
        if bursts and row.time - bursts[-1][1] <= TOGETHER_NS:
            bursts[-1] = bursts[-1][0], row.time
        else:
            bursts.append((row.seq, row.time))

    def _needs_of_conflicts(self, conflicts: Iterable[ConflictView]) -> Iterator[Need]:
        """Yield a need for each conflict. Many external edits that were found together are one need, because
        they have one cause, such as a copied folder."""
        together: dict[str, list[ConflictView]] = {}
        for each in conflicts:
            if each.kind == "outside":
                place = f"{each.zone} {checkout_of(each.row)}"
                bursts = self._bursts.get(place, [])
                at = bisect_right(bursts, each.since.seq, key=lambda burst: burst[0])
                first = bursts[at - 1][0] if at else each.since.seq
                together.setdefault(f"{place} {first}", []).append(each)
            else:
                yield _need_of_conflict(each)
        for key, found in together.items():
            if len(found) <= MAX_SEPARATE_EDITS:
                yield from map(_need_of_conflict, found)
            else:
                first_need = _need_of_conflict(min(found, key=lambda each: each.since.seq))
                since = int(key.rpartition(" ")[2])
                yield first_need._replace(key=key, since=since, paths=len(found))

    def _add(self, kind: NeedKind, row: Row, against: str = "", times: int = 1) -> None:
        key = need_key(kind, row.actor, row)
        known = self._open[kind].pop(key, None)
        if known is not None:
            times = max(times, known.times + 1)
        since, opened_at = (known.since, known.opened_at) if known is not None else (row.seq, row.time)
        self._open[kind][key] = Need(kind, key, row, against, times, since, opened_at)
        self._changed = True

    def _show_expired(self) -> None:
        """Open one need for all requests that expired since a person last acknowledged them."""
        self._changed = True
        self._open["expired"].clear()
        if self._expired:
            first, newest = self._expired[0], self._expired[-1]
            agents = dict.fromkeys(row.path.partition("/")[0] for row in reversed(self._expired))
            key = need_key("expired", newest.actor, newest)
            self._open["expired"][key] = Need(
                "expired", key, newest, ", ".join(agents), len(self._expired), first.seq, first.time
            )

    def _update_lost(self, work: Mapping[str, OpenWork]) -> None:
        """Update the needs of lost processes with their remaining ``work``. Close needs without remaining
        work."""
        for lease, need in [*self._open["lost"].items()]:
            left = work.get(lease)
            if left is None:
                self._close("lost", lease)
            elif left != need.work:
                self._open["lost"][lease] = lost_need(need.row, left, need.opened_at)
                self._changed = True

    def _close(self, kind: NeedKind, key: str) -> None:
        if self._open[kind].pop(key, None) is not None:
            self._changed = True

    def _close_by(self, row: Row) -> None:
        """Close the needs that ``row`` settles."""
        if row.outcome != "ok":
            return
        is_human = row.kind == "human"
        if row.actor in self._refusals and not is_human:
            self._close_denied(row.actor)
        if row.tool == SEEN and row.version is None:
            self._acknowledge(row)
        elif row.tool in (RESUME, CANCEL) and row.zone == "session":
            self._apply_steering(row)
        elif row.tool == MESSAGE and row.zone == "session":
            self._close("message", row.path.partition("/")[0])
        elif row.zone in SHARED:
            if row.version is not None and is_human and "resolves" not in row.detail:
                self._close("unchecked", need_key("unchecked", row.actor, row))
        elif row.zone in DELIVERED:
            known = self._open[HANDOFF_NEED].get(row.path)
            if known is not None and (delivers(row) or acknowledges(row, known.row)):
                self._close(HANDOFF_NEED, row.path)
        elif row.zone in CONFIG_ZONES and row.version is not None:
            self._close("outside", need_key("outside", row.actor, row))
            if row.tool == SET_BUDGET:
                self._close("budget", budget_key(row.detail))

    def _apply_steering(self, row: Row) -> None:
        """Close the needs of an agent that a person resumed or ended. The agent continues later if ``row`` is
        a leave."""
        agent = row.path.partition("/")[0]
        self._close("parked", agent)
        if not is_leave(row):
            self._close("breaker", agent)

    def _count_refusal(self, row: Row) -> None:
        counts = self._refusals.setdefault(row.actor, {})
        key = need_key("denied", row.actor, row)
        count = counts.pop(key, 0) + 1
        counts[key] = count
        if count >= REPEATED_REFUSALS:
            self._add("denied", row, times=count)
        if len(counts) > MAX_COUNTED_PATHS:
            # Paths that are already needs stay counted. The path of this row is not a need yet.
            del counts[next(each for each, tries in counts.items() if tries < REPEATED_REFUSALS)]

    def _close_denied(self, agent: str) -> None:
        for key in self._refusals.pop(agent, ()):
            self._close("denied", key)

    def _acknowledge(self, row: Row) -> None:
        """Apply ``row``, with which a person acknowledged a need.

        Anything newer than the state that the person saw stays open. Refusals are counted from 0 again.
        """
        detail = row.detail
        kind, actor, seen = detail.get("need"), get_text(detail, "actor"), get_count(detail, "row")
        if kind not in URGENCY:
            return
        if kind == "predicted":
            self._dismiss(seen)
            return
        if kind == "expired":
            self._expired = [each for each in self._expired if each.seq > seen]
            self._show_expired()
            return
        key = need_key(kind, actor, row)
        known = self._open[kind].get(key)
        if known is None or (known.since if kind == "denied" else known.row.seq) > seen:
            return
        self._close(kind, key)
        if kind == "lost":
            self._close_covered(known)
        if kind == "denied":
            self._refusals.get(actor, {}).pop(key, None)

    def _close_covered(self, lost: Need) -> None:
        """Close the needs that were hidden by ``lost``, because the person has also acknowledged them."""
        of_tasks = {agent for agent, task in self._task_of.items() if task in lost.work.tasks}
        work = lost.work._replace(agents=tuple(of_tasks.union(lost.work.agents)))
        whole = lost_need(lost.row, work, lost.opened_at)
        for lease, need in [*self._open["lost"].items()]:
            if covers(whole, need):
                self._close("lost", lease)


def join_parked(needs: Iterable[Need]) -> Iterator[Need]:
    """Yield ``needs``. The loss of a process that only ran parked agents is part of their needs."""
    given = [*needs]
    parked = {need.key for need in given if need.kind == "parked"}
    lost = [
        need
        for need in given
        if need.kind == "lost"
        and need.work.agents
        and parked.issuperset(need.work.agents)
        and not (need.work.tasks or need.work.commands)
    ]
    process = {agent: need for need in lost for agent in need.work.agents}
    for need in given:
        if need.kind == "parked" and (ended := process.get(need.key)) is not None:
            yield need._replace(command=ended.row.message, work=OpenWork((need.key,)))
        elif need not in lost:
            yield need


def covers(lost: Need, other: Need) -> bool:
    """Return whether ``lost`` hides ``other``.

    It does if the process of ``other`` names no command to resume it, and the command of ``lost`` resumes all
    of its work.
    """
    return (
        lost.kind == other.kind == "lost"
        and bool(lost.row.message)
        and not other.row.message
        and all(set(theirs) <= set(mine) for mine, theirs in zip(lost.work, other.work, strict=True))
    )


def lost_need(row: Row, work: OpenWork, opened_at: int) -> Need:
    """Return the need for a process that died with unfinished ``work``. ``row`` reports its death.

    ``opened_at``: the time of the process's last row, in nanoseconds since the epoch.
    """
    return Need(
        "lost",
        row.path,
        row,
        against=", ".join(work.agents or work.tasks or work.commands),
        opened_at=opened_at,
        work=work,
    )


def _needs_of_plans(opened: Iterable[Need], plans: frozenset[int]) -> Iterator[Need]:
    """Yield the needs of ``opened``, overlaps of plans, in which two plans are active. ``plans``: the rows of
    the active plans."""
    for need in opened:
        overlaps = read_plan(need.row).overlaps if need.row.seq in plans else ()
        if others := [each.agent for each in overlaps if each.row in plans]:
            yield need._replace(against=", ".join(others))


def _need_of_conflict(conflict: ConflictView) -> Need:
    row, since = conflict.row, conflict.since
    kind: NeedKind = "outside" if conflict.kind == "outside" else "conflict"
    against = conflict.against.actor if kind == "conflict" and conflict.against else ""
    key = need_key(kind, row.actor, row)
    return Need(kind, key, row, against, conflict.times, since.seq, since.time)


def _need_of_request(request: RequestView) -> Need:
    row = request.row
    return Need("request", row.path, row, since=row.seq, opened_at=row.time, deadline=request.expires)
