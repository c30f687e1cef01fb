"""Decides about writes to files that others may have changed since they were read. Pure.

An agent's client asks before it writes. `decide` compares three versions of the file: the newest version
(``head``), the version that the agent saw, and the text that it is about to write.

| write | proceeds if |
|---|---|
| `PassageEdit` | the passage is in the newest text |
| `Update` | its hunks apply to the newest text; or it merges |
| `WholeText`, `Deletion` | the agent saw the newest version, or nothing of others is there; or it merges |

After the call, `find_lost_lines` finds what a shell command removed unseen. The agent reads the texts of
`Refusal` and `ChangeNotice`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.algorithms.merge import (
    BOM,
    Region,
    build_regions,
    find_open_regions,
    join_regions,
    merge_styles,
    split_lines,
    unified_diff,
)
from watchroom.features.trees.patches import (
    FilePatch,
    apply_update,
    build_add,
    build_update,
    diff_line_lists,
)
from watchroom.texts import Catalogue

MAX_MERGED_CHARACTERS: Final = 10_000_000
"""Maximum number of characters in a text that is merged or compared."""
MAX_DIFF_LINES: Final = 60
"""Maximum number of diff lines shown to an agent."""
MAX_DIFF_LINE: Final = 300
"""Maximum number of characters in a diff line shown to an agent."""
MAX_NOTICES: Final = 10
"""Maximum number of files that an agent is notified about after a call."""

RefusalCode: TypeAlias = Literal["stale_write", "never_seen", "passage_gone", "merge_conflict", "deleted"]
"""The reason why a write is refused.

