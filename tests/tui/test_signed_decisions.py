"""In a closed workspace the dashboard asks for the passphrase at the first decision. Stopping agents needs
none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tui.driver import User, dashboard
from watchroom import Workspace
from watchroom.features.people.rows import Person
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.model import Write
from watchroom.platform.signing import create_key_file, open_key_file
from watchroom_tui.services.signing_keys import key_path

SESAME = "sesame"
CALL = PendingCall("c1", "run_command", '{"command": "make"}')


@pytest.fixture
def closed(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace whose owner is the dashboard's person, with two requests of alice's."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = create_key_file(key_path("dana"), SESAME, cost=16)
    workspace.signing.signer = open_key_file(key_path("dana"), SESAME)
    workspace.people.add("human:dana", Person("dana", "owner", (key.line,)))
    workspace.signing.signer = None
    for number in (1, 2):
        workspace.requests.ask(CallContext("alice"), f"alice/1/{number}", Request("approve", calls=(CALL,)))
    return workspace


async def approves(user: User) -> None:
    await user.until(lambda: user.model.requests, "a request")
    await user.press("exclamation_mark")
    await user.until(lambda: user.place == "requests", "the requests")
    await user.sees("run make")
    await user.press("a")


def forget_key() -> None:
    """Remove the key file."""
    Path(key_path("dana")).unlink()


def edit_config(workspace: Workspace, text: str) -> None:
    """Write ``text`` at the start of the config file externally, and record it."""
    file = Path(workspace.root, ".watchroom/config.toml")
    file.write_text(text + file.read_text())
    workspace.scan()


def answered(workspace: Workspace) -> list[int]:
    """Return the numbers of the requests with valid answers."""
    return [number for number in (1, 2) if workspace.requests.ended(f"alice/1/{number}")]


async def test_the_first_decision_asks_for_the_passphrase_and_the_next_does_not(closed: Workspace) -> None:
    async with dashboard(closed) as user:
        await approves(user)
        await user.sees("Passphrase", "closed", "unlock")
        await user.type("wrong")
        await user.press("enter")
        await user.sees("Wrong passphrase")
        await user.type(SESAME)
        assert not user.shows(SESAME)
        await user.press("enter")
        await user.until(lambda: len(answered(closed)) == 1, "an answer that counts")
        await user.until(lambda: len(user.model.requests) == 1, "one request")
        await approves(user)
        await user.until(lambda: answered(closed) == [1, 2], "both answered")
        assert user.place != "UnlockDialog"
    assert closed.verify() == []


async def test_decisions_listed_in_the_settings_need_the_passphrase_each_time(closed: Workspace) -> None:
    closed.signing.signer = open_key_file(key_path("dana"), SESAME)
    edit_config(closed, 'confirm_decisions = ["answer_request"]\n')
    closed.settings.sign(CallContext("human:dana"))
    async with dashboard(closed) as user:
        # The key is unlocked, but signs no answer.
        await approves(user)
        await user.sees("Passphrase")
        assert answered(closed) == []
        await user.type(SESAME)
        await user.press("enter")
        await user.until(lambda: len(answered(closed)) == 1, "an answer that counts")
        await user.until(lambda: len(user.model.requests) == 1, "one request")
        await approves(user)
        await user.sees("Passphrase")
        assert len(answered(closed)) == 1


async def test_leaving_the_passphrase_dialog_decides_nothing(closed: Workspace) -> None:
    async with dashboard(closed) as user:
        await approves(user)
        await user.sees("Passphrase")
        await user.press("escape")
        await user.is_told("only signed decisions")
        assert answered(closed) == []


async def test_edited_settings_are_signed_at_their_need(closed: Workspace) -> None:
    closed.signing.signer = open_key_file(key_path("dana"), SESAME)
    closed.settings.sign(CallContext("human:dana"))
    closed.signing.signer = None

    def hosts() -> list[str]:
        return [*closed.config.allowed_hosts]

    edit_config(closed, 'allowed_hosts = ["example.org"]\n')
    for number in (1, 2):
        closed.requests.withdraw(f"alice/1/{number}")
    async with dashboard(closed) as user:
        await user.sees("not signed")
        await user.press("exclamation_mark")
        await user.sees('+    "example.org"', "Sign these settings")
        await user.press("escape")
        assert hosts() == []
        await user.press("exclamation_mark")
        await user.sees("Sign these settings")
        await user.press("enter")
        await user.sees("Passphrase")
        await user.type(SESAME)
        await user.press("enter")
        await user.is_told("are now active")
        await user.until(lambda: not user.model.needs, "no need")
    assert hosts() == ["example.org"]


async def test_a_person_without_a_key_is_told_what_to_do(closed: Workspace) -> None:
    forget_key()
    async with dashboard(closed) as user:
        await approves(user)
        await user.is_told("watchroom person add")
        assert answered(closed) == []


async def test_a_forged_decision_is_a_need(closed: Workspace) -> None:
    closed.journal.append([Write("human:eve", "answer_request", "request", "alice/1/1", "{}", expected=1)])
    async with dashboard(closed) as user:
        await user.sees("forged", "it is not signed")
        assert len(user.model.requests) == 2


async def test_keys_sent_by_a_program_through_tmux_decide_nothing(
    closed: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed.signing.signer = open_key_file(key_path("dana"), SESAME)
    tmux = tmp_path / "bin/tmux"
    tmux.parent.mkdir()
    tmux.write_text("#!/bin/sh\necho 1700000000\n")
    tmux.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmux.parent), prepend=":")
    monkeypatch.setenv("TMUX", f"{tmp_path}/socket,1,0")
    async with dashboard(closed) as user:
        await approves(user)
        await user.is_told("the keys were sent by a program")
        assert answered(closed) == []
        await user.until(lambda: any(each.kind == "forged" for each in user.model.needs), "a need")
        tmux.write_text("#!/bin/sh\ndate +%s\n")
        await user.press("a")
        await user.until(lambda: len(answered(closed)) == 1, "an answer of somebody who types")
        await user.sees("signed with SHA256:")
