"""When the journal refuses what a client reports, nothing counts as recorded, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from calls import ok
from clients.attached import SESSION, AttachedClient, attendant, told
from clients.test_calls_seen import run
from damage import change_rows, journal_of
from refusing import refusing
from watchroom import Workspace
from watchroom.agents.clients.attachment import Attachment
from watchroom.errors import JournalDamaged, JournalError
from watchroom.features.budgets.reads import summarize_usage

pytestmark = pytest.mark.sqlite
LINE: Final[Mapping[str, Any]] = {
    "type": "assistant",
    "message": {
        "id": "m1",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "Done."}],
        "usage": {"input_tokens": 100, "output_tokens": 7},
    },
}


def test_the_usage_in_a_refused_line_of_a_transcript_is_counted_once(
    workspace: Workspace, root: Path
) -> None:
    async def play(attached: Attachment) -> None:
        session = next(iter(attached.sessions.values()))
        with refusing(root, "NEW.detail LIKE '%\"used\"%'"), pytest.raises(JournalError):
            await attached.record_line(session, LINE)
        await attached.record_line(session, LINE)

    run(workspace, play)
    assert summarize_usage(workspace.journal, "agent", day_of=str).total[:2] == (100, 7)
    state = workspace.sessions.state("alice", SESSION)
    assert [each.content for each in state.messages] == ["Go", "Done."]


def test_a_message_whose_hook_was_refused_is_taken_from_the_transcript(
    workspace: Workspace, root: Path
) -> None:
    async def play(attached: Attachment) -> None:
        with refusing(root, "NEW.message = 'Done.'"), pytest.raises(JournalError):
            await attached.handle(told("MessageDisplay", message_id="d1", index=0, final=True, delta="Done."))
        await attached.record_line(next(iter(attached.sessions.values())), LINE)

    run(workspace, play)
    state = workspace.sessions.state("alice", SESSION)
    assert [each.content for each in state.messages] == ["Go", "Done."]


def test_lines_of_a_transcript_are_read_again_after_a_refusal(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    transcript = tmp_path / "transcript.jsonl"
    others = [{**LINE, "message": {**LINE["message"], "id": f"m{number}"}} for number in (2, 3)]
    with attendant(root):
        client = AttachedClient(root)
        client.hook("UserPromptSubmit", prompt="Go", transcript_path=str(transcript))
        with refusing(root, "NEW.zone = 'session'"):
            transcript.write_text("".join(json.dumps(line) + "\n" for line in (LINE, *others)))
            assert client.hook("Notification") is not None
        client.hook("Notification")
        assert summarize_usage(workspace.journal, "agent", day_of=str).total[:2] == (300, 21)


def test_a_handoff_counts_as_reported_only_with_the_message_beside_it(
    workspace: Workspace, root: Path
) -> None:
    inbox, main = Attachment(workspace, "alice", "claude")._inbox, f"alice/{SESSION}"
    workspace.session_zone.begin("alice", SESSION, "{}", "", {"status": "idle"})
    ok(workspace.tools("bob"), "handoff_file", to_agent="alice", filename="a.md", content="x", message="m")
    ok(workspace.tools_for_human("dana"), "send_message", to="alice", payload={"text": "Hello."})
    (said,) = [row for row in workspace.journal.rows(limit=1000) if row.tool == "send_message"]
    change_rows(journal_of(root), "UPDATE rows SET content=CAST(? AS TEXT) WHERE seq=?", b"\xff", said.seq)
    with workspace.messages.hand_over() as handover, pytest.raises(JournalDamaged):
        inbox.take_news(main, handover)
    change_rows(journal_of(root), "UPDATE rows SET content=? WHERE seq=?", "Hello.", said.seq)
    with workspace.messages.hand_over() as handover:
        news = inbox.take_news(main, handover)
    assert "a.md" in news
    assert "Hello." in news
