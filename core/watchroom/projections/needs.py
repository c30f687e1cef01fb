"""What waits for a person: opened by some rows, closed by others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from watchroom.errors import ConfigInvalid
from watchroom.model import CANCEL, MESSAGE, OUTSIDE, RESUME, SEEN, SET_BUDGET, SHARED, Row
from watchroom.projections.configuration import CONFIG_ZONES
from watchroom.projections.model import Need, order_needs
from watchroom.projections.processes import OpenWork
from watchroom.projections.sessions import RequestView
from watchroom.rules.budgets import budget_key
from watchroom.rules.config import Agent
from watchroom.rules.conflicts import EDIT_UNDONE, NOT_A_FILE, ConflictView, checkout_of
from watchroom.rules.decision_errors import SettingsUnsigned
from watchroom.rules.details import get_count, get_text
from watchroom.rules.handoffs import acknowledges, delivers, split_handoff
from watchroom.rules.needs import URGENCY, NeedKind, need_key, need_opened_by

REPEATED_REFUSALS: Final = 3
"""So many refusals in a row of one path mean that an agent does not get it."""
PATHS_COUNTED: Final = 50
"""Of so many paths the refusals of an agent are counted: those that it tried last."""


MOST_SEPARATE_EDITS: Final = 3
"""Maximum number of external edits found together that are needs of their own."""
TOGETHER_NS: Final = 10 * 10**9
"""Maximum nanoseconds from one external edit to the next that were found together."""


class NeedProjection:
    """The open needs. A need closes when it is dealt with, and only then.

    Those for conflicts and requests are made from the open ones; the others are kept here.
    """

    DERIVED: ClassVar[Mapping[str, object]] = {
        "_changed": True,
        "_current": (),
        "_conflicts": (),
        "_requests": (),
        "_work": MappingProxyType({}),
    }
    """What is made anew, and how it begins then (see `watchroom.projections.fold_state`)."""

    def __init__(self) -> None:
        self._open: dict[NeedKind, dict[str, Need]] = {kind: {} for kind in URGENCY}
        self._refusals: dict[str, dict[str, int]] = {}
        """By agent and path, since the agent's last success; the path that was tried last stands last."""
        self._authors: dict[str, str] = {}
        self._expired: list[Row] = []
        """The ends of requests that nobody answered in time, since a person looked."""
        self._work: Mapping[str, OpenWork] = MappingProxyType({})
        self._current: tuple[Need, ...] = ()
        self._conflicts: tuple[ConflictView, ...] = ()
        self._requests: tuple[RequestView, ...] = ()
        self._changed = False
        self._task_of: Mapping[str, str] = MappingProxyType({})
        self._bursts: dict[str, list[tuple[int, int]]] = {}
        """By zone and checkout, the external edits that were found together: the first one's row, and the
        time of the last one."""

    def register(self, agents: Iterable[Agent]) -> None:
        """Take ``agents`` for those that are registered from now on: who is of a task is lost with it."""
        self._task_of = {agent.id: agent.task for agent in agents if agent.task}

    def apply(self, row: Row, *, counts: bool = True, is_known: bool = False) -> None:
        """Take in ``row``, the next one that is no step. It closes needs only if it ``counts``; it opens no
        other need if it ``is_known`` to be one as a forged decision."""
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
        elif kind in ("budget", "breaker", "forged"):
            self._add(kind, row)
        elif kind == "handoff":
            self._add(kind, row, split_handoff(row.path)[1])
        elif kind == "message" and row.kind == "agent":
            # Of a failure that Watchroom tells people there is a need already.
            self._add(kind, row, row.actor)
        elif kind == "outside" and (row.zone not in SHARED or row.error == NOT_A_FILE):
            self._add(kind, row)
        elif kind == "expired":
            self._expired.append(row)
            self._show_expired()
        if row.zone in SHARED and row.version is not None:
            self._authors[need_key("unchecked", row.actor, row)] = row.actor

    def open_invalid_config(self, row: Row) -> None:
        """Take in that the config which ``row`` made does not count: a need, until another one is made."""
        self._add("outside", row._replace(error=ConfigInvalid.code))

    def open_unsigned_settings(self, row: Row, names: Iterable[str]) -> None:
        """Take in that the config file as ``row`` made it says something else, in the settings ``names``,
        than was signed: a need, until it is signed or the file says the same."""
        self._add("outside", row._replace(error=SettingsUnsigned.code), ", ".join(names))

    def close_unsigned_settings(self) -> None:
        """Take in that the config file says what was signed."""
        for key, need in [*self._open["outside"].items()]:
            if need.row.error == SettingsUnsigned.code:
                self._close("outside", key)

    def open_forged(self, row: Row, flaw: str) -> None:
        """Take in that the decision ``row`` does not count, for the rule ``flaw``."""
        self._add("forged", row._replace(error=flaw))

    def open_unreadable(self, row: Row, rule: str) -> None:
        """Record that ``row`` cannot be read, because it breaks ``rule``. All such rows are one need."""
        self._add("unreadable", row._replace(error=rule))

    def apply_step(self, row: Row) -> None:
        """Take in ``row``, a step of a session: an agent that an error stopped needs a person, until it goes
        on."""
        if row.version is None:
            return
        if need_opened_by(row) == "failed":
            self._add("failed", row)
        else:
            self._close("failed", row.actor)

    def end_agent(self, agent: str) -> None:
        """Close what waits for ``agent``, which works no more: nobody need help it. What it wrote to people
        still wants to be read."""
        self._close("failed", agent)
        self._close("breaker", agent)
        self._close_denied(agent)

    def lose(self, row: Row, work: OpenWork, opened_at: int) -> None:
        """Take in ``row``, which says that a process is gone that had to go on with ``work``, and of which
        there was the last sign at ``opened_at`` (nanoseconds since the epoch)."""
        self._open["lost"][row.path] = lost_need(row, work, opened_at)
        self._changed = True

    def current(
        self,
        conflicts: tuple[ConflictView, ...],
        requests: tuple[RequestView, ...],
        work: Mapping[str, OpenWork] = MappingProxyType({}),
    ) -> tuple[Need, ...]:
        """All open needs in the order of `order_needs`, with one for each of ``conflicts`` and ``requests``
        that are open, and without processes that have nothing left in ``work`` (by lease); the same object if
        none changed."""
        if work is not self._work:
            self._work = work
            self._update_lost(work)
        if self._changed or conflicts is not self._conflicts or requests is not self._requests:
            self._changed = False
            self._conflicts, self._requests = conflicts, requests
            needs = [need for opened in self._open.values() for need in opened.values()]
            needs += self._needs_of_conflicts(conflicts)
            needs += [_need_of_request(each) for each in requests]
            self._current = order_needs(needs)
        return self._current

    def _apply_edit(self, row: Row) -> None:
        """Take in the external edit ``row``: what was found at its path before is not on disk any more."""
        if row.error != NOT_A_FILE and (
            row.zone in SHARED or row.version is not None or row.error == EDIT_UNDONE
        ):
            self._close("outside", need_key("outside", row.actor, row))
        if row.zone in SHARED and row.outcome == "conflict":
            self._extend_burst(row)

    def _extend_burst(self, row: Row) -> None:
        """Count the external edit ``row`` to those found just before it, or begin with it anew."""
        bursts = self._bursts.setdefault(f"{row.zone} {checkout_of(row)}", [])
        if bursts and row.time - bursts[-1][1] <= TOGETHER_NS:
            bursts[-1] = bursts[-1][0], row.time
        else:
            bursts.append((row.seq, row.time))

    def _needs_of_conflicts(self, conflicts: Iterable[ConflictView]) -> Iterator[Need]:
        """A need for each conflict, and one for many external edits that were found together, as after
        copying a folder: they have one cause."""
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
            if len(found) <= MOST_SEPARATE_EDITS:
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
        """One need for all requests that expired since a person looked."""
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
        """Others have gone on with what a process left, or it has ended: once nothing is left, the loss needs
        nobody."""
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
        """Close what ``row`` deals with."""
        if row.outcome != "ok":
            return
        is_human = row.kind == "human"
        if row.actor in self._refusals and not is_human:
            self._close_denied(row.actor)
        if row.tool == SEEN and row.version is None:
            self._acknowledge(row)
        elif row.tool in (RESUME, CANCEL) and row.zone == "session":
            self._close("breaker", row.path.partition("/")[0])
        elif row.tool == MESSAGE and row.zone == "session":
            self._close("message", row.path.partition("/")[0])
        elif row.zone in SHARED:
            if row.version is not None and is_human and "resolves" not in row.detail:
                self._close("unchecked", need_key("unchecked", row.actor, row))
        elif row.zone == "handoff":
            known = self._open["handoff"].get(row.path)
            if known is not None and (delivers(row) or acknowledges(row, known.row)):
                self._close("handoff", row.path)
        elif row.zone in CONFIG_ZONES and row.version is not None:
            self._close("outside", need_key("outside", row.actor, row))
            if row.tool == SET_BUDGET:
                self._close("budget", budget_key(row.detail))

    def _count_refusal(self, row: Row) -> None:
        counts = self._refusals.setdefault(row.actor, {})
        key = need_key("denied", row.actor, row)
        count = counts.pop(key, 0) + 1
        counts[key] = count
        if count >= REPEATED_REFUSALS:
            self._add("denied", row, times=count)
        if len(counts) > PATHS_COUNTED:
            # What is a need stays counted; the path that was tried just now is none yet.
            del counts[next(each for each, tries in counts.items() if tries < REPEATED_REFUSALS)]

    def _close_denied(self, agent: str) -> None:
        for key in self._refusals.pop(agent, ()):
            self._close("denied", key)

    def _acknowledge(self, row: Row) -> None:
        """A person has looked: what came after what they saw stays open, and the refusals of an agent are
        counted anew."""
        detail = row.detail
        kind, actor, seen = detail.get("need"), get_text(detail, "actor"), get_count(detail, "row")
        if kind not in URGENCY:
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
        """Close what was not shown because ``lost`` was: whoever has seen that has seen both."""
        of_tasks = {agent for agent, task in self._task_of.items() if task in lost.work.tasks}
        work = lost.work._replace(agents=tuple(of_tasks.union(lost.work.agents)))
        whole = lost_need(lost.row, work, lost.opened_at)
        for lease, need in [*self._open["lost"].items()]:
            if covers(whole, need):
                self._close("lost", lease)


