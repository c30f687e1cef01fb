"""Work in the collaborative zone: read, think, write, and recover when someone else was faster."""

from __future__ import annotations

from watchroom.model import UNCHECKED, Json
from watchroom.simulation import growing, private
from watchroom.simulation.desk import AgentContext
from watchroom.simulation.growing import Change
from watchroom.simulation.material import Document
from watchroom.simulation.reconcile import reconcile
from watchroom.simulation.steps import (
    Call,
    GaveUp,
    Pause,
    Result,
    Script,
    entries_in,
    number_in,
    succeeded,
    text_in,
)

REPORT = "report.md"
_STORY_VERSIONS = 3
_STORY_PATIENCE = 400
_MOST_TRIES = 4
_SURRENDER = 0.05
_LONG_THOUGHT = 0.1
_SHORT_THOUGHT = (0.3, 1.1)
_HURRIED = 0.008
_TURNS_AFTER_SURRENDER = 60


def update(desk: AgentContext) -> Script[None]:
    """Bring one of the shared files on by a step, or start it."""
    document = choose(desk)
    path = desk.place(document)
    if desk.leaves_alone(path):
        return
    if path not in desk.shared:
        yield from survey(desk)
    found: Result = {}
    if path in desk.shared:
        found = yield from desk.call("collab_read", filepath=path)
    version = number_in(found, "version")
    if waits_for_story(desk, path, version):
        return
    base = text_in(found, "content")
    if desk.chance(_LONG_THOUGHT):
        yield from _think(desk)
    change = growing.grow(document, base, desk.author) if base else growing.start(document, desk.author)
    hurried = version > 0 and desk.chance(_HURRIED)
    if hurried:
        change = Change(change.content, desk.say("unchecked"))
    yield from commit(desk, path, base, change, UNCHECKED if hurried else version)


def choose(desk: AgentContext) -> Document:
    """One of the documents that are the agent's to write."""
    documents = [document for document in desk.material.documents if document.is_for(desk.role)]
    # The first role that a document names is its keeper's.
    weights = [document.weight * (2 if document.roles[:1] == (desk.role,) else 1) for document in documents]
    return desk.rng.choices(documents, weights)[0]


def waits_for_story(desk: AgentContext, path: str, version: int) -> bool:
    """Whether the report still belongs to those three who begin it."""
    if desk.story_is_told or path != REPORT:
        return False
    desk.story_is_told = version >= _STORY_VERSIONS or desk.turn > _STORY_PATIENCE
    return not desk.story_is_told


def _think(desk: AgentContext) -> Script[None]:
    """Take so long between reading and writing that the file may move on."""
    if desk.chance(0.5):
        yield from private.grow_note(desk)
    else:
        yield Pause(desk.rng.uniform(2.0, 6.0))


def commit(
    desk: AgentContext, path: str, base: str, change: Change, expected: int, *, merge_message: str = ""
) -> Script[bool]:
    """Write; on a conflict merge and write again.

    Rarely an agent gives up and leaves it open, but not one that knows beforehand what to say on merging.
    """
    desk.shared.add(path)
    yield Pause(desk.rng.uniform(*_SHORT_THOUGHT))
    result = yield from _write(path, change, expected)
    mine, known = change.content, base
    for attempt in range(1, _MOST_TRIES + 1):
        if result.get("is_conflict") is not True:
            return succeeded(result)
        if attempt == 1 and not merge_message and desk.chance(_SURRENDER):
            break
        result, mine, known = yield from _try_again(desk, path, known, mine, result, attempt, merge_message)
    if result.get("is_conflict") is True:
        desk.leave_alone(path, _TURNS_AFTER_SURRENDER)
        yield GaveUp(path)
    return succeeded(result)


def _try_again(
    desk: AgentContext, path: str, base: str, mine: str, refusal: Result, attempt: int, message: str
) -> Script[tuple[Result, str, str]]:
    """One merge and its commit; returns the result, what was written, and what it was based on."""
    yield Pause(desk.rng.uniform(0.5, 1.4))
    current = text_in(refusal, "current_content")
    merged = reconcile(base, current, mine)
    version = number_in(refusal, "current_version")
    author = text_in(refusal, "current_author")
    change = Change(merged, message or desk.say("merge", author=author, version=version))
    written = yield from _write(path, change, version, attempt)
    return written, merged, current


def _write(path: str, change: Change, expected: int, attempt: int = 0) -> Script[Result]:
    arguments: dict[str, Json] = {
        "filepath": path,
        "content": change.content,
        "message": change.message,
        "expected_version": expected,
    }
    return (yield Call("collab_write", arguments, attempt))


def roll_back(desk: AgentContext) -> Script[None]:
    """Take back a recent version, after a look at the history."""
    document = choose(desk)
    path = desk.place(document)
    if desk.leaves_alone(path) or path not in desk.shared:
        return
    found = yield from desk.call("collab_history", filepath=path, limit=5)
    versions = [number_in(entry, "version") for entry in entries_in(found, "history")]
    if not versions or versions[-1] < 2 * _STORY_VERSIONS:
        return
    target = desk.rng.choice(versions[-3:-1])
    message = desk.say("rollback", version=target)
    for attempt in range(3):
        result = yield from desk.call(
            "collab_rollback", attempt, filepath=path, to_version=target, message=message
        )
        if result.get("is_conflict") is not True:
            return
    desk.leave_alone(path, _TURNS_AFTER_SURRENDER)
    yield GaveUp(path)


def survey(desk: AgentContext) -> Script[Result]:
    """See which shared files there are."""
    found = yield from desk.call("collab_list")
    desk.shared = {text_in(entry, "filepath") for entry in entries_in(found, "files")}
    return found


def browse(desk: AgentContext) -> Script[None]:
    """See what the others have written lately."""
    yield from survey(desk)
    files = sorted(desk.shared)
    if files and desk.chance(0.5):
        yield from desk.call("collab_read", filepath=desk.rng.choice(files))
