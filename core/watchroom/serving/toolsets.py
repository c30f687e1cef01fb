"""The toolsets that a server offers by default: few, since the definitions cost tokens in every context."""

from __future__ import annotations

from typing import Final

from watchroom.toolbox.tool import ToolsetName

DEFAULT_TOOLSETS: Final[tuple[ToolsetName, ...]] = ("private", "handoff", "collab")
"""At most 4,000 tokens of GPT-3's byte pairs, with all that the protocol sends of a tool."""
