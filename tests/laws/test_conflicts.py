"""For any sequence of operations a conflict is open exactly as long as the rules say, and its texts are kept.

The model remembers what was done, in order, and asks of each refused text whether anything since has closed it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

from calls import ok, refused
from effort import rounds
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from watchroom import Toolbox, Workspace
from watchroom.features.overview.fold import Fold

AGENTS: Final = ("alice", "bob")
PATHS: Final = ("a.md", "folder/深.md")
agents = st.sampled_from(AGENTS)
paths = st.sampled_from(("a.md", "a.md", "folder/深.md"))
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


class Done(NamedTuple):
    """One operation on a path: a refused text (``number``), a version, a reading, a settling of ``named``, or the
    undoing of the edits by hand of version ``base``."""

    what: str
    actor: str
    path: str
    number: int = 0
    text: str | None = None
    named: tuple[int, ...] | None = None
    base: int = 0

    @property
    def by_a_person(self) -> bool:
        return self.actor == "dana"


class ConflictsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.workspace = Workspace.open(self.folder / "team", agents=AGENTS)
        self.boxes: dict[str, Toolbox] = {agent: self.workspace.tools(agent) for agent in AGENTS}
        self.boxes["dana"] = self.workspace.tools_for_human("dana")
        self.done: list[Done] = []
        self.fold = Fold(self.workspace.journal.content, self.workspace.journal.row)

    def teardown(self) -> None:
        self.workspace.close()
        shutil.rmtree(self.folder)

    # What the rules say

    def current(self, path: str) -> int:
        return sum(each.what == "version" and each.path == path for each in self.done)

    def refusals(self, path: str | None = None) -> list[Done]:
        return [each for each in self.done if each.what == "refusal" and path in (None, each.path)]

    def closes(self, later: Done, refusal: Done) -> bool:
        if later.path != refusal.path:
            return False
        if later.what == "version" and later.actor == refusal.actor:
            return True
        if later.what == "undone":
            return refusal.actor == "outside" and refusal.base == later.base
        if not later.by_a_person or later.what == "reading":
            return False
        if later.named is None:
            return later.what == "version"
        of_its_agent = {each.number for each in self.refusals() if each.actor == refusal.actor}
        return any(number >= refusal.number for number in of_its_agent & set(later.named))

    def stood(self, at: int) -> bool:
        """Whether the text refused there was current then, or became so."""
        refusal = self.done[at]
        before = [each for each in self.done[:at] if (each.what, each.path) == ("version", refusal.path)]
        after = [each for each in self.done[at:] if (each.what, each.path) == ("version", refusal.path)]
        return any(version.text == refusal.text for version in [*before[-1:], *after])

    def open(self) -> list[Done]:
        stood = {
            (each.actor, each.path): at
            for at, each in enumerate(self.done)
            if each.what == "refusal" and self.stood(at)
        }
        return [
            each
            for at, each in enumerate(self.done)
            if each.what == "refusal"
            and at > stood.get((each.actor, each.path), -1)
            and not any(self.closes(later, each) for later in self.done[at:])
        ]

    def is_undone(self, path: str) -> bool:
        """Whether the newest edit by hand of ``path`` was undone by hand."""
        edits = [each for each in self.done if each.path == path and each.actor == "outside"]
        return bool(edits) and edits[-1].what == "undone"

    def versions_since(self, refusal: Done) -> int:
        since = self.done[self.done.index(refusal) :]
        return sum(each.what == "version" and each.path == refusal.path for each in since)

    # What is done

    def submit(self, actor: str, tool: str, path: str, text: str, expected: int, **more: Any) -> None:
        arguments = {"filepath": path, "content": text, "message": "m", "expected_version": expected, **more}
        if expected in (-1, self.current(path)):
            ok(self.boxes[actor], tool, **arguments)
            self.done.append(Done("version", actor, path, text=text, named=more.get("conflicts")))
            return
        number = refused(self.boxes[actor], tool, **arguments)["conflict_id"]
        if actor in AGENTS:
            self.done.append(Done("refusal", actor, path, number, text))

    @rule(
        actor=agents,
        path=paths,
        text=texts,
        expected=st.sampled_from(["right", "stale", "stale", "unchecked"]),
    )
    def write(self, actor: str, path: str, text: str, expected: str) -> None:
        right = self.current(path)
        self.submit(
            actor, "collab_write", path, text, {"right": right, "stale": right + 1, "unchecked": -1}[expected]
        )

    @rule(path=paths, text=texts, right=st.booleans())
    def person_writes(self, path: str, text: str, right: bool) -> None:
        self.submit("dana", "collab_write", path, text, self.current(path) + (not right))

    @precondition(lambda self: self.refusals())
    @rule(data=st.data(), text=texts, right=st.sampled_from([True, True, False]))
    def person_resolves(self, data: st.DataObject, text: str, right: bool) -> None:
        path = data.draw(st.sampled_from(self.refusals())).path
        numbers = [each.number for each in self.refusals(path)]
        named = data.draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=3, unique=True))
        expected = self.current(path) + (not right)
        if self.is_undone(path) and any(
            each.actor == "outside" and each.number in named and each not in self.open()
            for each in self.refusals(path)
        ):
            given = {"filepath": path, "content": text, "message": "m", "expected_version": expected}
            error = refused(self.boxes["dana"], "resolve_conflict", **given, conflicts=tuple(named))["error"]
            assert error == "conflict_settled"
            return
        self.submit("dana", "resolve_conflict", path, text, expected, conflicts=tuple(named))

    @precondition(lambda self: self.refusals())
    @rule(data=st.data())
    def person_dismisses(self, data: st.DataObject) -> None:
        conflict = data.draw(st.sampled_from(self.refusals()))
        if conflict.actor == "outside":
            error = refused(self.boxes["dana"], "dismiss_conflict", conflict=conflict.number)["error"]
            assert error == "outside_conflict"
        elif conflict not in self.open():
            error = refused(self.boxes["dana"], "dismiss_conflict", conflict=conflict.number)["error"]
            assert error == "conflict_settled"
        else:
            ok(self.boxes["dana"], "dismiss_conflict", conflict=conflict.number)
            self.done.append(Done("note", "dana", conflict.path, named=(conflict.number,)))

    @rule(path=paths, text=texts)
    def edit_by_hand(self, path: str, text: str) -> None:
        file = self.folder / "team/collaborative/current" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_bytes().decode() if file.exists() else None
        file.write_bytes(text.encode())
        rows = self.workspace.scan()
        if text == self.head(path):
            edits = [each for each in self.refusals(path) if each.actor == "outside"]
            is_undone = bool(edits) and edits[-1] in self.open() and edits[-1].base == self.current(path)
            assert [row.error for row in rows] == ["edit_undone"] * is_undone
            if is_undone:
                self.done.append(Done("undone", "outside", path, base=self.current(path)))
        elif text == before:
            assert rows == []
        else:
            (row,) = rows
            self.done.append(Done("refusal", "outside", path, row.seq, text, base=self.current(path)))

    def head(self, path: str) -> str | None:
        return next((x.text for x in reversed(self.done) if x.what == "version" and x.path == path), None)

    @rule(path=paths)
    def person_reverts(self, path: str) -> None:
        edits = [each for each in self.refusals(path) if each.actor == "outside"]
        if not edits or edits[-1] not in self.open():
            error = refused(self.boxes["dana"], "revert_outside_edit", filepath=path)["error"]
            assert error == ("conflict_settled" if edits else "no_outside_edit")
            return
        ok(self.boxes["dana"], "revert_outside_edit", filepath=path)
        self.done.append(Done("note", "dana", path, named=(edits[-1].number,)))
        file = self.folder / "team/collaborative/current" / path
        assert (file.read_bytes().decode() if file.exists() else None) == self.head(path)

    @rule(actor=agents, path=paths)
    def read(self, actor: str, path: str) -> None:
        if not self.current(path):
            return
        own = {each.number for each in self.refusals(path) if each.actor == actor}
        known = max((at for at, x in enumerate(self.done, 1) if self.tells(x, actor, path)), default=0)
        news = [each for each in self.done[known:] if each.path == path and own & set(each.named or ())]
        told = ok(self.boxes[actor], "collab_read", filepath=path).get("notice")
        assert (told.count("\n") + 1 if told else 0) == len(news)
        self.done.append(Done("reading", actor, path))

    @staticmethod
    def tells(done: Done, actor: str, path: str) -> bool:
        return (done.actor, done.path) == (actor, path) and done.what in ("version", "reading")

    # What must be so

    @invariant()
    def the_open_conflicts_are_those_of_the_rules(self) -> None:
        self.workspace.flush()
        self.fold.apply(self.workspace.journal.rows(self.fold.seq))
        sides: dict[tuple[str, str], list[Done]] = {}
        for refusal in self.open():
            sides.setdefault((refusal.path, refusal.actor), []).append(refusal)
        expected = sorted(
            (side[-1].number, side[0].number, len(side), 1 + self.versions_since(side[0]), path, actor)
            for (path, actor), side in sides.items()
        )
        found = self.fold.model().conflicts
        assert [(x.id, x.since.seq, x.times, x.rounds, x.path, x.actor) for x in reversed(found)] == expected

    @invariant()
    def every_refused_text_can_be_read(self) -> None:
        for refusal in self.refusals():
            assert self.workspace.journal.content(refusal.number) == refusal.text


def test_a_conflict_is_open_exactly_as_long_as_the_rules_say() -> None:
    run_state_machine_as_test(
        ConflictsMachine,
        settings=settings(
            max_examples=rounds(20, 40),
            stateful_step_count=40,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
