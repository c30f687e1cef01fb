"""What sessions are made of: answers and requests in words, records, what threads do for a loop, mail."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event

import pytest
from runtime.scripted import Scripted, initial
from runtime.weather import Model, call, calling
from watchroom import Row
from watchroom.errors import JournalBusy, NotWaiting
from watchroom.features.requests.rows import (
    Answer,
    CallDecision,
    PendingCall,
    Request,
    answer_outcome,
    call_subject,
    parse_arguments,
    summarize_request,
)
from watchroom.features.sessions.runtime import AgentRuntime, CallLlm, UserMessage
from watchroom.features.sessions.runtime.step_rows import apply_encoded_step, encode_step
from watchroom.features.sessions.runtime.transitions import apply_answer
from watchroom.kernel.background import Background
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import Note

APPROVE = Request(
    "approve", calls=(PendingCall("a", "save", '{"filename": "a.md"}'), PendingCall("b", "run", "{}"))
)
YES, NO = CallDecision("a", approved=True), CallDecision("b", approved=False)
EDITED = CallDecision("b", approved=True, arguments="{}")


@pytest.mark.parametrize(
    ("request_", "answer", "word"),
    [
        (APPROVE, Answer((YES, YES)), "approved"),
        (APPROVE, Answer((YES, EDITED)), "edited"),
        (APPROVE, Answer((YES, NO)), "mixed"),
        (APPROVE, Answer((NO, NO)), "rejected"),
        (APPROVE, Answer(expired=True), "expired"),
        (Request("prompt"), Answer(text="x"), "replied"),
        (Request("select"), Answer(values=("x",)), "chosen"),
    ],
)
def test_an_outcome_in_one_word(request_: Request, answer: Answer, word: str) -> None:
    assert answer_outcome(request_, answer) == word


def test_a_request_in_one_line() -> None:
    assert summarize_request(APPROVE) == "save a.md, run"
    assert summarize_request(Request("prompt", "Which city?\nAny will do.")) == "Which city?"


@pytest.mark.parametrize("arguments", ["", "null", "[]", "{", '{"a": NaN}'])
def test_arguments_that_are_no_object_are_shown_as_none(arguments: str) -> None:
    assert parse_arguments(arguments) == {}
    assert call_subject(PendingCall("a", "save", arguments)) == ""


def test_half_characters_are_shown_as_such() -> None:
    assert parse_arguments('{"path": "half \\ud83d", "smile": "\\ud83d\\ude00"}') == {
        "path": "half \ufffd",
        "smile": "😀",
    }


def test_nobody_can_answer_what_is_not_asked() -> None:
    with pytest.raises(NotWaiting):
        apply_answer(initial(), Answer(text="Köln"), "human:dana")


def test_messages_that_were_replaced_are_recorded() -> None:
    before = initial(messages=[{"role": "user", "content": text} for text in ("one", "two", "three")])
    for messages in (
        (),
        before.messages[:2],
        (before.messages[0], UserMessage(content="both"), before.messages[2]),
        (*before.messages, UserMessage(content="four")),
    ):
        after = before.with_changes(messages=messages)
        assert apply_encoded_step(before, encode_step(before, after)) == after


def test_a_record_does_not_grow_with_its_session() -> None:
    sizes = []
    for length in (10, 1000):
        before = initial(messages=[{"role": "user", "content": "Hello"}] * length)
        sizes.append(len(encode_step(before, before.with_messages(UserMessage(content="more")))))
    assert sizes[0] == sizes[1]


async def test_streamed_pieces_are_one_entry_of_a_record() -> None:
    model = Model([{"content": "a"}, {"content": "b"}, *calling(call()), {"content": "c"}])
    result = await AgentRuntime(Scripted(CallLlm(), model_runtime=model)).step(initial())
    record = json.loads(encode_step(initial(), result.new_state))
    assert [each.get("chunks") for each in record["events"] if each["type"] == "llm_stream"] == [
        ["a", "b", ""],
        None,
        ["c"],
    ]


async def test_the_ids_of_one_session_are_free_in_another() -> None:
    model = Model(*[calling(call("tool", "c1"))] * 3)
    runtime = AgentRuntime(Scripted(CallLlm(), CallLlm(), CallLlm(), model_runtime=model))
    first = (await runtime.step(initial(session_id="one"))).new_state
    again = (await runtime.step(first)).new_state
    second = (await runtime.step(initial(session_id="two"))).new_state
    assert [each.open_calls[0].id for each in (first, again, second)] == ["c1", "call_1_0", "c1"]


class Unreadable(SqliteJournal):
    """Cannot be read the first time that somebody looks for new rows."""

    failed = False

    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        if not self.failed:
            self.failed = True
            raise JournalBusy(seconds=60)
        return super().rows(after, until=until, limit=limit)


def test_mail_comes_although_the_journal_could_not_be_read_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Unreadable(tmp_path / "journal.db")
    background = Background(journal, lambda row: row.path)
    came = Event()
    taken: list[str] = []

    def take(row: Row) -> None:
        taken.append(row.message)
        came.set()

    try:
        background.subscribe(("alice",), take)
        journal.append([Note("human:dana", "send_message", "session", "alice", message="Hello")])
        assert came.wait(20)
    finally:
        background.close()
        journal.close()
    assert taken == ["Hello"]
    assert "rows could not be delivered" in caplog.text


def test_who_has_left_gets_no_mail(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    background = Background(journal, lambda row: row.path)
    left: list[Row] = []
    came = Event()
    try:
        end = background.subscribe(("alice", "alice/s1"), left.append)
        background.subscribe(("alice",), lambda row: came.set())
        end()
        journal.append([Note("human:dana", "send_message", "session", "alice")])
        assert came.wait(20)
    finally:
        background.close()
        journal.close()
    assert left == []
