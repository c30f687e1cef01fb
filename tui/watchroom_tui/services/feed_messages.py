"""What the threads behind the dashboard tell it."""

from __future__ import annotations

from textual.message import Message
from watchroom.features.overview.model import Model


class ModelChanged(Message):
    """The feed has a new model."""

    def __init__(self, model: Model, progress: float) -> None:
        super().__init__()
        self.model = model
        self.progress = progress


class OutageChanged(Message):
    """The journal's server does not answer since a moment (nanoseconds since the epoch); None: it does."""

    def __init__(self, since: int | None) -> None:
        super().__init__()
        self.since = since


class WatchModeChanged(Message):
    """External edits are noticed otherwise than before: by events, or by polling every ``poll_seconds``."""

    def __init__(self, poll_seconds: int | None) -> None:
        super().__init__()
        self.poll_seconds = poll_seconds