def covers(lost: Need, other: Need) -> bool:
    """Whether ``other`` is of a process that names no command to resume it, and all that it ran is resumed by
    the command of ``lost``: the two are one matter."""
    return (
        lost.kind == other.kind == "lost"
        and bool(lost.row.message)
        and not other.row.message
        and all(set(theirs) <= set(mine) for mine, theirs in zip(lost.work, other.work, strict=True))
    )


def lost_need(row: Row, work: OpenWork, opened_at: int) -> Need:
    """The need for a process that is gone, as ``row`` says, and left ``work``; there was the last sign of it
    at ``opened_at`` (nanoseconds since the epoch)."""
    return Need(
        "lost",
        row.path,
        row,
        against=", ".join(work.agents or work.tasks or work.commands),
        opened_at=opened_at,
        work=work,
    )


def _need_of_conflict(conflict: ConflictView) -> Need:
    row, since = conflict.row, conflict.since
    kind: NeedKind = "outside" if conflict.kind == "outside" else "conflict"
    against = conflict.against.actor if kind == "conflict" and conflict.against else ""
    key = need_key(kind, row.actor, row)
    return Need(kind, key, row, against, conflict.times, since.seq, since.time)


def _need_of_request(request: RequestView) -> Need:
    row = request.row
    return Need("request", row.path, row, since=row.seq, opened_at=row.time, deadline=request.expires)
