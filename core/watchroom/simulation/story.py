"""The opening scene (spec 1, K-1). Its three agents find their cues in inbox and files, not in a clock."""

from __future__ import annotations

from functools import cache
from typing import Final

from pydantic import BaseModel, ConfigDict

from watchroom.simulation import private, shared
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.growing import Change
from watchroom.simulation.handoffs import confirm, take
from watchroom.simulation.material import load
from watchroom.simulation.private import save
from watchroom.simulation.shared import REPORT
from watchroom.simulation.steps import Pause, Result, Script, Task, entries_in, number_in, text_in

_BRISK_STEPS: Final = 25
_PATIENCE: Final = 100
"""So many looks into the inbox, and the scene is off: someone has left, or the folder is of another day."""

_LOOKS_A_TASK: Final = 8


class Piece(BaseModel):
    """A part of the scene: a text, where it goes, and what is said with it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    filename: str = REPORT
    text: str = ""
    note: str = ""
    message: str = ""
    taken: str = ""
    answer: str = ""
    merged: str = ""
    lines: tuple[tuple[str, str], ...] = ()
    after_table: str = ""
    rows: tuple[str, ...] = ()
    after_costs: str = ""
    costs: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        return self.text.lstrip("\n")


@cache
def piece(name: str) -> Piece:
    return Piece.model_validate(load("story.toml")[name])


def scene(desk: AgentContext) -> Script[None]:
    """The agent's part, if it has one and the report has not got beyond it."""
    parts = {"researcher": _research, "analyst": _analyse, "writer": _write}
    if desk.story_is_told or desk.me not in parts:
        return
    desk.rhythm.hurry(_BRISK_STEPS)
    yield Task("browse")
    found = yield from shared.survey(desk)
    versions = {
        text_in(entry, "filepath"): number_in(entry, "version") for entry in entries_in(found, "files")
    }
    if versions.get(REPORT, 0) == 0 or (desk.me == "writer" and versions[REPORT] == 1):
        yield from parts[desk.me](desk)
    # The others see from the report's version that the scene is over; the analyst has the last word in it.
    if desk.me == "analyst":
        desk.story_is_told = True


def _research(desk: AgentContext) -> Script[None]:
    survey = piece("research")
    yield Task("research")
    yield from save(desk, survey.filename, Change(survey.content, survey.note))
    yield from _hand(desk, "analyst", survey)


def _analyse(desk: AgentContext) -> Script[None]:
    entry = yield from _await(desk, "researcher", piece("research").filename)
    if entry is None:
        return
    yield Task("analyse")
    yield from take(desk, entry)
    analysis = piece("analysis")
    yield from confirm(desk, entry, analysis.taken)
    yield from save(desk, analysis.filename, Change(analysis.content, analysis.note))
    draft = piece("report")
    yield from shared.commit(desk, REPORT, "", Change(draft.content, draft.message), 0)
    yield from _hand(desk, "writer", piece("brief"))
    figures = piece("figures")
    yield from save(desk, figures.filename, Change(figures.content, figures.note))
    entry = yield from _await(desk, "writer", piece("notes").filename)
    if entry is None:
        return
    yield from take(desk, entry)
    # From the draft in hand: that the writer has published meanwhile, the conflict will tell.
    change = Change(_with_figures(draft.content, figures), figures.message)
    yield from shared.commit(desk, REPORT, draft.content, change, 1, merge_message=figures.merged)
    yield from confirm(desk, entry, piece("notes").answer)


def _write(desk: AgentContext) -> Script[None]:
    entry = yield from _await(desk, "analyst", piece("brief").filename)
    if entry is None:
        return
    yield Task("polish")
    yield from take(desk, entry)
    polish = piece("polish")
    yield from confirm(desk, entry, polish.taken)
    found = yield from desk.call("collab_read", filepath=REPORT)
    text = polished = text_in(found, "content")
    for rough, smooth in polish.lines:
        polished = polished.replace(rough, smooth)
    yield from shared.commit(
        desk, REPORT, text, Change(polished, polish.message), number_in(found, "version")
    )
    yield from _hand(desk, "analyst", piece("notes"))


def _hand(desk: AgentContext, receiver: str, what: Piece) -> Script[None]:
    yield from desk.call(
        "handoff_file",
        to_agent=receiver,
        filename=what.filename,
        content=what.content,
        message=what.message,
    )


def _await(desk: AgentContext, sender: str, filename: str) -> Script[Result | None]:
    """Look into the inbox until a delivery is there, doing small things meanwhile."""
    for look in range(_PATIENCE):
        if look % _LOOKS_A_TASK == 0:
            yield Task("await", sender)
        found = yield from desk.call("check_my_handoffs")
        for entry in entries_in(found, "handoffs"):
            if (text_in(entry, "from"), text_in(entry, "filename")) == (sender, filename):
                return entry
        if look % 3 == 0:
            yield from private.grow_note(desk)
        else:
            yield Pause(0.5, waiting=True)
    return None


def _with_figures(draft: str, figures: Piece) -> str:
    lines = draft.split("\n")
    for anchor, new in ((figures.after_table, figures.rows), (figures.after_costs, figures.costs)):
        at = lines.index(anchor) + 1
        lines[at:at] = new
    return "\n".join(lines)
