"""A team with boards, and the boards' contents."""

from __future__ import annotations

from calls import ok
from watchroom import Workspace
from watchroom.features.config.rows import Agent

TEAM = (
    Agent("ceo", "strategy", "top"),
    Agent("anna", "architect", "mid", "ceo"),
    Agent("ada", "coder", "bottom", "anna"),
    Agent("zoe", "helper", "bottom"),
)
MILESTONES = "- [x] Outline agreed\n- [x] Sources collected\n- [ ] First draft reviewed"
DECISIONS = """### Decision #1
- **Time**: 2026-01-20T09:30:00Z
- **Proposer**: ceo
- **Content**: Publish in two parts
- **Signed by**: ceo
- **Status**: approved

### Decision #2
- **Time**: yesterday
- **Proposer**: ceo
- **Content**: Skip the appendix
- **Signed by**: ceo
- **Status**: rejected"""
TASKS = """### Task #1
- **Description**: Clean the data
- **Status**: in progress
- **Progress**: 60%
- **Blockers**: the second export"""


def fill(workspace: Workspace) -> None:
    """Write the global board, and ada's."""
    ceo, ada = workspace.tools("ceo"), workspace.tools("ada")
    for section, text in (("Milestones", MILESTONES), ("Key decisions", DECISIONS)):
        ok(ceo, "whiteboard_update_section", board="global", section=section, content=text)
    ok(ada, "whiteboard_update_section", board="bottom-layer-ada", section="Current tasks", content=TASKS)
    ok(workspace.tools("anna"), "whiteboard_append", board="global", content="Twelve sources are in.")


def current(workspace: Workspace, board: str = "global") -> str:
    head = workspace.journal.head("board", board)
    return workspace.journal.content(head.seq) or "" if head else ""
