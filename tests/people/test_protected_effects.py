"""What changes protected state, for every effect, kind of actor and tool, as the table in docs/trust.md says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from people.conftest import DANA, EVE, STRANGER, close
from people.effects import ATTEMPTS
from watchroom import Agent, Workspace
from watchroom.features.people.decisions import NAMESPACE, describe_decision, sign_draft
from watchroom.model import Draft, Note
from watchroom.platform.signing import KeySigner

PAGE: Final = Path(__file__).parents[2] / "docs/trust.md"
OTHER_TOOLS: Final = (
    "collab_write",
    "withdraw_request",
    "answer_request",
    "mark_as_seen",
    "resume_agent",
    "",
)
AGENTS: Final = ("alice", "bob")
PEOPLE: Final = ("human:dana", "human:eve", "human:viktor", "human:mallory")
ACTORS: Final = (*AGENTS, "outside", "system", *PEOPLE)
ROLES: Final = {"human:dana": "owner", "human:eve": "supervisor", "human:viktor": "viewer"}
SIGNERS: Final[dict[str, KeySigner]] = {"human:dana": DANA, "human:eve": EVE, "human:mallory": STRANGER}


class Entry(NamedTuple):
    """A line of the page's table: by which ``tools`` (none: any) and kinds of ``actors`` an effect happens, and
    whose signature it needs in a closed workspace (empty: nobody's)."""

    tools: tuple[str, ...]
    actors: tuple[str, ...]
    signature: str


def read_table() -> dict[str, Entry]:
    found = {}
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] in ATTEMPTS:
            tools = tuple(re.findall(r"`(\w+)`", cells[1]))
            found[cells[0]] = Entry(tools, tuple(cells[2].split(", ")), cells[3])
    return found


TABLE: Final = read_table()


def is_actor(entry: Entry, actor: str) -> bool:
    named = {"people": actor.startswith("human:"), "Watchroom": actor == "system"}
    own = {"alice, whom it is about": actor == "alice", "its own agent": actor == "bob"}
    kinds = {"agents": actor in AGENTS, "anybody": True, "its agent": actor == "alice"}
    return any({**named, **own, **kinds}[each] for each in entry.actors)


def is_expected(entry: Entry, actor: str, tool: str, *, is_closed: bool, signer: str) -> bool:
    """Whether the page says that the effect happens."""
    if (entry.tools and tool not in entry.tools) or not is_actor(entry, actor):
        return False
    is_person = actor.startswith("human:")
    if entry.signature == "always an owner":
        return is_closed and signer == actor == "human:dana"
    if not (is_closed and entry.signature and is_person):
        return True
    role = ROLES.get(signer) if signer == actor else None
    return role == "owner" or (role == "supervisor" and entry.signature == "an owner or supervisor")


def cases() -> Iterator[tuple[str, str, str]]:
    for effect in ATTEMPTS:
        tools = TABLE[effect].tools if effect in TABLE else ()
        for actor in ACTORS:
            for tool in dict.fromkeys((*tools, *OTHER_TOOLS)):
                yield effect, actor, tool


def test_the_page_has_a_line_for_every_effect() -> None:
    assert [*TABLE] == [*ATTEMPTS]


@pytest.mark.parametrize("is_closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("effect", [*ATTEMPTS])
def test_a_row_changes_protected_state_only_as_the_page_says(
    effect: str, is_closed: bool, tmp_path: Path
) -> None:
    wrong = []
    with Workspace.open(tmp_path / "team", [Agent("alice"), Agent("bob")]) as workspace:
        if is_closed:
            close(workspace)
    for number, (_, actor, tool) in enumerate(each for each in cases() if each[0] == effect):
        signers = [None, actor] if is_closed and actor in SIGNERS else [None]
        for signer in signers:
            # To make and close a workspace takes three times as long as to copy it.
            copy = shutil.copytree(tmp_path / "team", tmp_path / f"{number}{signer}")
            with Workspace.open(copy) as workspace:
                attempt = ATTEMPTS[effect](workspace)
                write(workspace, attempt.draft(actor, tool), SIGNERS[signer] if signer else None)
                happened = attempt.has_happened(workspace)
                expected = is_expected(TABLE[effect], actor, tool, is_closed=is_closed, signer=signer or "")
                if happened != expected:
                    wrong.append(f"{actor} by {tool!r}, signed by {signer}: {happened}, not {expected}")
    assert wrong == []


def sign(workspace: Workspace, draft: Draft, signer: KeySigner) -> Draft:
    """``draft`` with a statement signed by that key, whether it would count or not."""
    journal = workspace.journal
    statement = describe_decision(
        draft,
        workspace.people.current(),
        signer.key,
        journal.now(),
        workspace.people.evidence,
        journal.rows_before(journal.last_seq() + 1, limit=1)[0],
    )
    return sign_draft(draft, statement, signer.sign(statement.encode(), NAMESPACE))


def write(workspace: Workspace, draft: Draft, signer: KeySigner | None) -> None:
    """Append ``draft`` past every check, with the signature of ``signer`` if one is given."""
    if signer is not None:
        draft = sign(workspace, draft, signer)
    ((row, _),) = workspace.journal.append([draft])
    assert row.outcome == "ok", row
    assert isinstance(draft, Note) or row.version is not None
