"""Every change that real clients made is recorded with its author, and what would be lost is refused or kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from cli.running import as_typed
from service_process import PATIENCE
from trees.git_repository import Repository
from trees.recorded_shapes import FILES, RecordedClient, read_cases
from watchroom import Workspace
from watchroom.agents.clients import client_program
from watchroom.features.trees.rows import REPO, grade_of, split_repo_path
from watchroom.kernel.rules.conflicts import ConflictTracker

AGENT: Final = "agent"
TOOL: Final = (AGENT, "tool")
WINDOW: Final = (AGENT, "window")
PERSON: Final = ("outside", "external")


class Expected(NamedTuple):
    """What comes of a case.

    - ``versions``: of each file, who made its versions and how sure that is, without what git had.
    - ``refused``: of each file, the text that was refused; None for a deletion.
    - ``is_settled``: no conflict is left.
    - ``denied``: what the answers that refuse calls contain, one for each.
    - ``told``: what else the model reads contains, one for each answer.
    - ``merged``: what the arguments that replace those of a call contain.
    """

    versions: Mapping[str, list[tuple[str, str]]]
    refused: Mapping[str, str | None] = {}
    is_settled: bool = True
    denied: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()


WANTED: Final = "one\nTWO\nthree\nfour\nfive\n"
CLAUDE: Final = {
    "edit": Expected({"a.txt": [TOOL]}),
    "new file": Expected({"new.txt": [TOOL]}),
    "known file": Expected({"b.txt": [TOOL], "c.txt": [TOOL]}),
    # It reads by itself that the file has changed, and asks no hook if the passage is gone.
    "stale edit": Expected({"a.txt": [PERSON, TOOL]}, told=("Your edit was applied",)),
    "stale edit of the same line": Expected(
        {"a.txt": [PERSON]}, {"a.txt": WANTED}, is_settled=False, told=("outside changed 'a.txt'",)
    ),
    "stale write": Expected({"a.txt": [PERSON, TOOL]}, {"a.txt": WANTED}, told=("cannot be merged",)),
    "several files": Expected({"a.txt": [TOOL, TOOL], "c.txt": [TOOL], "new.txt": [TOOL]}),
    "several files, one of them stale": Expected(
        {"a.txt": [TOOL], "b.txt": [TOOL], "c.txt": [PERSON]},
        {"c.txt": "c1\nC2\nc3\n"},
        is_settled=False,
        told=("outside changed c.txt", "outside changed 'c.txt'"),
    ),
    "failed edit": Expected({"b.txt": [TOOL]}),
    "commands": Expected(
        {"a.txt": [WINDOW], "b.txt": [WINDOW], "c.txt": [WINDOW], "new.txt": [WINDOW], "bg.txt": [WINDOW]}
    ),
    "hook of another program": Expected({"a.txt": [TOOL], "new.txt": [TOOL]}),
    "resumed session": Expected({"new.txt": [TOOL], "new2.txt": [TOOL]}),
}
CODEX: Final = {
    "edit": Expected({"a.txt": [TOOL]}),
    "new file": Expected({"new.txt": [TOOL]}),
    "stale patch": Expected({"a.txt": [PERSON, TOOL]}, told=("Your edit was applied",)),
    "stale patch that is merged": Expected(
        {"a.txt": [PERSON, TOOL]}, told=("was merged",), merged=("+TWO\n three\n FOUR",)
    ),
    "stale patch of several files": Expected(
        {"a.txt": [PERSON, TOOL], "c.txt": [TOOL], "new.txt": [TOOL]}, told=("was merged",), merged=("FOUR",)
    ),
    "stale patch of the same line": Expected(
        {"a.txt": [PERSON]}, {"a.txt": WANTED}, is_settled=False, denied=("in the same lines",)
    ),
    "stale file added again": Expected(
        {"a.txt": [PERSON, TOOL]}, told=("was merged",), merged=("+TWO\n+three\n+four\n+FIVE",)
    ),
    "stale deletion": Expected(
        {"a.txt": [PERSON]}, {"a.txt": None}, is_settled=False, denied=("outside changed 'a.txt'",)
    ),
    "several files, and a move": Expected(
        {
            "a.txt": [TOOL, TOOL],
            "b.txt": [TOOL],
            "c.txt": [TOOL],
            "new.txt": [TOOL],
            "moved.txt": [TOOL],
        }
    ),
    # It reports no end of a patch that fails, nor of one by a shell.
    "failed patch, failed command, patch by a shell": Expected({"a.txt": [TOOL], "c.txt": [WINDOW]}),
    "command that is polled": Expected({"bg.txt": [WINDOW]}),
    "file of a person": Expected(
        {"a.txt": [TOOL], "p.txt": [PERSON]}, {"p.txt": "mine\n"}, is_settled=False, denied=("have not read",)
    ),
    "resumed session": Expected({"new.txt": [TOOL], "new2.txt": [TOOL]}),
}
OPENCODE: Final = {
    "edit": Expected({"a.txt": [TOOL]}),
    "new file": Expected({"new.txt": [TOOL]}),
    "known file": Expected({"c.txt": [TOOL]}),
    "stale edit": Expected({"a.txt": [PERSON, TOOL]}, told=("Your edit was applied",)),
    "stale edit of the same line": Expected(
        {"a.txt": [PERSON]}, {"a.txt": WANTED}, is_settled=False, denied=("no longer occurs exactly once",)
    ),
    "stale write": Expected(
        {"a.txt": [PERSON, TOOL]}, told=("was merged",), merged=("one\nTWO\nthree\nfour\nFIVE\n",)
    ),
    "stale write of the same line": Expected(
        {"a.txt": [PERSON, TOOL]}, {"a.txt": WANTED}, denied=("in the same lines",)
    ),
    "several files": Expected({"a.txt": [TOOL], "c.txt": [TOOL], "new.txt": [TOOL]}),
    "failed edit": Expected(
        {"a.txt": [PERSON], "b.txt": [TOOL], "c.txt": [WINDOW]}, told=("outside changed a.txt",)
    ),
    "patch": Expected({"a.txt": [TOOL, WINDOW], "b.txt": [TOOL], "new.txt": [TOOL], "bash.txt": [WINDOW]}),
    "resumed session": Expected({"new.txt": [TOOL], "new1.txt": [TOOL]}),
}

GEMINI: Final = {
    "edit": Expected({"a.txt": [TOOL]}),
    "new file": Expected({"new.txt": [TOOL]}),
    "known file": Expected({"c.txt": [TOOL]}),
    "stale edit": Expected({"a.txt": [PERSON, TOOL]}, told=("Your edit was applied",)),
    "stale edit of the same line": Expected(
        {"a.txt": [PERSON]}, {"a.txt": WANTED}, is_settled=False, denied=("no longer occurs exactly once",)
    ),
    "stale write": Expected(
        {"a.txt": [PERSON, TOOL]}, told=("was merged",), merged=("one\nTWO\nthree\nfour\nFIVE\n",)
    ),
    "stale write of the same line": Expected(
        {"a.txt": [PERSON]}, {"a.txt": WANTED}, is_settled=False, denied=("in the same lines",)
    ),
    "failed edit, then a command that fails": Expected({"c.txt": [WINDOW]}),
    "passage with other blanks": Expected({"a.txt": [TOOL]}),
    "equal calls": Expected({"a.txt": [TOOL], "b.txt": [WINDOW, WINDOW]}),
    "resumed session": Expected({"new.txt": [TOOL], "new2.txt": [TOOL]}),
}


def check_rows(repository: Repository, client: str, expected: Expected) -> None:
    versions: dict[str, list[tuple[str, str]]] = {}
    refused: dict[str, str | None] = {}
    newest: dict[str, str | None] = {}
    tracker = ConflictTracker()
    with Workspace.open(repository.root, create=False, scan=False) as workspace:
        for row in workspace.journal.rows(0, limit=1000):
            if row.zone != REPO:
                continue
            tracker.apply(row)
            name, text = split_repo_path(row.path)[1], workspace.journal.content(row.seq)
            if row.version is not None:
                newest[name] = None if row.deleted else text
            if row.version is not None and row.actor != "system":
                actor = AGENT if row.actor == f"{client}1" else row.actor
                versions.setdefault(name, []).append((actor, grade_of(row)))
            elif row.outcome == "conflict":
                refused[name] = text
    assert versions == expected.versions
    assert refused == expected.refused
    assert (tracker.current() == ()) is expected.is_settled
    for name, text in newest.items():
        assert (repository.read(name) if (repository.folder / name).exists() else None) == text


@pytest.mark.slow(4)
@pytest.mark.parametrize(
    ("client", "table"),
    [("claude", CLAUDE), ("codex", CODEX), ("opencode", OPENCODE), ("gemini", GEMINI)],
    ids=lambda each: each,
)
def test_recorded_shapes(tmp_path: Path, service: None, client: str, table: Mapping[str, Expected]) -> None:
    cases = read_cases(client)
    assert cases.keys() == table.keys()
    client_program.connect([*as_typed()], PATIENCE).close()
    for name, expected in table.items():
        print(name)
        repository = Repository(tmp_path / name)
        repository.commit(**{each.replace(".", "__"): text for each, text in FILES.items()})
        Workspace.open(repository.root).close()
        recorded = RecordedClient(repository, client)
        recorded.replay(cases[name])
        check_rows(repository, client, expected)
        for found, parts in (
            (recorded.denied, expected.denied),
            (recorded.told, expected.told),
            ([each.get("command") or each.get("content") for each in recorded.changed], expected.merged),
        ):
            assert len(found) == len(parts), found
            assert all(part in str(text) for part, text in zip(parts, found, strict=True)), found
