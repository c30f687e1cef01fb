"""What waits for a person: opened by some rows, closed by others."""

from __future__ import annotations

from typing import Final, cast

from watchroom.checkout.layout import split_handoff
from watchroom.model import HUMAN_PREFIX, MESSAGE, OUTSIDE, SEEN, SHARED, UNCHECKED, USER, Row
from watchroom.projections.conflicts import ConflictView
from watchroom.projections.model import URGENCY, Need, NeedKind
from watchroom.projections.sessions import RequestView

STOPPED: Final = '"status": "error"'
"""In the detail of a step. Looked for as text: there are many steps, and few fail."""
STUBBORN: Final = 3
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
        self._current: tuple[Need, ...] = ()
        self._conflicts: tuple[ConflictView, ...] = ()
        self._requests: tuple[RequestView, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        self._apply_refusals(row)
        if row.tool == SEEN and row.outcome == "ok":
            self._apply_look(row)
        elif row.zone in SHARED:
            self._apply_shared(row)
        elif row.zone == "handoff":
            self._apply_handoff(row)
        elif row.tool == MESSAGE and row.outcome == "ok":
            self._apply_message(row)
        elif row.zone == "config" and row.version is not None:
            self._close("outside", f"config {row.path}")
        if _is_outside_edit(row) and row.zone not in SHARED:
            self._add(Need("outside", f"{row.zone} {row.path}", row))

    def apply_step(self, row: Row) -> None:
        """Take in a step of a session: an agent that an error stopped needs a person, until it goes on."""
        if row.version is None:
            return
        if STOPPED in row.detail_json:
            self._add(Need("failed", row.actor, row))
        else:
            self._close("failed", row.actor)

    def agent_ended(self, agent: str) -> None:
        """Nobody need help an agent that works no more. What it wrote to people still wants to be read."""
        self._close("failed", agent)
        self._close_denied(agent)

    def current(
        self, conflicts: tuple[ConflictView, ...], requests: tuple[RequestView, ...]
    ) -> tuple[Need, ...]:
        """All open needs, the most urgent first, then the newest; the same object if none changed."""
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

    def _add(self, need: Need) -> None:
        known = self._open[need.kind].pop(need.key, None)
        if known is None:
            need = need._replace(since=need.row.seq)
        else:
            need = need._replace(times=max(need.times, known.times + 1), since=known.since)
        self._open[need.kind][need.key] = need
        self._changed = True

    def _close(self, kind: NeedKind, key: str) -> None:
        if self._open[kind].pop(key, None) is not None:
            self._changed = True

    def _apply_refusals(self, row: Row) -> None:
        if row.actor.startswith(HUMAN_PREFIX):
            return
        if row.outcome != "denied":
            if row.outcome == "ok" and row.actor in self._refusals:
                self._close_denied(row.actor)
            return
        counts = self._refusals.setdefault(row.actor, {})
        key = _denied_key(row.actor, row)
        count = counts.pop(key, 0) + 1
        counts[key] = count
        if count >= STUBBORN:
            self._add(Need("denied", key, row, times=count))
        if len(counts) > PATHS_COUNTED:
            # What is a need stays counted; the path that was tried just now is none yet.
            del counts[next(each for each, tries in counts.items() if tries < STUBBORN)]

    def _close_denied(self, agent: str) -> None:
        for key in self._refusals.pop(agent, ()):
            self._close("denied", key)

    def _apply_look(self, row: Row) -> None:
        """A person has looked: what came after what they saw stays open, and a stubborn agent starts anew."""
        kind, seen, actor = row.detail["need"], row.detail["row"], str(row.detail["actor"])
        if kind == "failed":
            stopped = self._open["failed"].get(actor)
            if stopped is not None and stopped.row.seq <= cast("int", seen):
                self._close("failed", actor)
            return
        if kind == "message":
            wrote = self._open["message"].get(actor)
            if wrote is not None and wrote.row.seq <= cast("int", seen):
                self._close("message", actor)
            return
        if kind == "denied":
            key = _denied_key(actor, row)
            known = self._open["denied"].get(key)
            if known is not None and known.since <= cast("int", seen):
                self._close("denied", key)
                self._refusals[actor].pop(key, None)
            return
        looked_at = cast("NeedKind", kind)
        key = {"outside": f"{row.zone} {row.path}", "unchecked": place_of(row)}.get(looked_at, row.path)
        known = self._open[looked_at].get(key)
        if known is not None and known.row.seq <= cast("int", seen):
            self._close(looked_at, key)

    def _apply_message(self, row: Row) -> None:
        """What an agent wrote to people waits until somebody has looked at it, or answered. Of a failure
        that Watchroom tells them there is a need already."""
        if row.zone == "session":
            self._close("message", row.path.partition("/")[0])
        elif row.path == USER and row.kind == "agent":
            self._add(Need("message", row.actor, row, row.actor))

    def _apply_shared(self, row: Row) -> None:
        if row.version is None:
            return
        key = place_of(row)
        if row.actor.startswith(HUMAN_PREFIX) and "resolves" not in row.detail:
            self._close("unchecked", key)
        author = self._authors.get(key, row.actor)
        if row.base == UNCHECKED and author != row.actor:
            self._add(Need("unchecked", key, row, author))
        self._authors[key] = row.actor

    def _apply_handoff(self, row: Row) -> None:
        if row.version is not None and row.actor != OUTSIDE:
            _, receiver, _ = split_handoff(row.path)
            self._close("handoff", row.path)
            self._add(Need("handoff", row.path, row, receiver))
        elif row.tool == "acknowledge_handoff" and row.outcome == "ok":
            known = self._open["handoff"].get(row.path)
            if known is not None and (row.base or 0) >= (known.row.version or 0):
                self._close("handoff", row.path)


def place_of(row: Row) -> str:
    """A path that is not the path of another zone's; that of a shared file stands as it is."""
    return row.path if row.zone == "collab" else f"{row.zone} {row.path}"


def _denied_key(agent: str, row: Row) -> str:
    return f"{agent} {row.zone} {row.path}"


def _is_outside_edit(row: Row) -> bool:
    return row.actor == OUTSIDE and (row.outcome == "conflict" or row.error == "config_invalid")


def _need_of(conflict: ConflictView) -> Need:
    row = conflict.row
    if conflict.kind == "outside":
        return Need("outside", f"{row.zone} {row.path}", row, times=conflict.times, since=conflict.since.seq)
    against = conflict.against.actor if conflict.against else ""
    return Need("conflict", f"{place_of(row)} {row.actor}", row, against, conflict.times, conflict.since.seq)
