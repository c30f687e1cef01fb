"""Laws of buffers (EDIT-9): with tools in any order, changes from outside in between, and a new process
after each call, a buffer answers as one that was never put down; and no word is ever lost."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from effort import rounds
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from watchroom import Json, Toolbox, Workspace
from watchroom.algorithms.editing import (
    BoundEditor,
    DataSourceBinding,
    SourceText,
    StaleSourceError,
    TextEditor,
    TextEditResponse,
    WorkflowState,
    build_frames,
    render,
)
from watchroom.features.buffers.reads import read_buffer
from watchroom.features.buffers.view import BufferState
from watchroom.features.overview.fold import Fold
from watchroom.kernel.call_context import CallContext

short = st.text("ab\n[", max_size=3)


_SEEN: Mapping[tuple[WorkflowState, bool], BufferState] = {
    (WorkflowState.SYNCED, False): "synced",
    (WorkflowState.PERSIST_PENDING, True): "unwritten",
    (WorkflowState.OUT_OF_SYNC, False): "behind",
    (WorkflowState.OUT_OF_SYNC, True): "apart",
}


class InMemory:
    """The model's source: its versions, and nothing else."""

    def __init__(self) -> None:
        self.texts = ["ab ab\nend\n"]

    def version(self) -> int:
        return len(self.texts)

    def edit(self) -> int:
        return 0

    def read(self) -> SourceText:
        return SourceText(self.texts[-1], len(self.texts))

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        if expected != len(self.texts):
            raise StaleSourceError
        self.texts.append(text)
        return len(self.texts)


class Buffers(RuleBasedStateMachine):
    """Beside a buffer in a workspace, one in memory is told the same: the model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.workspace = Workspace.open(self.root, agents=["alice", "bob"], language="en")
        self.source = InMemory()
        self.others(self.source.texts[0])
        self.model = TextEditor(self.source.texts[0], name="plan")
        self.binding = DataSourceBinding(self.model, self.source, name="plan", base=self.source.read())
        self.call("open_buffer", {"source": "collab", "path": "plan.md"})
        self.words = 0
        self.fold = Fold(lambda number: self.workspace.journal.content(number))
        self.put_aside: list[str] = []

    def teardown(self) -> None:
        self.workspace.close()
        self.folder.cleanup()

    @property
    def alice(self) -> Toolbox:
        return self.workspace.tools("alice")

    def others(self, text: str) -> None:
        self.workspace.collab.write(CallContext("bob", "collab_write"), "plan.md", text, -1)

    def call(self, tool: str, arguments: Mapping[str, Json]) -> dict[str, Json]:
        return dict(self.alice.dispatch_tool_call(tool, arguments))

    def answered(self, tool: str, arguments: Mapping[str, Json], expected: TextEditResponse) -> None:
        found = self.call(f"plan_{tool}", arguments)
        assert found["markdown"] == render(expected).detail
        assert found["workflow_state"] == expected.workflow_state.value

    def word(self) -> str:
        self.words += 1
        return f"w{self.words}\n"

    @rule(old=short, new=short)
    def replace(self, old: str, new: str) -> None:
        self.answered("replace", {"old_text": old, "new_text": new}, self.model.replace(old, new))

    @rule(number=st.integers(1, 6), new=st.none() | short)
    def replace_selection(self, number: int, new: str | None) -> None:
        given: dict[str, Json] = {"selection_id": number, "new_text": new}
        self.answered("replace_selection", given, self.model.replace_selection(number, new))

    @rule()
    def append(self) -> None:
        word = self.word()
        self.answered("append", {"text": word}, self.model.append(word))

    @rule()
    def discard_selection(self) -> None:
        self.answered("discard_selection", {}, self.model.discard_selection())

    @rule()
    def flush(self) -> None:
        self.answered("flush", {}, self.binding.flush())

    @rule()
    def refresh(self) -> None:
        self.answered("refresh", {}, self.binding.refresh())

    @rule()
    def diff(self) -> None:
        self.answered("diff", {}, self.binding.diff())

    @rule()
    def accept_source(self) -> None:
        self.put_aside.append(self.model.snapshot())
        self.answered("accept_source", {}, self.binding.accept_source())

    @rule(at=st.integers(0, 5), takes=st.integers(0, 2))
    def others_write(self, at: int, takes: int) -> None:
        lines = self.source.texts[-1].splitlines(keepends=True)
        text = "".join([*lines[:at], self.word(), *lines[at + takes :]])
        self.source.texts.append(text)
        self.others(text)

    @rule()
    def another_process(self) -> None:
        self.workspace.close()
        self.workspace = Workspace.open(self.root)

    @invariant()
    def the_model_sees_the_same(self) -> None:
        (frame,) = build_frames([BoundEditor(self.model, self.binding)])
        (shown,) = self.workspace.buffers.frames(CallContext("alice"))
        assert shown == frame
        offered = [each["name"] for each in self.alice.get_tool_definitions(toolsets=["buffer"])]
        assert offered == ["open_buffer", "close_buffer", *frame.tools]

    @invariant()
    def people_see_how_it_stands(self) -> None:
        self.fold.apply(self.workspace.journal.rows(self.fold.seq))
        (view,) = self.fold.model().buffers
        self.binding.update()
        assert view.state == _SEEN[self.binding.state, self.binding.is_changed]
        assert view.waits_for_choice == (self.model.selections is not None)
        assert view.record.length == len(self.model.snapshot())

    @invariant()
    def no_word_is_lost(self) -> None:
        journal = self.workspace.journal
        kept = [read_buffer(journal, row).text for row in journal.history("buffer", "alice/plan")]
        kept += [journal.content(row.seq) or "" for row in journal.history("collab", "plan.md")]
        found = set(re.findall(r"w\d+", "".join(kept)))
        assert {f"w{number}" for number in range(1, self.words + 1)} <= found
        assert set(self.put_aside) <= set(kept)


def test_a_buffer_is_what_its_rows_say() -> None:
    run_state_machine_as_test(
        Buffers,
        settings=settings(
            max_examples=rounds(20, 40),
            stateful_step_count=20,
        ),
    )
