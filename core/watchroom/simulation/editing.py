"""Work in a buffer: a passage of a shared file is replaced, looked at, and flushed (spec 4)."""

from __future__ import annotations

from watchroom.simulation import growing, shared
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.growing import Change
from watchroom.simulation.passages import Passage, lines_changed, words_changed
from watchroom.simulation.reconcile import reconcile
from watchroom.simulation.steps import Pause, Script, names_in, number_in, succeeded, text_in

_BY_WORDS = 0.6
_LOOKS = (3.0, 9.0)
_OFFERED = 5


def edit(desk: AgentContext) -> Script[None]:
    """Change a passage of one of the shared files in a buffer, and flush it."""
    document = shared.choose(desk)
    path = desk.place(document)
    if desk.leaves_alone(path):
        return
    if path not in desk.shared:
        yield from shared.survey(desk)
    if path not in desk.shared:
        return
    found = yield from desk.call("collab_read", filepath=path)
    base = text_in(found, "content")
    if not base or shared.waits_for_story(desk, path, number_in(found, "version")):
        return
    change = growing.grow(document, base, desk.author)
    passage = lines_changed(base, change.content)
    if passage is None:
        return
    opened = yield from desk.call("open_buffer", source="collab", path=path)
    name = text_in(opened, "buffer")
    if not succeeded(opened):
        return
    if f"{name}_accept_source" in names_in(opened, "tools"):
        # From an earlier day, when it was not finished.
        yield from desk.call(f"{name}_accept_source")
    in_conflict = False
    if (yield from _replace(desk, name, base, passage)):
        yield Pause(desk.rng.uniform(*_LOOKS))
        in_conflict = not (yield from _flush(desk, name, change.message))
    yield from desk.call("close_buffer", buffer=name, discard=True)
    if in_conflict:
        yield from _write_again(desk, path, base, change)


def _replace(desk: AgentContext, name: str, base: str, passage: Passage) -> Script[bool]:
    """Replace as little as changed, or the lines that it stands in; of several places the right one."""
    short = words_changed(passage) if desk.chance(_BY_WORDS) else passage
    result = yield from desk.call(f"{name}_replace", old_text=short.old, new_text=short.new)
    if text_in(result, "status") != "MultiMatch":
        return succeeded(result)
    number = short.occurrence(base) + 1
    if number <= _OFFERED:
        yield Pause(desk.rng.uniform(*_LOOKS))
        result = yield from desk.call(f"{name}_replace_selection", selection_id=number)
        return succeeded(result)
    yield from desk.call(f"{name}_discard_selection")
    if short == passage:
        return False
    result = yield from desk.call(f"{name}_replace", old_text=passage.old, new_text=passage.new)
    return succeeded(result)


def _flush(desk: AgentContext, name: str, message: str) -> Script[bool]:
    """Write the buffer; where the file moved on, merge first. False where both changed the same lines."""
    for _ in range(2):
        result = yield from desk.call(f"{name}_flush", message=message)
        if succeeded(result):
            return True
        merged = yield from desk.call(f"{name}_refresh")
        if text_in(merged, "status") != "Success":
            return False
    return False


def _write_again(desk: AgentContext, path: str, base: str, change: Change) -> Script[None]:
    """Both changed the same lines: theirs stay, and one's own go beside them."""
    found = yield from desk.call("collab_read", filepath=path)
    current = text_in(found, "content")
    merged = Change(reconcile(base, current, change.content), change.message)
    yield from shared.commit(desk, path, current, merged, number_in(found, "version"))
