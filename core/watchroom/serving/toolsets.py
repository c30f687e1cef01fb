"""Which tools a server offers where nobody says which: few enough to be paid for in every context."""

from __future__ import annotations

from typing import Final

from watchroom.toolbox.tool import ToolsetName

DEFAULT_TOOLSETS: Final[tuple[ToolsetName, ...]] = ("private", "handoff", "collab")
"""At most 4,000 tokens of GPT-3's byte pairs, with all that the protocol tells of a tool."""
