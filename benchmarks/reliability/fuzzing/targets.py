"""All targets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from reliability.fuzzing.boards import Boards
from reliability.fuzzing.calls import Calls
from reliability.fuzzing.clients import AcpUpdates, HookEvents
from reliability.fuzzing.documents import Documents
from reliability.fuzzing.engine import Target
from reliability.fuzzing.files import ConfigFiles, Names, ScenarioFiles, SettingsFiles
from reliability.fuzzing.mcp_messages import McpBodies, McpLines
from reliability.fuzzing.searches import Searches
from reliability.fuzzing.service_requests import ServiceRequests
from reliability.fuzzing.signatures import Signatures
from reliability.fuzzing.web_frames import WebSocketFrames

TARGETS: Final[Mapping[str, Callable[[Path], Target]]] = {
    each.name: each
    for each in (
        *(Calls, McpLines, McpBodies, WebSocketFrames, Boards, Documents),
        *(ConfigFiles, SettingsFiles, ScenarioFiles, Names, HookEvents, AcpUpdates),
        *(Searches, Signatures, ServiceRequests),
    )
}
"""The targets, each opened in its own folder."""
