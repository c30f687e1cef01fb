"""How an agent merges after a conflict: the current text stays, its own lines go in where they belong.

This is how a careful agent works, not how Watchroom merges for a person: that shows the regions and asks.
"""

from __future__ import annotations

from difflib import SequenceMatcher


def reconcile(base: str, current: str, mine: str) -> str:
    """``current`` with what ``mine`` changed since ``base``.

    What I replaced is replaced if it still stands as I knew it. Where someone else was faster, theirs
    stays and mine is put beside it. A line that both added is there once.
    """
    old, own = base.split("\n"), mine.split("\n")
    merged = current.split("\n")
    matcher = SequenceMatcher(None, old, own, autojunk=False)
    for change, i1, i2, j1, j2 in matcher.get_opcodes():
        if change == "equal":
            continue
        before, after = old[i1:i2], own[j1:j2]
        at = _find(merged, before)
        if at is not None:
            merged[at : at + len(before)] = after
            continue
        new = _new_lines(after, merged)
        if any(new):
            at = _place(merged, own[:j1])
            set_apart = j1 > 0 and not own[j1 - 1] and at > 0 and merged[at - 1]
            merged[at:at] = ["", *_without_end_blank(new, merged[at:])] if set_apart else new
    return "\n".join(merged)


def _find(lines: list[str], block: list[str]) -> int | None:
    """Where a block that is more than blank lines stands, whole."""
    if not any(block):
        return None
    for at in range(len(lines) - len(block) + 1):
        if lines[at : at + len(block)] == block:
            return at
    return None


def _new_lines(lines: list[str], known: list[str]) -> list[str]:
    return [line for line in lines if not line or line not in known]


def _without_end_blank(lines: list[str], below: list[str]) -> list[str]:
    return lines[:-1] if below and not below[0] and not lines[-1] else lines


def _place(lines: list[str], above: list[str]) -> int:
    """Behind the nearest line above that stands here too; behind a heading, at its section's end."""
    for anchor in reversed(above):
        if anchor and anchor in lines:
            at = len(lines) - lines[::-1].index(anchor)
            return _section_end(lines, at) if anchor.startswith("#") else at
    return len(lines) - 1 if lines and not lines[-1] else len(lines)


def _section_end(lines: list[str], at: int) -> int:
    end = next((i for i in range(at, len(lines)) if lines[i].startswith("#")), len(lines))
    while end > at and not lines[end - 1]:
        end -= 1
    return end
