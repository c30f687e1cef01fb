"""Writes docs/reference.md from the docstrings of the public face: ``python docs/make_reference.py``.

With ``--check``, nothing is written, and the exit status is 1 where the page is not as it would be.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import griffe
from griffe2md import default_config, render_object_docs

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reference.md"
SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "A workspace and its tools": (
        "watchroom.workspace.Workspace",
        "watchroom.features.calls.toolbox.Toolbox",
        "watchroom.features.config.rows.Agent",
        "watchroom.model.Row",
        "watchroom.history.verify.Problem",
        "watchroom.errors.WatchroomError",
    ),
    "Running agents": (
        "watchroom.features.sessions.runtime.agent.AgentProgram",
        "watchroom.features.sessions.runtime.agent.Policies",
        "watchroom.features.sessions.runtime.agent.Limits",
        "watchroom.features.sessions.runtime.agent.RuntimeConfig",
        "watchroom.features.sessions.runtime.chat_agent.ChatAgent",
        "watchroom.features.sessions.runtime.tools.tool",
        "watchroom.features.sessions.runtime.runtime.AgentRuntime",
        "watchroom.features.sessions.runtime.sessions.Sessions",
        "watchroom.features.sessions.runtime.session.Session",
        "watchroom.features.sessions.runtime.state.AgentState",
        "watchroom.features.sessions.runtime.state.create_initial_state",
    ),
    "Details for a front end": (
        "watchroom.kernel.reads.find_row",
        "watchroom.kernel.reads.read_page",
        "watchroom.features.overview.reads.read_history",
        "watchroom.features.overview.reads.read_text",
        "watchroom.features.overview.reads.read_merge",
        "watchroom.features.sessions.reads.read_steps",
        "watchroom.features.calls.reads.read_request",
        "watchroom.features.tasks.reads.read_output",
        "watchroom.history.spans.SpanReader",
        "watchroom.history.spans.SpanRecord",
        "watchroom.kernel.rules.details.StepDetail",
    ),
    "Events and states of agents": (
        "watchroom.history.events.EventReader",
        "watchroom.history.events.Event",
        "watchroom.features.overview.goals.find_state",
        "watchroom.features.overview.goals.GoalState",
    ),
    "Searching": (
        "watchroom.history.search.query.SearchQuery",
        "watchroom.history.search.index.SearchResult",
        "watchroom.history.search.index.Hit",
        "watchroom.history.search.index.SearchIndex",
        "watchroom.history.search.index.open_index",
    ),
    "What a journal must answer": (
        "watchroom.kernel.journal.protocol.Journal",
        "watchroom.kernel.journal.side_stores.PresenceStore",
        "watchroom.kernel.journal.side_stores.SnapshotStore",
        "watchroom.kernel.journal.side_stores.BlobStore",
    ),
    "What a buffer can be bound to": ("watchroom.algorithms.editing.data_source_binding.DataSource",),
}
INTRODUCTION: Final = """\
# Reference

The public face of `watchroom`, from its docstrings. How to begin is in the [README](../README.md), how it is
built in the [architecture](architecture.md). Every error is a `WatchroomError` with a stable `code`.
"""


def render() -> str:
    """The page, as Markdown."""
    packages = griffe.load("watchroom", search_paths=[ROOT / "core"])
    config = {
        **default_config,
        "filters": ["!^_"],
        "heading_level": 3,
        "members_order": "source",
        "show_root_full_path": False,
        "show_object_full_path": False,
        "show_signature_annotations": True,
        "show_if_no_docstring": False,
        "summary": False,
    }
    parts = [INTRODUCTION]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        for name in names:
            module = name.rpartition(".")[0]
            shown = render_object_docs(packages[name.removeprefix("watchroom.")], config)
            shown = shown.replace(f"# `{module}.", "# `")
            # The headings have other anchors than these links.
            shown = re.sub(r"<code>\[(\w+)\]\(#[^)]*\)</code>", r"`\1`", shown)
            parts.append("\n".join(line.rstrip() for line in shown.splitlines()).strip() + "\n")
    return "\n".join(parts)


def main() -> int:
    page = render()
    if "--check" in sys.argv[1:]:
        is_same = PAGE.read_text("utf-8") == page
        print("docs/reference.md is up to date" if is_same else "run python docs/make_reference.py")
        return 0 if is_same else 1
    PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
