"""The links in alerts, with which a person opens and answers single needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from watchroom.features.alerts.payloads import MAX_NEEDS, NeedLink
from watchroom.features.alerts.rows import AlertItem, AlertMessage, Identity
from watchroom.features.links.rows import LinkAction
from watchroom.features.links.service import LinkedNeed, Links

PAGE_PATH: Final = "/need/"
APPROVE_PATH: Final = "/approve/"
_PATHS: Final[Mapping[LinkAction, str]] = {"page": PAGE_PATH, "approve": APPROVE_PATH}


class AlertLinks:
    """The links for the alerts to one target.

    - ``links``: issues them.
    - ``can_approve``: whether the target shows a button that approves a request.

    A message that is sent again has the same links.
    """

    def __init__(self, links: Links, *, can_approve: bool) -> None:
        self._links = links
        self._can_approve = can_approve
        self._issued: dict[Identity, NeedLink] = {}

    def find(self, message: AlertMessage) -> Mapping[Identity, NeedLink]:
        """Return the links for the needs of ``message``, at most `MAX_NEEDS`. Issue those that are missing.
        Raise `JournalError`."""
        settings = self._links.settings
        items = message.items[:MAX_NEEDS] if message.event == "new" and settings.public_url else ()
        missing = [item for item in items if item.identity not in self._issued]
        wanted: list[tuple[AlertItem, LinkAction]] = [(item, "page") for item in missing]
        if self._can_approve and settings.approve_button:
            wanted += [(item, "approve") for item in missing if item.kind == "request"]
        needs = [(LinkedNeed(each.kind, each.since, each.text, each.deadline), do) for each, do in wanted]
        place = settings.public_url
        for (item, action), token in zip(wanted, self._links.issue(needs) if needs else (), strict=True):
            known = self._issued.get(item.identity, NeedLink(""))
            self._issued[item.identity] = known._replace(**{action: f"{place}{_PATHS[action]}{token}"})
        return {item.identity: self._issued[item.identity] for item in items}

    def forget(self, message: AlertMessage) -> None:
        """Forget the links of ``message``, because it was sent or given up."""
        for item in message.items:
            self._issued.pop(item.identity, None)
