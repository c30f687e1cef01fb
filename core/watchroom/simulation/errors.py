"""What can be wrong with a scenario."""

from __future__ import annotations

from watchroom.errors import WatchroomError


class InvalidScenario(WatchroomError):
    """A scenario file that cannot be played. Values: file, problems (a line each, with its line number)."""

    code = "invalid_scenario"
