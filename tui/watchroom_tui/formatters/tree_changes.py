"""Changes in working trees as text. The text is the same on the screen and in commands. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from watchroom.features.trees.rows import Tree
from watchroom.features.trees.view import Author
from watchroom.texts import Catalogue

from watchroom_tui.formatters.actor_class import agent_class
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize

if TYPE_CHECKING:
    # Slow to load, because it imports git.
    from watchroom.features.trees.commits import BlockedFile
    from watchroom.features.trees.reads import AuthorChanges, ChangedFile

KIND_SIGNS: Final = {
    "added": Span("A", "ok"),
    "modified": Span("M", "accent"),
    "deleted": Span("D", "error"),
}


SHORT_COMMIT: Final = 8
"""Number of characters of a commit id in texts for people."""


def branch_text(tree: Tree) -> str:
    """Return the branch of ``tree`` as ``⎇ main``. Return the short id of its commit while HEAD is
    detached."""
    return f"⎇ {sanitize(tree.branch or tree.head[:SHORT_COMMIT])}"


def author_style(author: Author) -> str:
    """Return the style of an author's name. Git and external changes do not have the colour of an agent."""
    return "dim" if author.grade in ("git", "external", "shared") else agent_class(author.actor)


def count_text(added: int, removed: int) -> str:
    """Return numbers of lines as ``+12 −3``, empty for no lines."""
    return " ".join(f"{sign}{count}" for sign, count in (("+", added), ("−", removed)) if count)


def authors_line(authors: Sequence[AuthorChanges]) -> Line:
    """Return the authors of a file with their numbers of lines: ``alice +12 −3 · ~bob +4``."""
    spans: list[Span] = []
    for each in authors:
        if spans:
            spans.append(Span(" · ", "dim"))
        spans.append(Span(sanitize(each.author.name), author_style(each.author)))
        count = count_text(each.added, each.removed)
        if count:
            spans.append(Span(f" {count}"))
    return spans


def blocked_text(blocked: BlockedFile, texts: Catalogue) -> str:
    """Return the reason why a file is left out of a commit."""
    others = ", ".join(sanitize(each or "git") for each in blocked.others)
    return texts(f"commit_agent.left_out.{blocked.reason}", others=others)


def find_changes_of(file: ChangedFile, actors: Sequence[str]) -> list[AuthorChanges]:
    """Return the changes of ``actors`` in ``file``."""
    return [each for each in file.authors if each.author.actor in actors]


def propose_branch(agents: Sequence[str], number: int = 1) -> str:
    """Return a name for a new branch with the work of ``agents``. Append ``number`` if it is above 1."""
    return "watchroom/" + "+".join(agents) + (f"-{number}" if number > 1 else "")
