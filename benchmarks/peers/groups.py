"""All groups of peers, in the order of the page."""

from __future__ import annotations

from typing import Final

from peers import markdown, merges, messages, packages, sandboxes, storage, terminals, text
from peers.comparison import Group

GROUPS: Final[tuple[Group, ...]] = (
    storage.GROUP,
    text.GROUP,
    markdown.GROUP,
    merges.GROUP,
    sandboxes.GROUP,
    messages.GROUP,
    terminals.GROUP,
    packages.GROUP,
)
