"""Comments of people on lines that agents changed in working trees. They are sent to the agent together.

Each is a note on its tree with the tool `COMMENT`. A later note with the same id replaces the comment, and a
note without text removes it. A note with the tool `SENT` lists the comments that were sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from watchroom.features.trees.rows import TREE
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.details import get_int, get_list, get_text
from watchroom.model import Json, Row
from watchroom.texts import Catalogue
from watchroom.validation import extract_first_line

if TYPE_CHECKING:
    from watchroom.features.config.store import Store

COMMENT: Final = "comment_lines"
SENT: Final = "mark_comments_sent"
"""The tools of the notes: for a comment, and for comments that were sent."""
MAX_CHARACTERS: Final = 2000
MAX_QUOTED_LINES: Final = 20
MAX_QUOTED_CHARACTERS: Final = 4000
MAX_COMMENTS: Final = 100
"""Maximum number of comments that are sent together."""
_MAX_KEPT: Final = 1000
"""Maximum number of comments in the projection. The newest are kept."""


class TreeComment(NamedTuple):
    """A comment.

    - ``id``: created by the person's dashboard.
    - ``tree``, ``path``: the id of the tree, and the file's path there.
    - ``agent``: the agent that made the change and reads the comment.
    - ``line``: the number of its first line, counted from 1.
    - ``is_old``: the line is in HEAD, and the change removed it.
    - ``quote``: the lines as they were, without the last line feed.
    - ``seq``: its newest row.
    - ``sent``: the row that records the sending; 0 if it was not sent.
    """

    id: str
    tree: str
    path: str
    agent: str
    line: int
    is_old: bool
    quote: str
    text: str
    seq: int = 0
    sent: int = 0

    @property
    def detail(self) -> dict[str, Json]:
        """The comment as the detail of a row."""
        return {
            "comment": self.id,
            "path": self.path,
            "agent": self.agent,
            "line": self.line,
            "is_old": self.is_old,
            "quote": self.quote,
            "text": self.text,
        }


def read_comment(row: Row) -> TreeComment:
    """Return the comment of ``row``, a note with the tool `COMMENT`. Damaged fields are empty."""
    detail = row.detail
    path, agent, quote, text = (get_text(detail, name) for name in ("path", "agent", "quote", "text"))
    line = max(1, get_int(detail, "line") or 1)
    is_old = detail.get("is_old") is True
    return TreeComment(get_text(detail, "comment"), row.path, path, agent, line, is_old, quote, text, row.seq)


class TreeComments:
    """Records comments in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, call: CallContext, comment: TreeComment) -> Row:
        """Record ``comment``. A comment without text removes the comment with its id."""
        return self._note(call.with_tool(COMMENT), comment.tree, comment.text, comment.detail)

    def mark_sent(self, call: CallContext, tree: str, agent: str, comments: Iterable[str]) -> Row:
        """Record that the comments with these ids were sent to ``agent``."""
        return self._note(call.with_tool(SENT), tree, agent, {"agent": agent, "comments": [*comments]})

    def _note(self, call: CallContext, tree: str, message: str, detail: Mapping[str, Json]) -> Row:
        note = call.note(TREE, tree, message=extract_first_line(message, 200), detail=detail)
        return self._store.commits.commit(note).row


class CommentProjection:
    """The comments. Takes the rows of trees in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {}
    """Attributes that a snapshot leaves out: none."""

    def __init__(self) -> None:
        self._comments: tuple[TreeComment, ...] = ()

    def apply(self, row: Row) -> None:
        """Apply ``row``. Only notes of people matter."""
        if row.zone != TREE or row.version is not None or row.kind != "human" or row.outcome != "ok":
            return
        if row.tool == COMMENT:
            new = read_comment(row)
            others = [each for each in self._comments if each.id != new.id]
            self._comments = (*others, *([new] if new.text and new.id else []))[-_MAX_KEPT:]
        elif row.tool == SENT:
            ids = {each for each in get_list(row.detail, "comments") if isinstance(each, str)}
            self._comments = tuple(
                each._replace(sent=row.seq) if each.id in ids and not each.sent else each
                for each in self._comments
            )

    def current(self) -> tuple[TreeComment, ...]:
        """Return the comments, the oldest first. Return the same object if none changed."""
        return self._comments


def find_unsent(comments: Iterable[TreeComment], agent: str) -> list[TreeComment]:
    """Return the comments for ``agent`` that were not sent, by file and line."""
    mine = (each for each in comments if each.agent == agent and not each.sent)
    return sorted(mine, key=lambda each: (each.tree, each.path, each.line, each.seq))


def place_comments(
    lines: Sequence[str], comments: Iterable[TreeComment]
) -> Mapping[int, Sequence[TreeComment]]:
    """Return the comments by their places. A place is the index in ``lines`` of the line above the comment.

    A comment moves with its quoted lines, to the nearest place if there are several. If the lines no longer
    exist, the comment keeps its place until it is sent, and is then left out.
    """
    found: dict[int, list[TreeComment]] = {}
    for each in comments:
        quoted = each.quote.split("\n")
        start = each.line - 1
        places = [
            at for at in range(len(lines) - len(quoted) + 1) if [*lines[at : at + len(quoted)]] == quoted
        ]
        if places:
            at = min(places, key=lambda place: (abs(place - start), place)) + len(quoted) - 1
        elif each.sent or not lines:
            continue
        else:
            at = min(start, len(lines) - 1)
        found.setdefault(at, []).append(each)
    return found


def write_prompt(comments: Sequence[TreeComment], texts: Catalogue, folders: Mapping[str, str]) -> str:
    """Return ``comments`` as a prompt for their agent: paths, line numbers, quoted lines, and the comments'
    texts.

    ``folders``: the folders of trees by their ids. Paths include them if the comments are about several
    trees.
    """
    has_trees = len({each.tree for each in comments}) > 1
    parts = [texts("comments.prompt")]
    for (tree, path), mine in groupby(comments, key=lambda each: (each.tree, each.path)):
        name = f"{folders.get(tree, tree)}/{path}" if has_trees else path
        for each in mine:
            key = "comments.place_old" if each.is_old else "comments.place"
            quote = "\n".join(f"> {line}" for line in each.quote.split("\n"))
            parts.append(f"{texts(key, path=name, line=each.line)}\n{quote}\n{each.text}")
    return "\n\n".join(parts)