- ``stale_write``: others changed the file, and the write cannot be merged with their changes.
- ``never_seen``: the file is the work of others, and the agent has not read it.
- ``passage_gone``: others changed the text that the edit or the hunks replace.
- ``merge_conflict``: others changed the same lines.
- ``deleted``: others deleted the file.
"""
DecisionKind: TypeAlias = Literal["proceed", "merged", "refused"]


class FileView(NamedTuple):
    """A version of a file.

    - ``version``: 0 if the file has no version.
    - ``text``: None if the file does not exist, or is not text.
    - ``author``: the version's author.
    - ``is_text``: False for a file that exists and is not text.
    - ``is_baseline``: the version is git's text, so it can be restored.
    - ``lines``: the ranges of lines that an agent read of the version (from 0, ends excluded); None if it
      read all.
    """

    version: int = 0
    text: str | None = None
    author: str = ""
    is_text: bool = True
    is_baseline: bool = False
    lines: tuple[tuple[int, int], ...] | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return self.text is not None or not self.is_text


class PassageEdit(NamedTuple):
    """Replaces the passage ``old``. It must occur once, unless ``replaces_all`` is set."""

    old: str
    new: str
    replaces_all: bool = False


class WholeText(NamedTuple):
    """Writes the whole text. ``is_patch``: Codex writes it, and always adds a line feed at the end."""

    text: str
    is_patch: bool = False


class Deletion(NamedTuple):
    """Deletes the file."""


class Update(NamedTuple):
    """Applies the hunks of a patch. For a move, the file here is removed and written elsewhere."""

    patch: FilePatch


Intent: TypeAlias = PassageEdit | WholeText | Deletion | Update


class Decision(NamedTuple):
    """A decision about a write.

    - ``kind``: ``merged`` if the client has to write ``text`` instead.
    - ``code``: the reason of the refusal; None if the write is not refused.
    - ``text``: the text of the file after the write. For a refused write, the text that the agent wanted.
      None if the file is deleted or the text is unknown.
    - ``base``: the version that the agent changed, 0 for none.
    - ``is_stale``: the agent saw an older version, and must be notified of the changes since.
    """

    kind: DecisionKind
    code: RefusalCode | None = None
    text: str | None = None
    base: int = 0
    is_stale: bool = False


def decide(
    intent: Intent,
    head: FileView,
    seen: FileView | None,
    agent: str = "",
    older: Sequence[FileView] = (),
) -> Decision:
    """Decide about a write by ``agent``.

    - ``head``: the newest version.
    - ``seen``: the version that the agent saw last; None if it never saw the file.
    - ``older``: other versions that a patch may be based on, newest first. The patch's context shows which
      version the agent knows. Codex reads files with commands, so ``seen`` is not always known.

    If the write is refused because the file was deleted, count the deletion as seen: it cannot be read.
    """
    decision = _decide(intent, head, seen, agent, older)
    base = decision.base or (seen.version if seen else 0)
    return decision._replace(base=base, is_stale=seen is not None and not _is_current(head, seen))


def _decide(
    intent: Intent, head: FileView, seen: FileView | None, agent: str, older: Sequence[FileView]
) -> Decision:
    match intent:
        case PassageEdit("", new):
            # An edit without a passage writes a new file.
            return _decide_text(WholeText(new), head, seen, agent)
        case PassageEdit():
            return _decide_passage(intent, head, seen)
        case Update(patch):
            return _decide_update(patch, head, seen, older)
        case WholeText():
            return _decide_text(intent, head, seen, agent)
        case Deletion():
            return _decide_deletion(head, seen, agent)


def apply_intent(intent: Intent, text: str | None) -> str | None:
    """Return ``text`` after the write. None if the file is deleted, or if the result is unknown."""
    match intent:
        case WholeText(new) | PassageEdit("", new):
            return new
        case PassageEdit():
            return replace_passage(text, intent)
        case Update(patch):
            return None if text is None or patch.move_to else apply_update(patch, text)
        case Deletion():
            return None


def _is_current(head: FileView, seen: FileView | None) -> bool:
    """Return whether the agent has seen the newest version, or a version with the same content."""
    if seen is None:
        return not head.exists and not head.version
    if seen.version == head.version:
        return True
    return head.is_text and seen.is_text and seen.text == head.text


def _is_free(head: FileView, agent: str) -> bool:
    """Return whether ``head`` contains no work of others that could be lost."""
    return not head.exists or head.is_baseline or _is_own(head, agent)


def _is_own(head: FileView, agent: str) -> bool:
    return bool(agent) and head.author == agent


def _decide_passage(intent: PassageEdit, head: FileView, seen: FileView | None) -> Decision:
    if _is_current(head, seen) or not head.is_text:
        # The client itself checks the passage, and has more ways to match it than this module.
        return Decision("proceed", text=replace_passage(head.text, intent))
    if head.text is None:
        return Decision("refused", "deleted", replace_passage(seen and seen.text, intent))
    after = replace_passage(head.text, intent)
    wanted = replace_passage(seen and seen.text, intent)
    if after is None and wanted is not None:
        return Decision("refused", "passage_gone", wanted)
    return Decision("proceed", text=after)


def replace_passage(text: str | None, intent: PassageEdit) -> str | None:
    """Return ``text`` after the edit ``intent``; None if the passage is not there.

    Clients send line feeds for any line ends.
    """
    if text is None:
        return None
    for old, new in _list_line_ends(text, intent):
        count = text.count(old)
        if count == 1 or (count and intent.replaces_all):
            return text.replace(old, new)
    return None


def _list_line_ends(text: str, intent: PassageEdit) -> Iterator[tuple[str, str]]:
    yield intent.old, intent.new
    if "\r\n" in text and "\r" not in intent.old:
        yield intent.old.replace("\n", "\r\n"), intent.new.replace("\r\n", "\n").replace("\n", "\r\n")


def _decide_update(
    patch: FilePatch, head: FileView, seen: FileView | None, older: Sequence[FileView]
) -> Decision:
    after = None if head.text is None else apply_update(patch, head.text)
    if _is_current(head, seen) or not head.is_text:
        # The client itself refuses hunks that do not match.
        return Decision("proceed", text=after)
    if seen is None and after is not None:
        return Decision("proceed", text=after)
    base, wanted = _find_base(patch, (*([seen] if seen else ()), *older))
    if base is not None and base.text is not None and wanted is not None and head.text is not None:
        merged = _merge_update(patch, base.text, head.text, wanted)
        # If the texts differ, the hunks would change a similar passage elsewhere.
        if merged is not None and merged != after:
            return Decision("merged", text=merged, base=base.version)
    if after is not None:
        return Decision("proceed", text=after)
    if base is None and seen is None:
        return Decision("proceed")
    code: RefusalCode = (
        "deleted" if head.text is None else "passage_gone" if base is None else "merge_conflict"
    )
    return Decision("refused", code, wanted, base.version if base else 0)


def _find_base(patch: FilePatch, views: Iterable[FileView]) -> tuple[FileView | None, str | None]:
    """Return the first of ``views`` to which the hunks apply, and its text after them."""
    for view in views:
        text = None if view.text is None else apply_update(patch, view.text)
        if text is not None:
            return view, text
    return None, None


def _merge_update(patch: FilePatch, base: str, head: str, wanted: str) -> str | None:
    """Return a merged text that Codex can write instead; None if there is none."""
    merged = merge_texts(base, head, wanted)
    if merged is None:
        return None
    merged = _end_last_line(head, merged)
    return merged if build_update(patch.path, head, merged, patch.move_to) is not None else None


def _end_last_line(before: str, text: str) -> str:
    """Return ``text`` with a final line end, which Codex adds to each file that it updates."""
    if not text or text.endswith(("\n", "\r")):
        return text
    lines = split_lines(before)
    return text + ("\r\n" if lines and lines[0].endswith("\r\n") else "\n")


def _decide_text(intent: WholeText, head: FileView, seen: FileView | None, agent: str) -> Decision:
    text = intent.text
    if head.is_text and head.text == text:
        return Decision("proceed", text=text)
    if seen is None or (seen.lines is not None and _is_current(head, seen)):
        is_free = _is_free(head, agent) if seen is None else not head.exists or head.is_baseline
        if is_free or (seen is not None and not find_lost_lines(head.text, text, seen)):
            return Decision("proceed", text=text)
        return Decision("refused", "never_seen", text)
    if _is_current(head, seen) or _is_own(head, agent):
        return Decision("proceed", text=text)
    if not head.exists:
        return Decision("refused", "deleted", text)
    has_read_all = seen.lines is None or not find_lost_lines(seen.text, text, seen)
    if head.text is None or seen.text is None or not has_read_all:
        return Decision("refused", "stale_write", text)
    merged = merge_texts(seen.text, head.text, text)
    if merged is None:
        return Decision("refused", "merge_conflict", text)
    if intent.is_patch:
        merged = _end_last_line("", merged)
        if build_add("f", merged) is None:
            return Decision("refused", "stale_write", text)
    return Decision("proceed" if merged == text else "merged", text=merged)


def _decide_deletion(head: FileView, seen: FileView | None, agent: str) -> Decision:
    if seen is None:
        return Decision("proceed") if _is_free(head, agent) else Decision("refused", "never_seen")
    if not head.exists or head.is_baseline:
        return Decision("proceed")
    if seen.lines is not None and find_lost_lines(head.text, None, seen):
        return Decision("refused", "never_seen")
    if _is_current(head, seen) or _is_own(head, agent):
        return Decision("proceed")
    return Decision("refused", "stale_write")


def merge_texts(base: str, current: str, incoming: str) -> str | None:
    """Return the merge of two texts based on ``base``; None if they conflict or are too long."""
    if max(len(base), len(current), len(incoming)) > MAX_MERGED_CHARACTERS:
        return None
    styles = merge_styles(base, current, incoming)
    regions = _merge_lines(styles.normalize(base), styles.normalize(current), styles.normalize(incoming))
    return None if find_open_regions(regions) else styles.apply(join_regions(regions))


def _merge_lines(base: str, current: str, incoming: str) -> tuple[Region, ...]:
    old, ours, theirs = (split_lines(text) for text in (base, current, incoming))
    return build_regions((old, ours, theirs), diff_line_lists(old, ours), diff_line_lists(old, theirs))


MAX_PREDICTED_CHARACTERS: Final = 200_000
"""Maximum number of characters in a text whose conflicts are predicted, because other jobs wait for it."""


class Clash(NamedTuple):
    """Lines that two texts changed differently.

    - ``ours``, ``theirs``: the range in each text (from 0, ends excluded).
    - ``our_text``, ``their_text``: these lines.
    """

    ours: tuple[int, int]
    theirs: tuple[int, int]
    our_text: str
    their_text: str


def find_clashes(base: str, ours: str, theirs: str) -> list[Clash]:
    """Return the lines that conflict in a merge of two texts based on ``base``."""
    styles = merge_styles(base, ours, theirs)
    found: list[Clash] = []
    at_ours = at_theirs = 0
    for region in _merge_lines(styles.normalize(base), styles.normalize(ours), styles.normalize(theirs)):
        end_ours, end_theirs = at_ours + len(region.current), at_theirs + len(region.incoming)
        if region.is_open:
            ranges = (at_ours, end_ours), (at_theirs, end_theirs)
            found.append(Clash(*ranges, "".join(region.current), "".join(region.incoming)))
        at_ours, at_theirs = end_ours, end_theirs
    return found


class LostLines(NamedTuple):
    """Lines that a write removed, though its author had not seen them.

    - ``start``: the number of the first line before the write, from 0.
    - ``lines``: the lines, with their ends.
    """

    start: int
    lines: tuple[str, ...]


def find_lost_lines(before: str | None, after: str | None, seen: FileView | None) -> tuple[LostLines, ...]:
    """Return the lines of ``before`` that a write removed, though its author had not seen them.

    Lines that moved, lines that only changed their white space, and blank lines do not count.

    - ``before``, ``after``: the texts before and after the write; None if there was no file.
    - ``seen``: the version that the write's author saw last; None if it saw none.
    """
    if before is None or before == after or max(len(before), len(after or "")) > MAX_MERGED_CHARACTERS:
        return ()
    old, new = split_lines(before), split_lines(after or "")
    known = _find_known_lines(old, seen)
    changes = diff_line_lists(old, new)
    added = Counter(_squeeze(line) for change in changes for line in new[change.new_start : change.new_end])
    lost: list[int] = []
    # Unseen lines come first in the comparison, because an added line may be one of them.
    removed = [index for change in changes for index in range(change.old_start, change.old_end)]
    for index in sorted(removed, key=lambda index: index in known):
        line = _squeeze(old[index])
        if added[line]:
            added[line] -= 1
        elif line and index not in known:
            lost.append(index)
    return tuple(_group_lines(old, lost))


def _group_lines(lines: Sequence[str], indexes: list[int]) -> Iterator[LostLines]:
    """Yield groups of consecutive lines. ``indexes``: their line numbers in ascending order."""
    start = 0
    for place, index in enumerate(indexes):
        if indexes[place + 1 : place + 2] != [index + 1]:
            yield LostLines(indexes[start], tuple(lines[indexes[start] : index + 1]))
            start = place + 1


def _squeeze(line: str) -> str:
    return "".join(line.removeprefix(BOM).split())


def _find_known_lines(lines: Sequence[str], seen: FileView | None) -> set[int]:
    """Return the indexes of the ``lines`` that are also in the text ``seen``."""
    if seen is None or seen.text is None:
        return set()
    read = split_lines(seen.text)
    ranges = [(0, len(read))] if seen.lines is None else seen.lines
    visible = {index for start, end in ranges for index in range(max(0, start), min(len(read), end))}
    known: set[int] = set()
    at_read = at = 0
    for change in (*diff_line_lists(read, lines), None):
        end = len(read) if change is None else change.old_start
        known.update(at + index - at_read for index in range(at_read, end) if index in visible)
        if change is not None:
            at_read, at = change.old_end, change.new_end
    return known


def find_known_ranges(text: str, seen: FileView, before: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of lines of ``text`` (from 0, ends excluded) that its author knows: lines that it had
    seen, and lines that it wrote.

    ``before``: the text that the author changed.
    """
    lines = split_lines(text)
    known = _find_known_lines(lines, seen)
    for change in diff_line_lists(split_lines(before), lines):
        known.update(range(change.new_start, change.new_end))
    ranges: list[tuple[int, int]] = []
    for index in sorted(known):
        if ranges and ranges[-1][1] == index:
            ranges[-1] = (ranges[-1][0], index + 1)
        else:
            ranges.append((index, index + 1))
    return tuple(ranges)


