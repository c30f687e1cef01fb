"""Deliver alerts, with one request per message."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from watchroom.errors import DeliveryUnusable
from watchroom.features.alerts.payloads import (
    NO_LINKS,
    NeedLink,
    alert_payload,
    alert_text,
    ntfy_buttons,
    split_topic,
    without_mentions,
)
from watchroom.features.alerts.plugins import PluginDelivery
from watchroom.features.alerts.rows import AlertMessage, Identity
from watchroom.features.alerts.rules import AlertTarget, is_web_address
from watchroom.platform.json_post import DeliveryFailed, post_json, resolve_variable
from watchroom.texts import Catalogue

if TYPE_CHECKING:
    from apprise import Apprise


class AlertDelivery(Protocol):
    """Delivers messages to one target."""

    def send(self, message: AlertMessage, links: Mapping[Identity, NeedLink] = NO_LINKS) -> None:
        """Deliver ``message`` with ``links`` to its needs. Raise `DeliveryFailed`."""
        ...


def open_delivery(
    target: AlertTarget, environ: Mapping[str, str], place: str, link: str, texts: Catalogue
) -> AlertDelivery:
    """Return the delivery to ``target``.

    - ``environ``: the environment that resolves the target's variables.
    - ``place``: the workspace's name.
    - ``link``: the address of the workspace's dashboard, empty for no link.

    Raise `DeliveryUnusable` if a variable is missing, an address is invalid, or an extra or a plug-in is
    not installed.
    """
    entry = f"alerts.targets.{target.name}"
    url = resolve_variable(f"{entry}.url", target.url, environ, texts)
    token = resolve_variable(f"{entry}.token", target.token, environ, texts)
    if target.type == "apprise":
        return AppriseDelivery(entry, url, place, link, texts)
    if target.type == "plugin":
        return PluginDelivery(entry, target.plugin, url, token, place, link, texts)
    if not is_web_address(url) or (target.type == "ntfy" and not split_topic(url)[1]):
        raise DeliveryUnusable(problem=texts("alert.no_address", entry=f"{entry}.url"))
    if not token.isascii() or not token.isprintable():
        raise DeliveryUnusable(problem=texts("alert.no_token", entry=f"{entry}.token"))
    return HttpDelivery(target, url, token, place, link, texts)


class HttpDelivery:
    """Delivers by POST to ``url``. ``token`` is the bearer token, empty for none."""

    def __init__(
        self, target: AlertTarget, url: str, token: str, place: str, link: str, texts: Catalogue
    ) -> None:
        self._type = target.type
        self._url, self._topic = split_topic(url) if target.type == "ntfy" else (url, "")
        self._token = token
        self._place = place
        self._link = link
        self._texts = texts

    def send(self, message: AlertMessage, links: Mapping[Identity, NeedLink] = NO_LINKS) -> None:
        """Deliver ``message`` with ``links`` to its needs. Raise `DeliveryFailed`."""
        text = alert_text(message, self._place, self._link, self._texts, links)
        payload = alert_payload(self._type, message, text, self._place, self._link, self._topic, links)
        if self._type == "ntfy" and (buttons := ntfy_buttons(message, links, self._texts)):
            payload["actions"] = buttons
        post_json(self._url, payload, self._texts, key=message.id, token=self._token)


class AppriseDelivery:
    """Delivers to a service of Apprise.

    - ``entry``: the name of the target in the config.
    - ``url``: the service's address in Apprise's notation.

    Raise `DeliveryUnusable` if the library is not installed or does not know the service.
    """

    def __init__(self, entry: str, url: str, place: str, link: str, texts: Catalogue) -> None:
        try:
            from apprise import Apprise, AppriseAsset
        except ModuleNotFoundError as error:
            raise DeliveryUnusable(problem=texts("alert.no_apprise", entry=entry)) from error
        # Apprise logs addresses, and Python prints log records that have no handler.
        logger = logging.getLogger("apprise")
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
        self._service: Apprise = Apprise(asset=AppriseAsset(http_redirects=False))
        if not self._service.add(url):
            raise DeliveryUnusable(problem=texts("alert.no_address", entry=f"{entry}.url"))
        self._place = place
        self._link = link
        self._texts = texts

    def send(self, message: AlertMessage, links: Mapping[Identity, NeedLink] = NO_LINKS) -> None:
        """Deliver ``message`` with ``links`` to its needs. Raise `DeliveryFailed`."""
        text = alert_text(message, self._place, self._link, self._texts, links)
        title, body = without_mentions(text.title), without_mentions(text.body)
        if not self._service.notify(title=title, body=body, body_format="text"):
            raise DeliveryFailed(self._texts("alert.not_taken"))
