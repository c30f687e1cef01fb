"""The board that several agents write on at the same time (spec 1, K-2): a realtime document.

Texts grow by small edits at many places, tasks come and go, and what is done is counted. Who finds others at
the board stays longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from watchroom.model import Json
from watchroom.simulation.desk import STORY_TEAM, AgentContext
from watchroom.simulation.sheet import Line, Section, Sheet, board
from watchroom.simulation.steps import Call, Result, Script, number_in, succeeded, text_in

SCHEMA: Final[Mapping[str, Json]] = {
    "title": "lww_register",
    "notes": "rga",
    "tasks": "or_set",
    "owners": "lww_map",
    "done": "pn_counter",
}
MEMBERS: Final = ("researcher", "analyst", "writer", "reviewer", "translator", "planner")
"""Those who share the board, as far as they are in the team."""

_LEAST_STEPS: Final = 4
_MOST_STEPS: Final = 12
_FEWEST_TASKS: Final = 4
_MOST_TASKS: Final = 9
_NUMBER: Final = re.compile(r"(?<![\d:.,])\d{1,3}(?![\d:.,])")
_SPREAD: Final = 9
_TRIES: Final = 30

_Act: TypeAlias = Callable[[AgentContext, Sheet], Script[None]]


def goes_first(desk: AgentContext) -> bool:
    """Whether this agent goes to the board at once: the first of the team who is not busy at first."""
    return desk.me == min(_members(desk), key=STORY_TEAM.__contains__)


def _members(desk: AgentContext) -> list[str]:
    return [agent for agent in MEMBERS if agent in (desk.me, *desk.others)]


def visit(desk: AgentContext) -> Script[None]:
    """Go to the board and write on it; stay while others write on it too."""
    sheet = yield from _open(desk)
    if sheet is None:
        return
    for step in range(_MOST_STEPS):
        if sheet.rest and (step >= _LEAST_STEPS or desk.chance(0.6)):
            yield from _act(desk, sheet, _write_on)
        else:
            yield from _act(desk, sheet, _next_act(desk, sheet))
        if step >= _LEAST_STEPS and not sheet.rest and not sheet.others_write:
            return
    while sheet.rest:
        yield from _act(desk, sheet, _write_on)


def _act(desk: AgentContext, sheet: Sheet, act: _Act) -> Script[None]:
    if sheet.is_behind:
        yield from _read_again(desk, sheet)
    yield from act(desk, sheet)


def _open(desk: AgentContext) -> Script[Sheet | None]:
    """Look at the board; whoever finds none sets it up."""
    found = yield from _look(desk)
    if found.get("error") == "document_not_found":
        created = yield from desk.call("realtime_create_document", doc_id=board().id, schema=dict(SCHEMA))
        if succeeded(created):
            yield from _set_up(desk)
        found = yield from _look(desk)
    snapshot = found.get("snapshot")
    return Sheet(snapshot, number_in(found, "version")) if isinstance(snapshot, Mapping) else None


def _look(desk: AgentContext) -> Script[Result]:
    return (yield from desk.call("realtime_get_document_snapshot", doc_id=board().id))


def _set_up(desk: AgentContext) -> Script[None]:
    sheet = Sheet({}, 1)
    headings = "\n\n".join(section.heading for section in board().sections)
    yield from _put(desk, sheet, 0, f"{headings}\n")
    yield from _name(desk, sheet)


def _read_again(desk: AgentContext, sheet: Sheet) -> Script[None]:
    found = yield from desk.call("realtime_get_field", doc_id=board().id, field_name="notes")
    sheet.notes = text_in(found, "value")
    sheet.version = max(sheet.version, number_in(found, "version"))
    sheet.is_behind = False


def _next_act(desk: AgentContext, sheet: Sheet) -> _Act:
    acts: list[tuple[_Act, float]] = [(_correct, 14), (_claim, 10), (_name, 2)]
    if not sheet.rest:
        acts.append((_begin_line, 40))
    if len(sheet.tasks) < _MOST_TASKS:
        acts.append((_add_task, 30 if len(sheet.tasks) < _FEWEST_TASKS else 14))
    if sheet.tasks:
        acts.append((_finish_task, 30 if len(sheet.tasks) >= _MOST_TASKS else 12))
    if desk.me in sheet.owners.values():
        acts.append((_release, 5))
    return desk.rng.choices([act for act, _ in acts], [weight for _, weight in acts])[0]


def _begin_line(desk: AgentContext, sheet: Sheet) -> Script[None]:
    """Begin a line in a section; where that is full, take out the oldest of one's own first."""
    sections = [section for section in board().sections if (section.language == "zh") == desk.writes_chinese]
    section = desk.rng.choice(sections)
    lines = sheet.lines(section)
    if len(lines) >= section.most:
        oldest = next(_editable(desk, lines), None)
        if oldest is not None:
            yield from _replace(desk, sheet, oldest.start, oldest.end + 1, "")
        return
    at = sheet.end_of(section)
    if at is None:
        return
    begin, *rest = _line_of_ones_own(desk, sheet, section)
    if begin:
        yield from _put(desk, sheet, at, f"{begin}\n")
        sheet.line, sheet.rest = begin, tuple(rest)