def count_changed_lines(before: str | None, after: str | None) -> int:
    """Return the number of changed lines: for each change, the lines of the longer side. None means no
    file."""
    old, new = split_lines(before or ""), split_lines(after or "")
    changes = diff_line_lists(old, new)
    return sum(
        max(change.old_end - change.old_start, change.new_end - change.new_start) for change in changes
    )


class Refusal(NamedTuple):
    """The message to an agent about a refused write.

    - ``authors``: the authors of changes since the agent saw the file.
    - ``diff``: these changes, as a unified diff of at most `MAX_DIFF_LINES`; may be empty.
    - ``omitted``: the number of diff lines that are left out.
    - ``has_text``: the agent's text exists and is kept.
    """

    code: RefusalCode
    path: str
    authors: tuple[str, ...]
    diff: str = ""
    omitted: int = 0
    has_text: bool = True

    def say(self, texts: Catalogue) -> str:
        """Return the text for the agent, in the language of ``texts``, the core's catalogue."""
        authors = texts("tree.separator").join(self.authors) or texts("tree.somebody")
        parts = [texts(f"tree.{self.code}", path=self.path, authors=authors)]
        if self.diff:
            parts.append(texts("tree.diff", diff=self.diff))
        if self.omitted:
            parts.append(texts("tree.diff_cut", count=self.omitted))
        if self.has_text:
            parts.append(texts("tree.kept"))
        parts.append(texts(_NEXT.get(self.code, "tree.read_again"), path=self.path))
        return "\n".join(parts)


