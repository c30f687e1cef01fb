"""Needs in lists and in the header: their columns, keys and times. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from watchroom.features.overview.model import Need
from watchroom.texts import Catalogue

from watchroom_tui.formatters import labels
from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.columns import format_age
from watchroom_tui.formatters.machines import RemoteNeed
from watchroom_tui.formatters.need_texts import need_subject, need_text, omitted_text, restart_text
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.presentation.sanitize import sanitize

SOON_SECONDS: Final = 30
"""Seconds before a deadline from which it is shown in red."""
_OF_AGENTS: Final = (
    "request",
    "message",
    "failed",
    "parked",
    "breaker",
    "unproven",
    "denied",
    "stalled",
    "lost",
    "expired",
)
"""The kinds of needs about agents. Other kinds are about files."""


def need_party(need: Need, texts: Catalogue) -> Span:
    """Return the agent or file of ``need``, or the number of agents if there are several. `need_matter` then
    names the agents."""
    if len(need.work.agents) > 1:
        return Span(texts("header.agents", count=len(need.work.agents)), "strong")
    if need.kind in ("lost", "expired"):
        return Span(sanitize(need.against), agent_class(need.agent))
    if need.kind in _OF_AGENTS:
        return Span(sanitize(need.agent), agent_class(need.agent))
    if need.kind in ("overlap", "predicted"):
        return Span(need_subject(need, texts), "strong")
    path = need.row.path.partition("/")[2] if need.row.zone == "handoff" else labels.path_of(need.row)
    return Span(sanitize(path), "strong")


def need_matter(need: Need, texts: Catalogue) -> str:
    """Return what ``need`` is about, without the agent or file that `need_party` returns. Sanitized."""
    times = f"×{need.times} " if need.times > 1 else ""
    if need.kind in ("request", "message"):
        return times + need_subject(need, texts)
    if need.kind == "lost":
        resume = texts("needs.resume", command=sanitize(need.hint)) if need.hint else ""
        resume += restart_text(need, texts) + omitted_text(need, texts)
        if len(need.work.agents) > 1:
            return f"{texts('needs.processes_ended')}{resume} · {sanitize(need.against)}"
        return texts("needs.process_ended") + resume
    if need.kind == "expired":
        return texts("needs.expired" if need.times > 1 else "needs.expired_one", count=need.times)
    if need.kind == "denied":
        return texts("needs.denied", count=need.times, path=sanitize(labels.path_of(need.row)))
    if need.kind == "stalled":
        return texts("needs.stalled", path=sanitize(need.row.path.partition("/")[2]))
    return need_text(need, texts)


def is_soon(need: Need | RemoteNeed, now: int) -> bool:
    """Return whether the deadline of ``need`` is within `SOON_SECONDS` of ``now`` (nanoseconds since the
    epoch)."""
    return need.deadline is not None and need.deadline - now < SOON_SECONDS * 1_000_000_000


def time_left(need: Need | RemoteNeed, now: int) -> str:
    """Return the time to the deadline of ``need`` at ``now`` (nanoseconds since the epoch) as ``12 s``. Empty
    without a deadline."""
    return "" if need.deadline is None else format_age(now, need.deadline)


def need_time(need: Need | RemoteNeed, now: int, texts: Catalogue) -> Span:
    """Return the time to the deadline of ``need``, or its age if it has no deadline."""
    left = time_left(need, now)
    if left:
        return Span(texts("needs.left", time=left), "error" if is_soon(need, now) else "warning")
    opened = need.opened_at if isinstance(need, RemoteNeed) else need.opened_at or need.row.time
    return Span(format_age(opened, now), "dim")


class NeedKeys(NamedTuple):
    """The names of the keys that settle needs in a list."""

    approve: str
    reject: str
    open: str


def remote_need_keys(item: RemoteNeed, texts: Catalogue, keys_of: NeedKeys, *, can_act: bool) -> str:
    """Return the keys that settle a need of another machine, as `need_keys`."""
    answers = item.answers if can_act and item.view.is_connected else ()
    marks = f"{keys_of.approve} " * ("approve" in answers) + f"{keys_of.reject} " * ("reject" in answers)
    return f"{marks}{keys_of.open} {open_label(item, texts, can_act=can_act)}"


def open_label(need: Need | RemoteNeed, texts: Catalogue, *, can_act: bool) -> str:
    """Return the effect of the key that opens ``need``.

    ``can_act``: whether the person can act. Otherwise the key opens the need for reading.
    """
    if isinstance(need, RemoteNeed):
        answers = need.answers if can_act and need.view.is_connected else ()
        verb = next((each for each in ("reply", "choose") if each in answers), "open")
    else:
        answer = need.answers[0]
        verb = answer if can_act and answer in ("reply", "choose", "merge", "compare") else "open"
    return texts(f"needs.enter.{verb}")


def need_keys(need: Need, texts: Catalogue, keys_of: NeedKeys, *, can_act: bool) -> str:
    """Return the keys that settle ``need`` in its list, with the effect of the key that opens the need."""
    keys = f"{keys_of.open} {open_label(need, texts, can_act=can_act)}"
    shortcuts = {
        "approve": f"{keys_of.approve} ",
        "leave": f"{keys_of.approve} ",
        "reject": f"{keys_of.reject} ",
    }
    marks = "".join(shortcuts.get(each, "") for each in need.answers) if can_act else ""
    return f"{marks}{keys}"
