"""Responses as Markdown: the examples of the specification verbatim, and every kind of response (EDIT-6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion
from watchroom.algorithms.editing import (
    TextEditCandidate,
    TextEditFlag,
    TextEditMetrics,
    TextEditor,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
    render,
    render_buffer,
)
from watchroom.algorithms.editing.rendering import MAX_SHOWN
from watchroom.algorithms.editing.tool_visibility import EDIT_TOOLS, SYNC_TOOLS, list_tool_names
from watchroom.texts import LANGUAGES, Language

SUCCESS = """\
status: `Success`
state: `Idle`
flags: -

### [OK] 概览
- summary: 已完成替换,缓存已更新
- guidance: (留空)

### [Metrics] 指标
| 指标 | 值 |
| --- | --- |
| delta | +12 |
| new_length | 1824 |
| selection_count | - |
"""
MULTI_MATCH = """\
status: `MultiMatch`
state: `SelectionPending`
flags: `SelectionPending`

### [Warning] 概览
- summary: 检测到 3 处候选
- guidance: 调用 `_replace_selection` 选择目标编号，或重新发起更精确的 `_replace`

### [Metrics] 指标
| 指标 | 值 |
| --- | --- |
| delta | 0 |
| new_length | 1824 |
| selection_count | 3 |

