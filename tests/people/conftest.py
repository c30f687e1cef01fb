"""What the tests of people share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from watchroom import Agent, Workspace
from watchroom.features.people.rows import Person, Role
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.platform.signing import KeySigner

DANA, EVE, BOT, STRANGER = (KeySigner(bytes([number]) * 32) for number in range(4))
CALL = PendingCall("c1", "run_command", '{"command": "make"}')


class Team(NamedTuple):
    """A closed workspace: dana is its owner, eve a supervisor, and viktor, who has bot's key, only looks."""

    workspace: Workspace
    root: Path

    def ask(self, name: str = "1") -> int:
        """The number of a new request of alice's, to run a command."""
        return self.workspace.requests.ask(
            CallContext("alice"), f"alice/1/{name}", Request("approve", calls=(CALL,))
        ).seq

    def sign_as(self, signer: KeySigner | None) -> None:
        """Have what people decide from now on signed with that key, or with none."""
        self.workspace.signing.signer = signer


def person(name: str, role: Role, signer: KeySigner) -> Person:
    return Person(name, role, (signer.key.line,))


def close(workspace: Workspace) -> None:
    """Enrol the three, as dana."""
    workspace.signing.signer = DANA
    for each in (
        person("dana", "owner", DANA),
        person("eve", "supervisor", EVE),
        person("viktor", "viewer", BOT),
    ):
        workspace.people.add("human:dana", each)
    workspace.signing.signer = None


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    with Workspace.open(tmp_path / "team", [Agent("alice"), Agent("bob")]) as workspace:
        close(workspace)
        yield Team(workspace, tmp_path / "team")
