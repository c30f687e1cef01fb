"""Rows, agents and needs in words: the same on every screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from watchroom.model import SEEN, SETTLING_NOTES, Row
from watchroom.projections import Need, Status
from watchroom.texts import Catalogue

from watchroom_tui.columns import fit_path
from watchroom_tui.safe import safe
from watchroom_tui.spans import Span

STATUS_MARKS: Final[dict[Status, Span]] = {
    "running": Span("●", "ok"),
    "idle": Span("○", "dim"),
    "error": Span("✖", "error"),
}
NEED_MARKS: Final[dict[str, Span]] = {
    "conflict": Span("⚔", "error"),
    "outside": Span("✎", "warning"),
    "unchecked": Span("‼", "warning"),
    "denied": Span("⊘", "warning"),
    "stalled": Span("◌", "warning"),
    "handoff": Span("✉", "accent"),
}


MOST_NAMED: Final = 3
SUBJECT_WIDTH: Final = 40


def tool(row: Row, words: Catalogue) -> str:
    """The tool's name, short: a glance must do. A tool that we do not know keeps its own."""
    key = f"tool.{row.tool}"
    return words(key) if key in words else safe(row.tool)


def path_of(row: Row) -> str:
    """The path as its zone shows it."""
    if row.zone == "private":
        owner, _, filename = row.path.partition("/")
        return filename if owner == row.actor and filename else row.path
    return row.path


def outcome(row: Row, words: Catalogue) -> Span:
    """What came of an operation, in a few words."""
    if row.outcome == "ok":
        if row.deleted:
            return Span(words("row.deleted"), "warning")
        if row.version is not None:
            if row.base == -1 and row.version > 1 and row.zone == "collab":
                return Span(words("row.unchecked", version=row.version), "warning")
            return Span(f"v{row.version}", "ok")
        if row.tool in (*SETTLING_NOTES, SEEN):
            return Span("✓", "ok")
        if row.tool == "acknowledge_handoff":
            return Span(f"✓ v{row.base}", "ok")
        return Span(words("row.read", version=row.base) if row.base else "·", "dim")
    if row.outcome == "conflict":
        if row.error == "outside_edit":
            return Span(words("row.outside_deleted" if row.sha256 is None else "row.outside"), "warning")
        current = row.detail.get("current", "?")
        return Span(words("row.conflict", base=row.base, current=current), "error")
    kind = words(f"outcome.{row.outcome}")
    return Span(f"{kind}: {safe(row.error)}", "error" if row.outcome == "denied" else "warning")


def subject(need: Need) -> str:
    """What a need is about: of a handoff, the file."""
    return need.row.path.partition("/")[2] if need.row.zone == "handoff" else need.row.path


def need_text(need: Need, words: Catalogue) -> str:
    """Who waits for what, without the path."""
    if need.row.error == "config_invalid":
        return words("need.config")
    if need.kind == "outside" and need.row.sha256 is None:
        return words("need.deleted")
    who = safe(need.row.actor)
    if need.kind == "conflict" and not need.against:
        return words("need.conflict_with_nothing", who=who)
    text = words(f"need.{need.kind}", who=who, against=safe(need.against), count=need.times)
    return f"{text} ×{need.times}" if need.times > 1 and need.kind != "denied" else text


def alert_text(needs: Sequence[Need], words: Catalogue) -> str:
    """Some needs in one line; the first few by name."""
    named = [
        words(
            "alert.thing",
            kind=words(f"need.kind.{need.kind}"),
            subject=fit_path(safe(subject(need)), SUBJECT_WIDTH).strip(),
            what=need_text(need, words),
        )
        for need in needs[:MOST_NAMED]
    ]
    if len(needs) == 1:
        return named[0]
    more = ["…"] if len(needs) > MOST_NAMED else []
    return words("alert.several", count=len(needs), things=" · ".join(named + more))
