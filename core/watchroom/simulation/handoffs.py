"""Deliveries: sent with a request, looked through, read, confirmed."""

from __future__ import annotations

from watchroom.simulation.desk import AgentContext
from watchroom.simulation.private import log_down, recall
from watchroom.simulation.steps import Result, Script, entries_in, text_in

_AT_ONCE = 3


def deliver(desk: AgentContext) -> Script[None]:
    """Hand a file of one's own to a colleague."""
    if not desk.others or not desk.files:
        return
    filename = desk.rng.choice(sorted(desk.files))
    content = yield from recall(desk, filename)
    if not content:
        return
    name = filename.rsplit("/", 1)[-1]
    message = desk.say("handoff", name=name.rsplit(".", 1)[0])
    yield from desk.call(
        "handoff_file", to_agent=desk.colleague(), filename=name, content=content, message=message
    )


def inbox(desk: AgentContext) -> Script[None]:
    """Look into the inbox and deal with some of it; now and then something is left for later."""
    found = yield from desk.call("check_my_handoffs")
    for entry in entries_in(found, "handoffs")[:_AT_ONCE]:
        if desk.chance(0.12):
            continue
        if entry.get("read") is not True:
            yield from take(desk, entry)
            if desk.chance(0.15):
                continue
        yield from confirm(desk, entry, desk.thanks())
        if desk.chance(0.3):
            yield from _follow_up(desk, text_in(entry, "from"))


def take(desk: AgentContext, entry: Result) -> Script[Result]:
    """Read a delivery."""
    return (
        yield from desk.call(
            "read_handoff", from_agent=text_in(entry, "from"), filename=text_in(entry, "filename")
        )
    )


def confirm(desk: AgentContext, entry: Result, message: str) -> Script[Result]:
    return (
        yield from desk.call(
            "acknowledge_handoff",
            from_agent=text_in(entry, "from"),
            filename=text_in(entry, "filename"),
            message=message,
        )
    )


def _follow_up(desk: AgentContext, sender: str) -> Script[None]:
    """Note in one's own log what is to be done about it."""
    line = desk.author.filling(sender=sender)(desk.material.said.follow_up)
    yield from log_down(desk, line, f"Note a follow-up for {sender}")
