"""Board locks: who may write for a while, and how that ends (BOARDS-5.1)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from calls import ok, refused
from requirements.boards.global_board import GLOBAL, lock_file
from watchroom import Toolbox, Workspace
from watchroom.kernel.call_context import CallContext
from watchroom_whiteboards import Whiteboards


def test_a_lock_lasts_five_seconds_and_is_seen_in_the_locks(root: Path, boards: Whiteboards) -> None:
    lock = boards.hold(CallContext("ceo"), GLOBAL)
    shown = json.loads(lock_file(root).read_text(encoding="utf-8"))
    assert shown == {
        "lockId": lock.id,
        "whiteboardPath": "global-whiteboard.md",
        "agentId": "ceo",
        "acquiredAt": lock.acquired,
        "expiresAt": lock.acquired + 5000,
    }
    assert boards.release(lock)
    assert not lock_file(root).exists()
    assert not boards.release(lock)


def test_nobody_else_writes_under_a_lock_and_its_holder_does(
    boards: Whiteboards, ceo: Toolbox, cfo: Toolbox
) -> None:
    boards.hold(CallContext("ceo"), GLOBAL)
    refusal = refused(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=0)
    assert refusal["error"] == "board_leased"
    assert "ceo" in refusal["message"]
    ok(ceo, "whiteboard_append", board=GLOBAL, content="mine")
    ok(cfo, "whiteboard_read", board=GLOBAL)


def test_a_lock_on_one_board_holds_nobody_off_another(boards: Whiteboards, cfo: Toolbox) -> None:
    boards.hold(CallContext("ceo"), GLOBAL)
    ok(cfo, "whiteboard_append", board="top-layer", content="x", wait_seconds=0)


def test_taking_it_again_extends_it_and_keeps_its_id(root: Path, boards: Whiteboards) -> None:
    first = boards.hold(CallContext("ceo"), GLOBAL, seconds=1)
    again = boards.hold(CallContext("ceo"), GLOBAL, seconds=60)
    assert (again.id, again.acquired) == (first.id, first.acquired)
    assert again.expires > first.expires
    assert again.token > first.token
    assert json.loads(lock_file(root).read_text(encoding="utf-8"))["expiresAt"] == again.expires
    assert boards.release(first), "it is one lock"


def test_a_write_under_ones_own_lock_extends_it(
    workspace: Workspace, boards: Whiteboards, ceo: Toolbox
) -> None:
    lock = boards.hold(CallContext("ceo"), GLOBAL, seconds=1)
    ok(ceo, "whiteboard_append", board=GLOBAL, content="x")
    held = workspace.boards.locks.current(GLOBAL)
    assert held is not None
    assert (held.id, held.expires > lock.expires) == (lock.id, True)


def test_a_lock_that_has_run_out_holds_nobody_off_and_is_cleaned_up(
    root: Path, workspace: Workspace, boards: Whiteboards, cfo: Toolbox
) -> None:
    lock = boards.hold(CallContext("ceo"), GLOBAL, seconds=0)
    assert workspace.boards.locks.current(GLOBAL) is None
    assert lock_file(root).exists()
    ok(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=0)
    assert not lock_file(root).exists()
    expired = [row for row in workspace.journal.rows() if row.tool == "lease_expired"]
    assert [(row.actor, row.message) for row in expired] == [("system", "ceo")]
    assert not boards.release(lock)


def test_a_lock_that_somebody_else_took_over_cannot_be_released_by_the_first(
    workspace: Workspace, boards: Whiteboards
) -> None:
    stale = boards.hold(CallContext("ceo"), GLOBAL, seconds=0)
    taken = boards.hold(CallContext("cfo"), GLOBAL)
    assert taken.token > stale.token
    assert not boards.release(stale)
    assert workspace.boards.locks.current(GLOBAL) == taken


def test_a_writer_waits_for_the_lock_instead_of_failing(
    boards: Whiteboards, cfo: Toolbox, workspace: Workspace
) -> None:
    lock = boards.hold(CallContext("ceo"), GLOBAL, seconds=60)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ok, cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=60)
        assert workspace.journal.head("board", GLOBAL) is None
        boards.release(lock)
        assert waiting.result()["version"] == 1


def test_a_writer_waits_until_the_lock_has_run_out(boards: Whiteboards, cfo: Toolbox) -> None:
    boards.hold(CallContext("ceo"), GLOBAL, seconds=0.05)
    ok(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=60)


def test_reading_to_write_holds_the_board_until_the_write(root: Path, ceo: Toolbox, cfo: Toolbox) -> None:
    assert ok(ceo, "whiteboard_read", board=GLOBAL, hold=True)["held_for_seconds"] == 5
    assert lock_file(root).exists()
    assert (
        refused(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=0)["error"]
        == "board_leased"
    )
    ok(ceo, "whiteboard_write", board=GLOBAL, content="# Anew\n", message="m")
    assert not lock_file(root).exists()
    ok(cfo, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=0)


def test_a_longer_lock_is_not_shortened_by_its_holders_write(
    workspace: Workspace, boards: Whiteboards, ceo: Toolbox
) -> None:
    lock = boards.hold(CallContext("ceo"), GLOBAL, seconds=600)
    ok(ceo, "whiteboard_append", board=GLOBAL, content="x")
    held = workspace.boards.locks.current(GLOBAL)
    assert held is not None
    assert held.expires == lock.expires


@pytest.mark.parametrize("seconds", [-1.0, 3601.0, float("inf"), float("nan")])
def test_a_lock_cannot_last_for_ever(boards: Whiteboards, seconds: float) -> None:
    with pytest.raises(ValueError, match="a board is locked for"):
        boards.hold(CallContext("ceo"), GLOBAL, seconds=seconds)


def test_a_reading_that_is_refused_leaves_no_lock(root: Path, ceo: Toolbox) -> None:
    refused(ceo, "whiteboard_read", board=GLOBAL, section="nope", hold=True)
    assert not lock_file(root).exists()


def test_a_refused_write_does_not_end_the_lock(root: Path, ceo: Toolbox) -> None:
    ok(ceo, "whiteboard_read", board=GLOBAL, hold=True)
    refused(ceo, "whiteboard_write", board=GLOBAL, content="x", message="m", expected_version=7)
    assert lock_file(root).exists()
