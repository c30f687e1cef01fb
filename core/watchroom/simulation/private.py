"""Work in the private zone: notes that grow, loose thoughts that come and go, a look at others' desks."""

from __future__ import annotations

from watchroom.simulation import growing
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.growing import Change
from watchroom.simulation.steps import Script, names_in, succeeded, text_in

SCRATCH = "scratch/"
LOG = "log.md"


def settle_in(desk: AgentContext) -> Script[None]:
    """Look at what is on one's own desk already, from an earlier day."""
    found = yield from desk.call("list_workspace_files", agent_id=desk.me)
    for name in names_in(found, "files"):
        desk.files[name] = ""
        if name.startswith(SCRATCH):
            desk.scratch.append(name)


def save(desk: AgentContext, filename: str, change: Change) -> Script[bool]:
    result = yield from desk.call(
        "save_to_my_workspace", filename=filename, content=change.content, message=change.message
    )
    if succeeded(result):
        desk.files[filename] = change.content
    return succeeded(result)


def recall(desk: AgentContext, filename: str) -> Script[str]:
    """A file of one's own: from memory, or read again."""
    known = desk.files.get(filename)
    if known is None or (known and desk.chance(0.65)):
        return known or ""
    found = yield from desk.call("read_from_workspace", agent_id=desk.me, filename=filename)
    return text_in(found, "content")


def log_down(desk: AgentContext, line: str, message: str) -> Script[None]:
    """Put a line into one's own log."""
    log = next(note for note in desk.material.notes if note.path == LOG)
    text = (yield from recall(desk, LOG)) or growing.start(log, desk.author).content
    yield from save(desk, LOG, growing.note_down(log, text, line, message, desk.author))


def grow_note(desk: AgentContext) -> Script[None]:
    notes = [note for note in desk.material.notes if note.is_for(desk.role)]
    note = desk.rng.choice(notes)
    text = yield from recall(desk, note.path)
    change = growing.grow(note, text, desk.author) if text else growing.start(note, desk.author)
    yield from save(desk, note.path, change)


def scratch(desk: AgentContext) -> Script[None]:
    """Start a loose note; when there are many, throw the oldest away."""
    if desk.has_much_scratch:
        oldest = desk.scratch.pop(0)
        desk.files.pop(oldest, None)
        yield from desk.call("delete_from_my_workspace", filename=oldest)
        return
    filling = desk.author.filling()
    path = f"{SCRATCH}{filling('{topic}')}.md"
    lines = [filling(line) for line in desk.templates("scratch_text")]
    change = Change(
        "\n".join(lines[: desk.rng.randint(4, len(lines))]) + "\n", filling.one_of(desk.templates("scratch"))
    )
    if (yield from save(desk, path, change)) and path not in desk.scratch:
        desk.scratch.append(path)


def look_around(desk: AgentContext) -> Script[None]:
    """Read one of a colleague's files."""
    if not desk.others:
        return
    other = desk.colleague()
    found = yield from desk.call("list_workspace_files", agent_id=other)
    files = names_in(found, "files")
    if files:
        yield from desk.call("read_from_workspace", agent_id=other, filename=desk.rng.choice(files))
