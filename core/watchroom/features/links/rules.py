"""The config table ``[web]``, and the check of a link. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit

from watchroom.errors import ConfigInvalid, InvalidAgentId
from watchroom.features.alerts.rules import is_web_address
from watchroom.features.links.rows import Link
from watchroom.model import HUMAN_PREFIX
from watchroom.validation import check_human_name

LinkRefusal: TypeAlias = Literal[
    "link_unknown",
    "link_used",
    "link_expired",
    "link_person",
    "link_origin",
    "link_changed",
    "link_signed",
    "link_closed",
]
"""The reason why a link was refused.

- ``link_unknown``: no such link was issued.
- ``link_person``: the person no longer answers requests, or was enrolled, changed or revoked since.
- ``link_origin``: the answer came from another page.
- ``link_changed``: the page is out of date, or belongs to another link.
- ``link_signed``: in a closed workspace, answers must be signed.
- ``link_closed``: the request has ended.
"""
MAX_LINK_SECONDS: Final = 24 * 3600
"""Maximum lifetime of a link in seconds. The deadline of its request can be earlier."""
TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
"""The form of a token: 256 random bits."""
_FIELDS: Final = ("public_url", "person", "targets", "approve_button")
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class WebSettings(NamedTuple):
    """The config table ``[web]``.

    - ``public_url``: the address under which a person's own proxy or tunnel shows the pages, without a path;
      empty for no links.
    - ``person``: the name of the person who answers with links.
    - ``targets``: the names of the targets whose alerts contain links.
    - ``approve_button``: whether alerts of ntfy have a button that approves a request without a page.
    """

    public_url: str = ""
    person: str = ""
    targets: tuple[str, ...] = ()
    approve_button: bool = False

    @property
    def actor(self) -> str:
        """The actor id of the person who answers."""
        return HUMAN_PREFIX + self.person

    @property
    def host(self) -> str:
        """The Host header of requests to the pages."""
        return urlsplit(self.public_url).netloc


def parse_web(table: object, alert_targets: Collection[str]) -> WebSettings:
    """Return the settings in ``table``, the config table ``[web]``. Raise `ConfigInvalid`.

    ``alert_targets``: the names of the targets in ``[alerts]``.
    """
    if not isinstance(table, dict) or not table.keys() <= {*_FIELDS}:
        raise ConfigInvalid(problem=f"web ({', '.join(_FIELDS)})")
    if not table:
        return WebSettings()
    button = table.get("approve_button", False)
    if not isinstance(button, bool):
        raise ConfigInvalid(problem=f"web.approve_button = {button!r} (true, false)")
    targets = table.get("targets")
    if not isinstance(targets, list) or not targets or not all(each in alert_targets for each in targets):
        raise ConfigInvalid(problem=f"web.targets ({', '.join(sorted(alert_targets)) or 'alerts.targets'})")
    try:
        person = check_human_name(str(table.get("person", "")))
    except InvalidAgentId as error:
        raise ConfigInvalid(problem="web.person") from error
    url = _origin_of(table.get("public_url"))
    return WebSettings(url, person, tuple(dict.fromkeys(cast("list[str]", targets))), button)


def dump_web(settings: WebSettings) -> dict[str, object]:
    """Return the config table ``[web]`` for ``settings``, without defaults. The reverse of `parse_web`."""
    if settings == WebSettings():
        return {}
    table: dict[str, object] = {**settings._asdict(), "targets": [*settings.targets]}
    if not settings.approve_button:
        del table["approve_button"]
    return table


def _origin_of(url: object) -> str:
    """Return ``url`` as browsers write an origin. Raise `ConfigInvalid` unless it is an address without a
    path, and its transport is encrypted or stays on this machine."""
    if not isinstance(url, str) or not is_web_address(url) or not url.isascii():
        raise ConfigInvalid(problem="web.public_url (https://…)")
    parts = urlsplit(url)
    is_encrypted = parts.scheme == "https" or parts.hostname in _LOOPBACK
    if not is_encrypted or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigInvalid(problem="web.public_url (https://…)")
    host = parts.netloc.lower()
    if parts.port == _DEFAULT_PORTS[parts.scheme]:
        host = host.rpartition(":")[0]
    return f"{parts.scheme}://{host}"


def find_refusal(
    link: Link | None, settings: WebSettings, enrolment: int, now: int, *, is_used: bool
) -> LinkRefusal | None:
    """Return the reason to refuse ``link``, None if it is valid.

    - ``link``: None if no link has the token.
    - ``enrolment``: the newest row of the person's enrolment, 0 for none.
    - ``now``: the current time, in nanoseconds since the epoch.
    - ``is_used``: whether the link was used.
    """
    if link is None:
        return "link_unknown"
    if is_used:
        return "link_used"
    if now >= link.expires:
        return "link_expired"
    is_person = link.person == settings.person and link.enrolment == enrolment
    return None if is_person else "link_person"