def _line_of_ones_own(desk: AgentContext, sheet: Sheet, section: Section) -> list[str]:
    """The parts of a line that nobody else begins with the same words: its writer finds it again by them."""
    members = _members(desk)
    for _ in range(_TRIES):
        filling = desk.author.filling()
        parts = [filling(part) for part in desk.rng.choice(section.lines)]
        if Line(0, parts[0]).editor(members) == desk.me and "".join(parts) not in sheet.notes:
            return parts
    return [""]


def _write_on(desk: AgentContext, sheet: Sheet) -> Script[None]:
    """Add the next part to the line that was begun; if somebody changed it meanwhile, it is theirs."""
    line, (part, *rest) = sheet.unfinished(), sheet.rest
    sheet.rest = tuple(rest) if line else ()
    if line:
        sheet.line += part
        yield from _put(desk, sheet, line.end, part)


def _correct(desk: AgentContext, sheet: Sheet) -> Script[None]:
    """Put another number in the place of one, whoever wrote it."""
    numbers = [
        number
        for section in board().sections
        for line in _editable(desk, sheet.lines(section))
        for number in _NUMBER.finditer(sheet.notes, line.start, line.end)
    ]
    if not numbers:
        return
    number = desk.rng.choice(numbers)
    better = int(number[0]) + desk.rng.choice((-1, 1)) * desk.rng.randint(1, _SPREAD)
    yield from _replace(desk, sheet, number.start(), number.end(), str(max(2, better)))


def _editable(desk: AgentContext, lines: Sequence[Line]) -> Iterator[Line]:
    """The finished lines that nobody but this agent changes, oldest first."""
    members = _members(desk)
    return (line for line in lines if line.is_finished and line.editor(members) == desk.me)


def _put(desk: AgentContext, sheet: Sheet, position: int, text: str) -> Script[None]:
    yield from _edit(desk, sheet, "insert", (position, position), text, {"position": position, "text": text})


def _replace(desk: AgentContext, sheet: Sheet, start: int, stop: int, text: str) -> Script[None]:
    given: dict[str, Json] = {"from": start, "to": stop}
    if text:
        yield from _edit(desk, sheet, "replace", (start, stop), text, {**given, "text": text})
    else:
        yield from _edit(desk, sheet, "delete", (start, stop), "", given)


def _edit(
    desk: AgentContext,
    sheet: Sheet,
    operation: str,
    where: tuple[int, int],
    text: str,
    given: dict[str, Json],
) -> Script[None]:
    result = yield from _change(
        desk, sheet, "realtime_edit_text", field_name="notes", operation=operation, args=given
    )
    if succeeded(result):
        sheet.notes = sheet.notes[: where[0]] + text + sheet.notes[where[1] :]


def _change(desk: AgentContext, sheet: Sheet, tool: str, **arguments: Json) -> Script[Result]:
    yield desk.rhythm.pause()
    result = yield Call(tool, {"doc_id": board().id, **arguments})
    if succeeded(result):
        sheet.wrote(result)
    return result


def _add_task(desk: AgentContext, sheet: Sheet) -> Script[None]:
    filling = desk.author.filling()
    task = filling.one_of(board().tasks_zh) if desk.writes_chinese else filling("{task}")
    yield from _change(desk, sheet, "realtime_edit_set", field_name="tasks", operation="add", element=task)
    sheet.tasks.add(task)


def _finish_task(desk: AgentContext, sheet: Sheet) -> Script[None]:
    """Take a task off the board, and count it."""
    task = desk.rng.choice(sorted(sheet.tasks))
    sheet.tasks.discard(task)
    yield from _change(desk, sheet, "realtime_edit_set", field_name="tasks", operation="remove", element=task)
    yield from _change(desk, sheet, "realtime_edit_counter", field_name="done", operation="increment")


def _claim(desk: AgentContext, sheet: Sheet) -> Script[None]:
    """Take over an area, of somebody else or of nobody."""
    areas = board().areas_zh if desk.writes_chinese else board().areas
    area = desk.rng.choice([each for each in areas if sheet.owners.get(each) != desk.me] or areas)
    sheet.owners[area] = desk.me
    yield from _change(desk, sheet, "realtime_set_field", field_name="owners", key=area, value=desk.me)


def _release(desk: AgentContext, sheet: Sheet) -> Script[None]:
    """Give an area back."""
    area = desk.rng.choice(sorted(area for area, who in sheet.owners.items() if who == desk.me))
    del sheet.owners[area]
    yield from _change(desk, sheet, "realtime_set_field", field_name="owners", key=area, remove=True)


def _name(desk: AgentContext, sheet: Sheet) -> Script[None]:
    """Give the board another title."""
    title = desk.author.filling().one_of(board().titles)
    if title != sheet.title:
        sheet.title = title
        yield from _change(desk, sheet, "realtime_set_field", field_name="title", value=title)
