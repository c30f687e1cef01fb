"""The dashboard's memory of one workspace for one person: a file in the person's state folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from platformdirs import user_state_path
from watchroom import validation

from watchroom_tui.keys.actions import SCREENS

MAX_BYTES: Final = 64 * 1024
"""Max bytes of the file. Larger files are ignored, and not written."""
_SCREENS: Final = frozenset(name for _, name in SCREENS)


@dataclass(frozen=True, slots=True)
class WorkspaceMemory:
    """The last ``screen`` (None: unknown), and the filters of lists, by ``screen.list``."""

    screen: str | None = None
    filters: Mapping[str, str] = field(default_factory=dict)


def memory_path(place: str) -> Path:
    """Return the path of the file for the workspace at ``place``: its folder, or its address on a server."""
    digest = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    return user_state_path("watchroom", appauthor=False) / "dashboards" / f"{digest}.toml"


def read_memory(path: Path) -> WorkspaceMemory:
    """Return the content of the file at ``path``, an empty memory if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        values = validation.parse_toml(data.decode("utf-8")) if len(data) <= MAX_BYTES else {}
    except (OSError, ValueError):
        return WorkspaceMemory()
    screen, filters = values.get("screen"), values.get("filters")
    return WorkspaceMemory(
        screen if screen in _SCREENS else None,
        {name: text for name, text in filters.items() if isinstance(text, str)}
        if isinstance(filters, dict)
        else {},
    )


def write_memory(path: Path, memory: WorkspaceMemory) -> None:
    """Write ``memory`` into the file at ``path``, unless it is the same. Raises OSError, and ValueError for
    more than `MAX_BYTES`."""
    if memory == read_memory(path):
        return
    import tomlkit

    values = {"screen": memory.screen, "filters": dict(memory.filters)}
    text = tomlkit.dumps({name: value for name, value in values.items() if value})
    if len(text.encode()) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text, "utf-8")
    part.replace(path)