_NEXT: Final[Mapping[RefusalCode, str]] = {"never_seen": "tree.read_first", "deleted": "tree.create_again"}
"""The catalogue key of the agent's next step, by refusal code."""


def build_refusal(
    code: RefusalCode,
    path: str,
    head: FileView,
    seen: FileView | None,
    authors: Iterable[str] = (),
    *,
    has_text: bool = True,
) -> Refusal:
    """Return the message to the agent about a refused write.

    - ``authors``: the authors of changes since the agent saw the file, default the author of ``head``.
    - ``has_text``: False for a `Deletion`.
    """
    names = tuple(dict.fromkeys(authors)) or ((head.author,) if head.author else ())
    refusal = Refusal(code, path, names, has_text=has_text)
    if seen is None or seen.text is None or head.text is None:
        return refusal
    diff, omitted = cut_diff(seen.text, head.text, path)
    return refusal._replace(diff=diff, omitted=omitted)


def cut_diff(before: str, after: str, path: str) -> tuple[str, int]:
    """Return a unified diff for an agent, and the number of diff lines that are left out."""
    if max(len(before), len(after)) > MAX_MERGED_CHARACTERS:
        return "", count_changed_lines(before, after)
    # Lone surrogates cannot be compared.
    old, new = (text.encode("utf-8", "replace").decode() for text in (before, after))
    lines = unified_diff(old, new, path, path).rstrip("\n").split("\n")
    shown = [
        line if len(line) <= MAX_DIFF_LINE else f"{line[:MAX_DIFF_LINE]}…" for line in lines[:MAX_DIFF_LINES]
    ]
    return "\n".join(shown), max(0, len(lines) - MAX_DIFF_LINES)


