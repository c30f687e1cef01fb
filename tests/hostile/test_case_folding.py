"""Names that differ only in upper and lower case, on disks that take them for one and on those that do not.

Where no such disk can be had, the one question that is asked about it is answered by a fake. Set
WATCHROOM_FOLDING_DISK to a folder on a real one to try that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Workspace
from watchroom.platform import Platform

REAL_DISK = os.environ.get("WATCHROOM_FOLDING_DISK")


class FoldingPlatform(Platform):
    def folds_case(self, folder_fd: int, name: str) -> bool:
        return True


@pytest.fixture
def folding(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace on a disk that takes upper and lower case for one."""
    root = Path(REAL_DISK or tmp_path) / f"team-{os.getpid()}-{tmp_path.name}"
    platform = Platform() if REAL_DISK else FoldingPlatform()
    with Workspace.open(root, agents=["alice", "bob"], platform=platform) as workspace:
        yield workspace


NAMES = {
    "collab_write": ("filepath", {"message": "m"}),
    "save_to_my_workspace": ("filename", {}),
    "handoff_file": ("filename", {"to_agent": "bob", "message": "m"}),
}


@pytest.mark.parametrize("tool", NAMES)
@pytest.mark.parametrize(
    ("first", "second"), [("Plan.md", "plan.md"), ("docs/a.md", "Docs/b.md"), ("Straße.md", "STRASSE.md")]
)
def test_a_second_spelling_of_a_name_is_refused(
    folding: Workspace, tool: str, first: str, second: str
) -> None:
    alice = folding.tools("alice")
    argument, others = NAMES[tool]
    ok(alice, tool, **{argument: first, "content": "first"}, **others)
    refusal = refused(alice, tool, **{argument: second, "content": "second"}, **others)
    assert refusal["error"] == "invalid_path"
    assert "differs only in case" in refusal["message"]
    ok(alice, tool, **{argument: first, "content": "again"}, **others)
    assert folding.verify() == []


def test_a_second_spelling_of_a_document_is_refused(folding: Workspace) -> None:
    alice = folding.tools("alice")
    ok(alice, "realtime_create_document", doc_id="Notes", schema={"body": "rga"})
    folding.close()
    with Workspace.open(folding.root, platform=folding.platform) as again:
        refusal = refused(
            again.tools("bob"), "realtime_create_document", doc_id="notes", schema={"body": "rga"}
        )
    assert refusal["error"] == "invalid_path"


def test_elsewhere_both_spellings_are_files_of_their_own(workspace: Workspace) -> None:
    alice = workspace.tools("alice")
    for name in ("Plan.md", "plan.md"):
        ok(alice, "collab_write", filepath=name, content=name, message="m")
        assert ok(alice, "collab_read", filepath=name)["content"] == name
    assert workspace.verify() == []