### [Target] 候选选区
| Id | MarkerStart | MarkerEnd | Preview | Occurrence | ContextStart | ContextEnd |
| --- | --- | --- | --- | --- | --- | --- |
| 1 | `[[SEL#1]]` | `[[/SEL#1]]` | `...Foo() {` | 0 | 118 | 150 |
| 2 | `[[SEL#2]]` | `[[/SEL#2]]` | `...Foo() {` | 1 | 312 | 344 |
| 3 | `[[SEL#3]]` | `[[/SEL#3]]` | `...Foo() {` | 2 | 521 | 553 |
"""


def test_a_success_is_rendered_as_the_specification_has_it() -> None:
    response = TextEditResponse(
        status=TextEditStatus.SUCCESS,
        workflow_state=WorkflowState.IDLE,
        summary="已完成替换,缓存已更新",
        metrics=TextEditMetrics(delta=12, new_length=1824),
    )
    assert render(response, "zh").detail == SUCCESS


def test_a_choice_is_rendered_as_the_specification_has_it() -> None:
    response = TextEditResponse(
        status=TextEditStatus.MULTI_MATCH,
        workflow_state=WorkflowState.SELECTION_PENDING,
        flags=TextEditFlag.SELECTION_PENDING,
        summary="检测到 3 处候选",
        guidance="调用 `_replace_selection` 选择目标编号，或重新发起更精确的 `_replace`",
        metrics=TextEditMetrics(new_length=1824, selection_count=3),
        candidates=tuple(
            TextEditCandidate(
                id=number,
                preview="...Foo() {",
                marker_start=f"[[SEL#{number}]]",
                marker_end=f"[[/SEL#{number}]]",
                occurrence=number - 1,
                context_start=start,
                context_end=start + 32,
            )
            for number, start in ((1, 118), (2, 312), (3, 521))
        ),
    )
    assert render(response, "zh").detail == MULTI_MATCH
    assert render(response, "zh").basic.splitlines()[:2] == [
        "status: `MultiMatch`",
        "state: `SelectionPending`",
    ]


TEXT = "alpha | `beta`\nalpha ``` gamma\nalpha\n"


def _chosen(editor: TextEditor) -> TextEditResponse:
    editor.replace("alpha", "ALPHA")
    return editor.replace_selection(2)


def _lapsed(editor: TextEditor) -> TextEditResponse:
    editor.replace("alpha", "ALPHA")
    editor.append("x")
    return editor.replace_selection(2)


ANSWERS: dict[str, Callable[[TextEditor], TextEditResponse]] = {
    "replaced": lambda editor: editor.replace("gamma", "delta"),
    "chosen": _chosen,
    "appended": lambda editor: editor.append("more\n"),
    "choice": lambda editor: editor.replace("alpha", "ALPHA"),
    "many": lambda editor: editor.replace("a", "A"),
    "nowhere": lambda editor: editor.replace("zzzz", "x"),
    "near": lambda editor: editor.replace("alpha ``` gama", "x"),
    "lapsed": _lapsed,
    "nothing": lambda editor: editor.replace("", "x"),
    "not text": lambda editor: editor.append("\0"),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("answer", ANSWERS)
def test_every_answer_of_an_editor(answer: str, language: Language, snapshot: SnapshotAssertion) -> None:
    editor = TextEditor(TEXT, name="memo", language=language)
    response = ANSWERS[answer](editor)
    rendered = render(response, language)
    assert f"{rendered.basic}\n\n{rendered.detail}\n{render_buffer(editor, language).detail}" == snapshot
    assert TextEditResponse.model_validate_json(response.model_dump_json()) == response


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_has_words_in_both_languages(language: Language) -> None:
    editor = TextEditor(TEXT, name="memo", language=language)
    for answer in ANSWERS.values():
        response = answer(editor)
        assert response.summary
        assert "{" not in response.summary
        assert "{" not in (response.guidance or "")


@pytest.mark.parametrize(
    ("editing", "syncing", "tools"),
    [
        (WorkflowState.IDLE, None, "replace append"),
        (WorkflowState.SELECTION_PENDING, None, "replace_selection discard_selection"),
        (WorkflowState.IDLE, WorkflowState.SYNCED, "replace append"),
        (WorkflowState.IDLE, WorkflowState.PERSIST_PENDING, "replace append flush diff accept_source"),
        (WorkflowState.IDLE, WorkflowState.OUT_OF_SYNC, "replace append refresh diff accept_source"),
        (
            WorkflowState.SELECTION_PENDING,
            WorkflowState.PERSIST_PENDING,
            "replace_selection discard_selection flush diff accept_source",
        ),
    ],
)
def test_the_tools_of_a_state(editing: WorkflowState, syncing: WorkflowState | None, tools: str) -> None:
    assert list_tool_names("memo", editing, syncing) == tuple(f"memo_{tool}" for tool in tools.split())


def test_every_tool_can_be_seen_in_some_state() -> None:
    seen = {
        name
        for editing in WorkflowState
        for syncing in WorkflowState
        for name in list_tool_names("b", editing, syncing)
    }
    assert seen == {f"b_{tool}" for tool in (*EDIT_TOOLS, *SYNC_TOOLS)}


def test_guidance_names_no_tool_that_is_hidden() -> None:
    editor = TextEditor(TEXT, name="memo")
    for answer in ANSWERS.values():
        response = answer(editor)
        offered = list_tool_names("memo", editor.state)
        for tool in EDIT_TOOLS:
            named = f"memo_{tool} " in f"{response.guidance or ''} ".replace(".", " ").replace(",", " ")
            assert not named or f"memo_{tool}" in offered, (response.code, tool)


LINE = "some words, as lines have them\n"


@pytest.mark.parametrize(
    "text",
    [
        LINE * 3000,
        "x" * 100_000,
        f"{LINE * 1000}needle\n" * 2,
        f"{'n' * 30_000}|{LINE * 100}" * 3,
        f"{'n' * 9_000}|" * 3,
        "n" * 200_000,
        f"{'`' * 60_000}\nneedle needle",
        "`a" * 50_000,
    ],
    ids=["lines", "one line", "apart", "long matches", "matches that touch", "overlap", "a fence", "fences"],
)
@pytest.mark.parametrize("most", [MAX_SHOWN, 1_000])
def test_a_view_is_bounded_whatever_the_text_and_the_choice(text: str, most: int) -> None:
    editor = TextEditor(text, name="plan")
    assert len(render_buffer(editor, "en", most).detail) <= most + 3_000
    longest = text.partition("|")[0] if "|" in text else text[:50_000]
    for needle in ("needle", longest, "n" * 9_000, "`" * 40_000, "`"):
        editor.replace(needle, "x")
        shown = render_buffer(editor, "en", most).detail
        assert len(shown) <= most + 3_000
        if editor.selections is not None:
            for number in range(1, len(editor.selections.starts) + 1):
                assert f"[[SEL#{number}]]" in shown
                assert f"[[/SEL#{number}]]" in shown
            editor.discard_selection()


def test_a_long_match_is_shown_by_its_two_ends() -> None:
    match = f"BEGIN{'n' * 30_000}END"
    editor = TextEditor(f"before {match} between {match} after", name="plan")
    editor.replace(match, "x")
    shown = render_buffer(editor).detail
    for part in (
        "before [[SEL#1]]BEGINnnn",
        "nnnEND[[/SEL#1]] between [[SEL#2]]BEGIN",
        "END[[/SEL#2]] after",
    ):
        assert part in shown
    assert shown.count("characters omitted") == 2
