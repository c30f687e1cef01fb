"""What waits for a person: opened by some rows, closed by others."""

from __future__ import annotations

from typing import Final, cast

from watchroom.model import MESSAGE, SEEN, SHARED, Row
from watchroom.projections.model import Need
from watchroom.projections.sessions import RequestView
from watchroom.rules.conflicts import ConflictView
from watchroom.rules.handoffs import acknowledges, delivers, split_handoff
from watchroom.rules.needs import URGENCY, NeedKind, need_key, need_opened_by
from watchroom.rules.presence import presence_behind

REPEATED_REFUSALS: Final = 3
"""So many refusals in a row of one path mean that an agent does not get it."""
PATHS_COUNTED: Final = 50
"""Of so many paths the refusals of an agent are counted: those that it tried last."""


class NeedProjection:
    """The open needs. A need closes when it is dealt with, and only then.

    Those for conflicts and requests are made from the open ones; the others are kept here.
    """

    def __init__(self) -> None:
        # Each kind in the order of opening, so that the newest first needs no sorting.
        self._open: dict[NeedKind, dict[str, Need]] = {kind: {} for kind in URGENCY}
        self._refusals: dict[str, dict[str, int]] = {}
        """By agent and path, since the agent's last success; the path that was tried last stands last."""
        self._authors: dict[str, str] = {}
        self._presences: dict[str, str] = {}
        """The process that has to go on with an agent's session, by agent."""
        self._current: tuple[Need, ...] = ()
        self._conflicts: tuple[ConflictView, ...] = ()
        self._requests: tuple[RequestView, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Take in ``row``, the next one that is no step."""
        self._close_by(row)
        kind = need_opened_by(row)
        if kind == "denied":
            self._count_refusal(row)
        elif kind == "unchecked":
            author = self._authors.get(need_key(kind, row.actor, row), row.actor)
            if author != row.actor:
                self._add(kind, row, author)
        elif kind == "handoff":
            self._add(kind, row, split_handoff(row.path)[1])
        elif kind == "message" and row.kind == "agent":
            # Of a failure that Watchroom tells people there is a need already.
            self._add(kind, row, row.actor)
        elif kind == "outside" and row.zone not in SHARED:
            self._add(kind, row)
        elif kind == "lost":
            self._lose(row)
        if row.zone in SHARED and row.version is not None:
            self._authors[need_key("unchecked", row.actor, row)] = row.actor

    def apply_step(self, row: Row) -> None:
        """Take in ``row``, a step of a session: an agent that an error stopped needs a person, until it goes
        on."""
        if row.version is None:
            return
        if need_opened_by(row) == "failed":
            self._add("failed", row)
        else:
            self._close("failed", row.actor)
        self._set_presence(row.actor, presence_behind(row))

    def end_agent(self, agent: str) -> None:
        """Close what waits for ``agent``, which works no more: nobody need help it. What it wrote to people
        still wants to be read."""
        self._close("failed", agent)
        self._close_denied(agent)
        self._set_presence(agent, "")

    def current(
        self, conflicts: tuple[ConflictView, ...], requests: tuple[RequestView, ...]
    ) -> tuple[Need, ...]:
        """All open needs, with one for each of ``conflicts`` and ``requests`` that are open: the most urgent
        first, then the newest; the same object if none changed."""
        if self._changed or conflicts is not self._conflicts or requests is not self._requests:
            self._changed = False
            self._conflicts, self._requests = conflicts, requests
            by_kind = {kind: [*reversed(self._open[kind].values())] for kind in URGENCY}
            by_kind["conflict"] = [_need_of(each) for each in conflicts if each.kind == "write"]
            by_kind["request"] = [
                Need("request", each.row.path, each.row, since=each.id) for each in requests
            ]
            by_kind["outside"] += [_need_of(each) for each in conflicts if each.kind == "outside"]
            by_kind["outside"].sort(key=lambda need: need.row.seq, reverse=True)
            self._current = tuple(need for needs in by_kind.values() for need in needs)
        return self._current

    def _add(self, kind: NeedKind, row: Row, against: str = "", times: int = 1) -> None:
        key = need_key(kind, row.actor, row)
        known = self._open[kind].pop(key, None)
        if known is not None:
            times = max(times, known.times + 1)
        since = known.since if known is not None else row.seq
        self._open[kind][key] = Need(kind, key, row, against, times, since)
        self._changed = True

    def _lose(self, row: Row) -> None:
        """A process is gone: a need, if it ran agents that nobody else runs since."""
        agents = [agent for agent, presence in self._presences.items() if presence == row.path]
        if agents:
            self._open["lost"][row.path] = Need("lost", row.path, row, ", ".join(sorted(agents)))
            self._changed = True

    def _set_presence(self, agent: str, presence: str) -> None:
        """Somebody goes on with the agent, or nobody has to: once none is left, the loss needs nobody."""
        before = self._presences.get(agent, "")
        if before == presence:
            return
        self._presences[agent] = presence
        if before in self._open["lost"] and before not in self._presences.values():
            self._close("lost", before)

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
        if row.tool == SEEN:
            self._acknowledge(row)
        elif row.tool == MESSAGE and row.zone == "session":
            self._close("message", row.path.partition("/")[0])
        elif row.zone in SHARED:
            if row.version is not None and is_human and "resolves" not in row.detail:
                self._close("unchecked", need_key("unchecked", row.actor, row))
        elif row.zone == "handoff":
            known = self._open["handoff"].get(row.path)
            if known is not None and (delivers(row) or acknowledges(row, known.row)):
                self._close("handoff", row.path)
        elif row.zone == "config" and row.version is not None:
            self._close("outside", need_key("outside", row.actor, row))

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
        kind = cast("NeedKind", row.detail["need"])
        actor, seen = str(row.detail["actor"]), cast("int", row.detail["row"])
        key = need_key(kind, actor, row)
        known = self._open[kind].get(key)
        if known is None or (known.since if kind == "denied" else known.row.seq) > seen:
            return
        self._close(kind, key)
        if kind == "denied":
            self._refusals[actor].pop(key, None)


def _need_of(conflict: ConflictView) -> Need:
    row = conflict.row
    kind: NeedKind = "outside" if conflict.kind == "outside" else "conflict"
    against = conflict.against.actor if kind == "conflict" and conflict.against else ""
    return Need(kind, need_key(kind, row.actor, row), row, against, conflict.times, conflict.since.seq)