class ChangeNotice(NamedTuple):
    """The message that others changed a file since the agent read it.

    - ``line_count``: the number of changed lines.
    - ``is_deleted``: the file was deleted.
    - ``moved_to``: the path of a new file with the content of the deleted file; empty for none.
    """

    path: str
    authors: tuple[str, ...]
    line_count: int = 0
    is_deleted: bool = False
    moved_to: str = ""

    def say(self, texts: Catalogue) -> str:
        """Return the text for the agent, in the language of ``texts``, the core's catalogue."""
        authors = texts("tree.separator").join(self.authors) or texts("tree.somebody")
        if not self.is_deleted:
            key = "tree.changed" if self.line_count != 1 else "tree.changed_one"
            return texts(key, path=self.path, authors=authors, count=self.line_count)
        key = "tree.moved" if self.moved_to else "tree.gone"
        return texts(key, path=self.path, authors=authors, new=self.moved_to)


def build_notice(
    path: str, head: FileView, seen: FileView, authors: Iterable[str] = (), moved_to: str = ""
) -> ChangeNotice:
    """Return the notice that ``head`` is newer than the version that the agent saw.

    - ``authors``: the authors of changes since, default the author of ``head``.
    - ``moved_to``: the path of a new file with the same content, if ``head`` is a deletion.
    """
    names = tuple(dict.fromkeys(authors)) or ((head.author,) if head.author else ())
    if not head.exists:
        return ChangeNotice(path, names, is_deleted=True, moved_to=moved_to)
    return ChangeNotice(path, names, count_changed_lines(seen.text, head.text))


def say_notices(notices: Sequence[ChangeNotice], texts: Catalogue) -> str:
    """Return the text for the agent after a call: one line for each of the first `MAX_NOTICES` files."""
    lines = [notice.say(texts) for notice in notices[:MAX_NOTICES]]
    if len(notices) > MAX_NOTICES:
        lines.append(texts("tree.more_changed", count=len(notices) - MAX_NOTICES))
    return "\n".join(lines)


def say_lost_lines(path: str, author: str, lost: Sequence[LostLines], texts: Catalogue) -> str:
    """Return the text for the agent whose call removed lines of ``author``."""
    count = sum(len(each.lines) for each in lost)
    key = "tree.lost_lines" if count != 1 else "tree.lost_line"
    return texts(key, path=path, author=author or texts("tree.somebody"), count=count)
