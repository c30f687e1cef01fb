"""Navigate to a need, an agent, a session, a version or a merge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from watchroom.model import SHARED, Row, Zone
from watchroom.projections import Need
from watchroom.projections.model import urgent_needs

if TYPE_CHECKING:
    from watchroom_tui.app import WatchroomApp

NEED_SCREENS: Final = {
    "conflict": "files",
    "request": "requests",
    "message": "tasks",
    "outside": "files",
    "unchecked": "files",
    "handoff": "handoffs",
}
ZONE_SCREENS: Final[Mapping[Zone, str]] = {"handoff": "handoffs", "board": "boards"}
"""Where what concerns these zones is dealt with, whatever it is."""


class Navigator:
    """Leads through the screens of ``app``."""

    def __init__(self, app: WatchroomApp) -> None:
        self._app = app
        self._urgent: Need | None = None

    async def go_to_next_need(self) -> None:
        """Go to what a person should look at first; again, to the next."""
        app = self._app
        needs = urgent_needs(app.model, app.now())
        if needs:
            again = self._urgent in needs
            at = (needs.index(self._urgent) + 1) % len(needs) if again and self._urgent else 0
            self._urgent = needs[at]
            await self.go_to_need(needs[at])
        else:
            app.show_message(app.texts("header.calm"))

    async def go_to_need(self, need: Need) -> None:
        """Go to the screen that deals with ``need``, and to what it is about."""
        app = self._app
        if need.is_acknowledgeable and app.feed.is_live:
            app.show_message(app.texts("seen.hint"))
        if need.kind == "failed":
            await self.go_to_session(need.row.path)
            return
        if need.kind == "lost":
            await self.go_to_agent(need.agent)
            return
        if need.kind in ("denied", "stalled"):
            await self.go_to_agent(need.agent, what_it_did=True)
            return
        await app.action_show_screen(ZONE_SCREENS.get(need.row.zone) or NEED_SCREENS[need.kind])
        merges = app.feed.is_live and need.kind in ("conflict", "outside") and need.row.zone in SHARED
        heads = app.model.boards if need.row.zone == "board" else app.model.files
        is_known = any(each.head.path == need.row.path for each in heads)
        # The screen would show the row alone, beneath the merge, if there is no such file.
        if app.base_screen and (is_known or not merges):
            app.base_screen.go_to(need.row)
        if merges:
            await self.open_merge(need.row)

    async def open_merge(self, row: Row) -> None:
        """Settle what ``row``, a refused write or an edit made by hand, is in conflict with."""
        app = self._app
        if app.feed.is_live:
            from watchroom_tui.screens.merge import MergeScreen

            await app.push_screen(MergeScreen(row))
        else:
            app.show_message(app.texts("files.in_the_past"), "warning")

    def go_to_version(self, path: str, version: int) -> None:
        """To this version of a shared file, as soon as it is shown; only where the files are shown."""
        from watchroom_tui.screens.files import FilesScreen

        if isinstance(self._app.base_screen, FilesScreen):
            self._app.base_screen.go_to_version(path, version)

    async def go_to_agent(self, agent: str, *, what_it_did: bool = False) -> None:
        """Go to the agents screen, and to this one or its rows."""
        from watchroom_tui.screens.agents import AgentsScreen

        await self._app.action_show_screen("agents")
        if isinstance(self._app.base_screen, AgentsScreen):
            self._app.base_screen.go_to_agent(agent, what_it_did=what_it_did)

    async def go_to_session(self, path: str) -> None:
        """Go to the agents screen, and to this session."""
        from watchroom_tui.screens.agents import AgentsScreen

        await self._app.action_show_screen("agents")
        if isinstance(self._app.base_screen, AgentsScreen):
            self._app.base_screen.go_to_session(path)
            self._app.base_screen.clear_trail()
