"""Agents and rows as plain sentences, without symbols. All sentences are safe to print."""

from __future__ import annotations

from collections import Counter

from watchroom.features.alerts.payloads import AlertWording
from watchroom.features.alerts.payloads import end_sentence as end_with
from watchroom.features.alerts.rows import AlertItem
from watchroom.features.overview.model import Model, Need, urgent_needs
from watchroom.features.sessions.rows import client_call
from watchroom.kernel.rules.details import BufferDetail
from watchroom.model import USER, Row
from watchroom.texts import Catalogue, Language, catalogue
from watchroom_tui.formatters import labels
from watchroom_tui.formatters.need_texts import need_sentence
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.presentation.sanitize import sanitize, shorten


def end_sentence(text: str, texts: Catalogue) -> str:
    """Return ``text`` with a full stop. Add none if the text already ends a sentence."""
    return end_with(text, texts("watch.stop"))


def alert_wording(language: Language) -> AlertWording:
    """Return the words of alerts in ``language``."""
    texts = load_texts(language)

    def describe(need: Need) -> AlertItem:
        kind, key, since = need.identity
        return AlertItem(kind, key, since, need_sentence(need, texts), sanitize(need.agent), need.deadline)

    return AlertWording(catalogue(language), describe)


def time_left(expires: int, now: int, texts: Catalogue) -> str:
    """Return the time left until ``expires`` at ``now`` (both nanoseconds since the epoch)."""
    seconds = max(0, (expires - now) // 1_000_000_000)
    if seconds >= 7200:
        return texts("watch.left.hours", count=seconds // 3600)
    if seconds >= 120:
        return texts("watch.left.minutes", count=seconds // 60)
    return texts("watch.left.second" if seconds == 1 else "watch.left.seconds", count=seconds)


def state_lines(model: Model, now: int, texts: Catalogue) -> list[str]:
    """Return the lines that count agents by state, and needs. ``now`` is in nanoseconds since the epoch."""
    states = Counter(view.status(now) for view in model.agents)
    named = [texts(f"watch.status.{status}", count=count) for status, count in states.items()]
    separator = texts("watch.separator")
    return [
        texts(
            f"watch.agents.{_number(len(model.agents))}",
            count=len(model.agents),
            states=separator.join(named),
        ),
        needs_line(len(urgent_needs(model, now)), texts),
    ]


def needs_line(count: int, texts: Catalogue) -> str:
    """Return the sentence that counts the needs."""
    return texts(f"watch.needs.{_number(count)}", count=count)


def _number(count: int) -> str:
    return {0: "none", 1: "one"}.get(count, "some")


def row_sentence(row: Row, texts: Catalogue) -> str:
    """Return the sentence about ``row``: the action, its subject and its outcome, without a full stop."""
    subject = shorten(_row_subject(row, texts))
    parts = [f"{labels.tool_label(row, texts)} {subject}".rstrip(), _row_outcome(row, texts)]
    what = texts("watch.separator").join(each for each in parts if each)
    message = shorten(labels.row_message(row))
    sentence = texts("watch.row", who=sanitize(row.actor), what=what)
    return f"{sentence}{texts('watch.colon')}{message}" if message else sentence


def _row_subject(row: Row, texts: Catalogue) -> str:
    if row.zone in ("board", "lease"):
        return texts("watch.board", name=row.path)
    if row.zone == "buffer":
        return BufferDetail.of(row).name
    if row.zone == "agent" and row.path == USER:
        return texts("tasks.you")
    if row.zone in ("agent", "handoff", "workspace"):
        return row.path
    is_named = client_call(row) is not None or row.zone not in ("command", "session")
    return labels.path_of(row) if is_named else ""


def _row_outcome(row: Row, texts: Catalogue) -> str:
    call = client_call(row)
    if call is not None:
        is_denied = call.outcome == "denied"
        failed = texts("outcome.failed") if call.outcome == "failed" else ""
        return texts("watch.outcome.denied", error=sanitize(call.error)) if is_denied else failed
    if row.outcome == "conflict":
        return texts("watch.outcome.conflict")
    if row.outcome != "ok":
        return texts(f"watch.outcome.{row.outcome}", error=sanitize(row.error))
    if row.zone == "command" and "exit_code" in row.detail:
        return texts("row.exit", code=row.detail["exit_code"])
    has_version = row.version is not None and row.zone in (
        "collab",
        "private",
        "board",
        "handoff",
        "file",
        "repo",
    )
    return texts("watch.outcome.version", version=row.version) if has_version else ""
