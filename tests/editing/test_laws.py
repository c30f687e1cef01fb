"""Laws of the editor: all tools in any order, with updates from outside, against a simple model (EDIT-9)."""

from __future__ import annotations

from effort import rounds
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from watchroom.algorithms.editing import (
    TextEditFlag,
    TextEditor,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
    list_tool_names,
    render,
    render_buffer,
)

texts = st.text("ab\n[]#", max_size=12)
short = st.text("ab\n[", max_size=3)


def places(text: str, needle: str) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(needle, at)]


class Editing(RuleBasedStateMachine):
    """The model: a string, and an open choice (needle, replacement, first positions)."""

    @initialize(text=texts)
    def begin(self, text: str) -> None:
        self.editor = TextEditor(text, name="memo")
        self.text = text
        self.waiting: tuple[str, str, list[int]] | None = None
        self.versions: list[int] = []
        self.editor.subscribe(lambda changed: self.versions.append(changed.version))

    def writes(self, at: int, length: int, text: str) -> None:
        self.text = self.text[:at] + text + self.text[at + length :]
        self.waiting = None

    def answered(self, response: TextEditResponse, status: TextEditStatus) -> None:
        assert response.status is status, response
        pending = self.waiting is not None
        expected = WorkflowState.SELECTION_PENDING if pending else WorkflowState.IDLE
        assert response.workflow_state is expected
        assert (TextEditFlag.SELECTION_PENDING in response.flags) == pending
        assert response.metrics.new_length == len(self.text)
        assert response.summary
        rendered = render(response)
        assert rendered.detail.startswith(f"status: `{response.status.value}`\nstate: `")
        assert response.summary.split("\n")[0] in rendered.basic

    @rule(old=short, new=short)
    def replace(self, old: str, new: str) -> None:
        response = self.editor.replace(old, new)
        found = places(self.text, old) if old else []
        if not old or old == new:
            self.answered(response, TextEditStatus.NO_OP)
        elif not found:
            self.answered(response, TextEditStatus.NO_MATCH)
        elif len(found) == 1:
            self.writes(found[0], len(old), new)
            self.answered(response, TextEditStatus.SUCCESS)
            assert response.metrics.delta == len(new) - len(old)
        else:
            self.waiting = (old, new, found[:5])
            self.answered(response, TextEditStatus.MULTI_MATCH)
            assert response.metrics.selection_count == len(found)
            assert len(response.candidates or ()) == min(5, len(found))

    @rule(number=st.integers(-1, 7), new=st.none() | short)
    def choose(self, number: int, new: str | None) -> None:
        response = self.editor.replace_selection(number, new)
        if self.waiting is None or not 1 <= number <= len(self.waiting[2]):
            self.answered(response, TextEditStatus.NO_MATCH)
            return
        old, replacement, found = self.waiting
        text = replacement if new is None else new
        if text == old:
            self.answered(response, TextEditStatus.NO_OP)
            return
        self.writes(found[number - 1], len(old), text)
        self.answered(response, TextEditStatus.SUCCESS)

    @rule(text=short)
    def append(self, text: str) -> None:
        response = self.editor.append(text)
        if text:
            self.writes(len(self.text), 0, text)
        self.answered(response, TextEditStatus.SUCCESS if text else TextEditStatus.NO_OP)

    @rule()
    def discard(self) -> None:
        response = self.editor.discard_selection()
        status = TextEditStatus.SUCCESS if self.waiting else TextEditStatus.NO_OP
        self.waiting = None
        self.answered(response, status)

    @rule(text=texts)
    def change_from_outside(self, text: str) -> None:
        result = self.editor.try_update(text)
        assert result.ok
        assert result.value == (text != self.text)
        if result.value:
            self.text, self.waiting = text, None

    @rule()
    def pass_over(self) -> None:
        self.editor.update()

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "editor"):
            return
        assert self.editor.snapshot() == self.text
        assert self.versions == list(range(2, self.editor.version + 1))
        names = list_tool_names("memo", self.editor.state)
        assert ("memo_replace_selection" in names) == (self.waiting is not None)
        assert ("memo_replace" in names) == (self.waiting is None)
        shown = render_buffer(self.editor).detail
        selections = self.editor.selections
        assert (selections is not None) == (self.waiting is not None)
        if selections is not None:
            assert f"[[{selections.tag}#" not in self.text
            assert shown.count(f"[[/{selections.tag}#") == 2 * len(selections.starts)


def test_the_editor_does_what_a_plain_string_would() -> None:
    run_state_machine_as_test(
        Editing,
        settings=settings(max_examples=rounds(70, 150), stateful_step_count=30),
    )
