"""Alerts that are sent out of the workspace: where to, of which needs, and when, as the config says. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, time, timedelta, tzinfo
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args
from urllib.parse import parse_qs, urlsplit

from watchroom.errors import ConfigInvalid
from watchroom.rules.needs import URGENCY, NeedKind

TargetType: TypeAlias = Literal["webhook", "slack", "ntfy", "apprise"]
"""A JSON object by POST; one with a ``text`` alone, which Slack and those like it take; a topic of ntfy; any
service that the library Apprise knows."""
TARGET_TYPES: Final[tuple[TargetType, ...]] = get_args(TargetType)
_TARGET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", re.ASCII)
_VARIABLE: Final = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,59}", re.ASCII)
_MOST_TARGETS: Final = 20
_LONGEST_URL: Final = 2000
_LONGEST_DIGEST: Final = 86_400
DIGEST_SECONDS: Final = 10


class AlertTarget(NamedTuple):
    """Where alerts go. ``url`` and ``token`` may be the name of an environment variable after a ``$``: what
    stands in the config is a row, and secrets are in no row. A ``token`` always is such a name."""

    name: str
    type: TargetType
    url: str
    token: str = ""


class QuietHours(NamedTuple):
    """Every day nothing is sent from ``start`` until ``end`` (``HH:MM``), by the clocks of the time ``zone``,
    such as ``Europe/Berlin``."""

    start: str
    end: str
    zone: str

    def end_of(self, moment: int, zone: tzinfo) -> int | None:
        """Until when it is quiet at ``moment``, by the clocks of ``zone``; both in nanoseconds since the
        epoch. None where it is not quiet then."""
        local = datetime.fromtimestamp(moment / 1e9, zone)
        start, end = time.fromisoformat(self.start), time.fromisoformat(self.end)
        clock = local.time()
        goes_past_midnight = start > end
        is_quiet = clock >= start or clock < end if goes_past_midnight else start <= clock < end
        if not is_quiet:
            return None
        days = 1 if goes_past_midnight and clock >= start else 0
        return int(datetime.combine(local.date() + timedelta(days), end, zone).timestamp()) * 1_000_000_000


class AlertSettings(NamedTuple):
    """What the config says of alerts that are sent out of the workspace."""

    targets: Mapping[str, AlertTarget] = MappingProxyType({})
    kinds: tuple[NeedKind, ...] = URGENCY
    """The needs that are sent."""
    digest_seconds: int = DIGEST_SECONDS
    """What comes within so many seconds goes into one message; what goes within them is not sent."""
    ended: bool = True
    """Whether it is sent, too, that a need waits no more."""
    link: str = ""
    """Where the dashboard is served, for people who read an alert."""
    quiet: QuietHours | None = None


def parse_alerts(table: object) -> AlertSettings:
    """The settings that ``table``, the part ``[alerts]`` of a config, says. Raises `ConfigInvalid`, which
    names the entry that is wrong, and never says an address."""
    fields = _table("alerts", table, ("targets", "kinds", "digest_seconds", "ended", "link", "quiet"))
    kinds = fields.get("kinds", list(URGENCY))
    if (
        not isinstance(kinds, list)
        or not kinds
        or not all(isinstance(kind, str) and kind in URGENCY for kind in kinds)
    ):
        raise ConfigInvalid(problem=f"alerts.kinds ({', '.join(URGENCY)})")
    digest = fields.get("digest_seconds", DIGEST_SECONDS)
    # True is an int, too.
    if not isinstance(digest, int) or isinstance(digest, bool) or not 0 <= digest <= _LONGEST_DIGEST:
        raise ConfigInvalid(problem=f"alerts.digest_seconds = {digest!r} (0 … {_LONGEST_DIGEST})")
    ended = fields.get("ended", True)
    if not isinstance(ended, bool):
        raise ConfigInvalid(problem=f"alerts.ended = {ended!r} (true, false)")
    targets = fields.get("targets", {})
    if not isinstance(targets, dict) or len(targets) > _MOST_TARGETS:
        raise ConfigInvalid(problem=f"alerts.targets (0 … {_MOST_TARGETS})")
    link = fields.get("link", "")
    if link != "" and not is_link(link):
        raise ConfigInvalid(problem="alerts.link (http, https)")
    return AlertSettings(
        MappingProxyType({name: _target(name, each) for name, each in targets.items()}),
        tuple(dict.fromkeys(cast("list[NeedKind]", kinds))),
        digest,
        ended,
        cast("str", link),
        _quiet(fields["quiet"]) if "quiet" in fields else None,
    )


def dump_alerts(alerts: AlertSettings) -> dict[str, object]:
    """``alerts`` as the part ``[alerts]`` of a config says them, without what has its default: the reverse of
    `parse_alerts`."""
    default = AlertSettings()
    table: dict[str, object] = {}
    for name in ("kinds", "digest_seconds", "ended", "link"):
        value = getattr(alerts, name)
        if value != getattr(default, name):
            table[name] = list(value) if isinstance(value, tuple) else value
    if alerts.quiet is not None:
        table["quiet"] = alerts.quiet._asdict()
    if alerts.targets:
        table["targets"] = {
            target.name: {name: value for name, value in target._asdict().items() if name != "name" and value}
            for target in alerts.targets.values()
        }
    return table


def is_link(link: object) -> bool:
    """Whether ``link`` is the address of a page, and has nothing in it that lets whoever reads it in."""
    if not is_web_address(link):
        return False
    parts = urlsplit(cast("str", link))
    return "token" not in parse_qs(parts.query, keep_blank_values=True)


def is_web_address(url: object) -> bool:
    """Whether ``url`` is an address of HTTP or HTTPS, without a name and a password."""
    if not isinstance(url, str) or not url.isprintable() or " " in url or len(url) > _LONGEST_URL:
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    is_open = parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0
    return is_open and parts.username is None and parts.password is None


def _target(name: str, table: object) -> AlertTarget:
    place = f"alerts.targets.{name if _TARGET_NAME.fullmatch(name) else ascii(name[:40])}"
    if not _TARGET_NAME.fullmatch(name):
        raise ConfigInvalid(problem=place)
    fields = _table(place, table, ("type", "url", "token"))
    kind = fields.get("type")
    if kind not in TARGET_TYPES:
        raise ConfigInvalid(problem=f"{place}.type ({', '.join(TARGET_TYPES)})")
    url, token = fields.get("url"), fields.get("token", "")
    is_variable = isinstance(url, str) and _VARIABLE.fullmatch(url) is not None
    # An address of Apprise is made of secrets.
    if not is_variable and (kind == "apprise" or not is_web_address(url)):
        raise ConfigInvalid(problem=f"{place}.url ($VARIABLE{'' if kind == 'apprise' else ', http, https'})")
    if token != "" and (kind == "apprise" or not isinstance(token, str) or not _VARIABLE.fullmatch(token)):
        raise ConfigInvalid(problem=f"{place}.token ($VARIABLE)")
    return AlertTarget(name, kind, cast("str", url), token)


def _quiet(table: object) -> QuietHours:
    fields = _table("alerts.quiet", table, QuietHours._fields)
    for name in ("start", "end"):
        value = fields.get(name)
        if not isinstance(value, str) or not _CLOCK.fullmatch(value):
            raise ConfigInvalid(problem=f"alerts.quiet.{name} (HH:MM)")
    zone = fields.get("zone")
    # Whether there is such a zone says the machine that sends.
    if not isinstance(zone, str) or not _ZONE.fullmatch(zone):
        raise ConfigInvalid(problem="alerts.quiet.zone (Europe/Berlin, UTC, …)")
    if fields["start"] == fields["end"]:
        raise ConfigInvalid(problem="alerts.quiet: start = end")
    return QuietHours(cast("str", fields["start"]), cast("str", fields["end"]), zone)


def _table(place: str, table: object, known: tuple[str, ...]) -> Mapping[str, object]:
    if not isinstance(table, dict):
        raise ConfigInvalid(problem=place)
    unknown = next((name for name in table if name not in known), None)
    if unknown is not None:
        raise ConfigInvalid(problem=f"{place}.{ascii(unknown[:40])[1:-1]} ({', '.join(known)})")
    return table
