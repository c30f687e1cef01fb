"""Targets of other packages: entry points of the group ``watchroom.alerts`` (docs/plugins.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple, TypeAlias, cast

from watchroom.errors import DeliveryUnusable
from watchroom.features.alerts.payloads import NO_LINKS, NeedLink, alert_payload, alert_text
from watchroom.features.alerts.rows import AlertMessage, Identity
from watchroom.model import Json
from watchroom.platform.json_post import DeliveryFailed
from watchroom.platform.plugins import OfferedPlugin, Plugins, load_plugins
from watchroom.texts import Catalogue

ENTRY_POINT_GROUP: Final = "watchroom.alerts"


class PluginAlert(NamedTuple):
    """A message for people, as a plug-in gets it.

    - ``id``: the same when the message is sent again.
    - ``url``, ``token``: the values of the target's variables. The token is empty if there is none.
    - ``title``, ``text``: the message. ``text`` has a line for each need.
    - ``payload``: the message as webhooks get it.
    """

    id: str
    url: str
    token: str
    title: str
    text: str
    payload: Mapping[str, Json]


AlertPlugin: TypeAlias = Callable[[PluginAlert], object]
"""Delivers a message. If it raises an error, it is called again later."""


@cache
def alert_plugins() -> Plugins[AlertPlugin]:
    """Return the targets of installed packages."""

    def check(offered: OfferedPlugin) -> AlertPlugin:
        if not callable(offered.value):
            raise ValueError(f"{type(offered.value).__name__} cannot be called")
        return cast("AlertPlugin", offered.value)

    return load_plugins(ENTRY_POINT_GROUP, check)


class PluginDelivery:
    """Delivers with the plug-in ``name``.

    - ``entry``: the name of the target in the config.
    - ``place``, ``link``: see `watchroom.features.alerts.delivery.open_delivery`.

    Raise `DeliveryUnusable` if there is no such plug-in.
    """

    def __init__(
        self, entry: str, name: str, url: str, token: str, place: str, link: str, texts: Catalogue
    ) -> None:
        known = alert_plugins()
        if name not in known.found:
            broken = [each for each in known.problems if each.name == name]
            problem = texts("alert.no_plugin", entry=entry, name=name)
            for each in broken:
                problem = texts("alert.broken_plugin", entry=entry, package=each.package, reason=each.reason)
            raise DeliveryUnusable(problem=problem)
        self._deliver = known.found[name]
        self._name = name
        self._url = url
        self._token = token
        self._place = place
        self._link = link
        self._texts = texts

    def send(self, message: AlertMessage, links: Mapping[Identity, NeedLink] = NO_LINKS) -> None:
        """Deliver ``message`` with ``links`` to its needs. Raise `DeliveryFailed`."""
        text = alert_text(message, self._place, self._link, self._texts, links)
        payload = alert_payload("webhook", message, text, self._place, self._link, links=links)
        alert = PluginAlert(message.id, self._url, self._token, text.title, text.body, payload)
        try:
            self._deliver(alert)
        except (Exception, SystemExit) as error:
            # The error's own text may contain the address, and the reason becomes a row.
            reason = self._texts("alert.plugin_failed", name=self._name, error=type(error).__name__)
            raise DeliveryFailed(reason) from error
