"""Navigate to a need, an agent, a session, a version or a merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from watchroom.errors import SettingsUnsigned
from watchroom.features.needs.rules import NeedKind
from watchroom.features.overview.model import Need, urgent_needs
from watchroom.model import Row, Zone

from watchroom_tui.context import (
    AgentTarget,
    Dashboard,
    RangeTarget,
    RowTarget,
    SessionTarget,
    Target,
    VersionTarget,
)
from watchroom_tui.services.screen_registry import load_screen_class

NEED_SCREENS: Final = {
    "forged": "activity",
    "unreadable": "activity",
    "conflict": "files",
    "request": "requests",
    "expired": "requests",
    "budget": "agents",
    "message": "tasks",
    "outside": "files",
    "unchecked": "files",
    "handoff": "handoffs",
}
ZONE_SCREENS: Final[Mapping[Zone, str]] = {"handoff": "handoffs", "board": "boards"}
"""Where what concerns these zones is dealt with, whatever it is."""


class Navigator:
    """Leads through the screens of ``app``."""

    def __init__(self, app: Dashboard) -> None:
        self._app = app
        self._visited: list[tuple[NeedKind, str, int]] = []
        """The needs that were gone to in this round, the last one at the end."""

    @property
    def next_need(self) -> Need | None:
        """The need that `go_to_next_need` goes to: the most urgent one that was not gone to in this round,
        then the one that follows the last."""
        needs = urgent_needs(self._app.model, self._app.now())
        left = next((need for need in needs if need.identity not in self._visited), None)
        if left is not None or not needs:
            return left
        last = next(at for at, need in enumerate(needs) if need.identity == self._last_of(needs))
        return needs[(last + 1) % len(needs)]

    def _last_of(self, needs: Sequence[Need]) -> tuple[NeedKind, str, int]:
        """Return the one of ``needs`` that was gone to last; all of them were."""
        known = {need.identity for need in needs}
        return next(each for each in reversed(self._visited) if each in known)

    async def go_to_next_need(self) -> None:
        """Go to what a person should look at first; again, to the next."""
        need = self.next_need
        if need is None:
            self._app.show_message(self._app.texts("header.calm"))
        else:
            if need.identity in self._visited:
                self._visited.clear()
            self._visited.append(need.identity)
            await self.go_to_need(need)
            # The header names what is next by now, also where the screen stays the same.
            self._app.show_model()

    async def go_to_need(self, need: Need) -> None:
        """Go to the screen that deals with ``need``, and to what it is about."""
        app = self._app
        if need.row.error == SettingsUnsigned.code and app.is_live:
            # The first paint does not wait for it.
            from watchroom_tui.services.settings_signing import offer_signing

            app.run_worker(offer_signing(app), group="settings", exclusive=True)
            return
        if need.is_acknowledgeable and app.is_live:
            app.show_message(app.texts("seen.hint"))
        if need.kind == "failed":
            await self.go_to("agents", SessionTarget(need.row.path))
            return
        if need.kind in ("lost", "breaker", "denied", "stalled"):
            await self.go_to("agents", AgentTarget(need.agent, shows_rows=need.kind != "lost"))
            return
        # The zone of a row that cannot be read says nothing.
        of_zone = None if need.kind == "unreadable" else ZONE_SCREENS.get(need.row.zone)
        await app.show_screen(of_zone or NEED_SCREENS[need.kind])
        merges = app.is_live and "merge" in need.answers
        heads = app.model.heads_of(need.row.zone)
        is_known = any(each.head.path == need.row.path for each in heads)
        # The screen would show the row alone, beneath the merge, if there is no such file.
        if app.base_screen and (is_known or not merges):
            app.base_screen.go_to(RowTarget(need.row))
        if merges:
            await self.open_merge(need.row)

    async def go_to(self, screen: str, target: Target) -> None:
        """Go to this screen and put the cursor on ``target``; ``compare`` lies over the screen that is shown
        and takes a `RangeTarget`."""
        if isinstance(target, RangeTarget):
            await self._app.push_screen(load_screen_class(screen)(target))
            return
        await self._app.show_screen(screen)
        if self._app.base_screen:
            self._app.base_screen.go_to(target)

    async def open_merge(self, row: Row) -> None:
        """Settle what ``row``, a refused write or an edit made by hand, is in conflict with."""
        app = self._app
        if app.is_live:
            await app.push_screen(load_screen_class("merge")(row))
        else:
            app.explain_read_only()

    def go_to_version(self, path: str, version: int) -> None:
        """To this version of a shared file, as soon as it is shown; only where the files are shown."""
        if self._app.base_screen:
            self._app.base_screen.go_to(VersionTarget(path, version))
