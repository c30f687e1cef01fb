"""The rules of alerts: the messages that are due for a target, and the config table ``[alerts]``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta, tzinfo
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args
from urllib.parse import parse_qs, urlsplit

from watchroom.errors import ConfigInvalid
from watchroom.features.alerts.rows import AlertEvent, AlertItem, AlertMessage, TargetState
from watchroom.features.needs.rules import URGENCY, NeedKind
from watchroom.validation import PLUGIN_NAME

TargetType: TypeAlias = Literal["webhook", "slack", "ntfy", "apprise", "plugin"]
"""The form of messages.

- ``webhook``: a JSON object by POST.
- ``slack``: a JSON object with only a ``text``, for Slack and compatible services.
- ``ntfy``: a message to a topic of ntfy.
- ``apprise``: a message to a service that the library Apprise supports.
- ``plugin``: a message that another package sends (docs/plugins.md).
"""
TARGET_TYPES: Final[tuple[TargetType, ...]] = get_args(TargetType)
_TARGET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", re.ASCII)
_VARIABLE: Final = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,59}", re.ASCII)
_MAX_TARGETS: Final = 20
_MAX_URL_CHARACTERS: Final = 2000
_MAX_DIGEST_SECONDS: Final = 86_400
DIGEST_SECONDS: Final = 10
MAX_ITEMS: Final = 100
"""Max needs in one message. The other needs are sent in further messages."""
_SECOND: Final = 1_000_000_000


class AlertTarget(NamedTuple):
    """A target of alerts.

    - ``url``: the address, or ``$`` and the name of an environment variable.
    - ``token``: ``$`` and the name of an environment variable, empty for no token.
    - ``plugin``: the name of the plug-in that sends, empty for other types.

    The config is a row, and rows must not contain secrets.
    """

    name: str
    type: TargetType
    url: str
    token: str = ""
    plugin: str = ""


class QuietHours(NamedTuple):
    """The daily hours in which nothing is sent.

    - ``start``, ``end``: the local times, as ``HH:MM``.
    - ``zone``: the name of the time zone, such as ``Europe/Berlin``.
    """

    start: str
    end: str
    zone: str

    def end_of(self, moment: int, zone: tzinfo) -> int | None:
        """Return the end of the quiet hours that contain ``moment``, None if it is outside them.

        - ``moment``: a time in nanoseconds since the epoch, like the result.
        - ``zone``: the time zone.
        """
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
    """The config table ``[alerts]``."""

    targets: Mapping[str, AlertTarget] = MappingProxyType({})
    kinds: tuple[NeedKind, ...] = URGENCY
    """The kinds of needs to send."""
    digest_seconds: int = DIGEST_SECONDS
    """Seconds during which new needs are collected for one message. Needs that end earlier are not sent."""
    ended: bool = True
    """Whether to send messages about needs that ended."""
    link: str = ""
    """The address of the dashboard, for readers of alerts; empty for no link."""
    quiet: QuietHours | None = None


def parse_alerts(table: object) -> AlertSettings:
    """Return the settings in ``table``, the config table ``[alerts]``. Raise `ConfigInvalid`, which names
    the invalid entry and never contains an address."""
    fields = _table("alerts", table, ("targets", "kinds", "digest_seconds", "ended", "link", "quiet"))
    kinds = fields.get("kinds", list(URGENCY))
    if (
        not isinstance(kinds, list)
        or not kinds
        or not all(isinstance(kind, str) and kind in URGENCY for kind in kinds)
    ):
        raise ConfigInvalid(problem=f"alerts.kinds ({', '.join(URGENCY)})")
    digest = fields.get("digest_seconds", DIGEST_SECONDS)
    # A bool is an int in Python.
    if not isinstance(digest, int) or isinstance(digest, bool) or not 0 <= digest <= _MAX_DIGEST_SECONDS:
        raise ConfigInvalid(problem=f"alerts.digest_seconds = {digest!r} (0 … {_MAX_DIGEST_SECONDS})")
    ended = fields.get("ended", True)
    if not isinstance(ended, bool):
        raise ConfigInvalid(problem=f"alerts.ended = {ended!r} (true, false)")
    targets = fields.get("targets", {})
    if not isinstance(targets, dict) or len(targets) > _MAX_TARGETS:
        raise ConfigInvalid(problem=f"alerts.targets (0 … {_MAX_TARGETS})")
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
    """Return the config table ``[alerts]`` for ``alerts``, without defaults. The reverse of
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
    """Return whether ``link`` is the address of a web page and contains no credentials."""
    if not is_web_address(link):
        return False
    parts = urlsplit(cast("str", link))
    return "token" not in parse_qs(parts.query, keep_blank_values=True)


def is_web_address(url: object) -> bool:
    """Return whether ``url`` is an HTTP or HTTPS address without a user name and a password."""
    if not isinstance(url, str) or not url.isprintable() or " " in url or len(url) > _MAX_URL_CHARACTERS:
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
    fields = _table(place, table, ("type", "url", "token", "plugin"))
    kind = fields.get("type")
    if kind not in TARGET_TYPES:
        raise ConfigInvalid(problem=f"{place}.type ({', '.join(TARGET_TYPES)})")
    url, token, plugin = fields.get("url"), fields.get("token", ""), fields.get("plugin", "")
    is_plugin = isinstance(plugin, str) and PLUGIN_NAME.fullmatch(plugin) is not None
    if is_plugin != (kind == "plugin") or ("plugin" in fields and not is_plugin):
        raise ConfigInvalid(problem=f'{place}.plugin (type = "plugin")')
    is_variable = isinstance(url, str) and _VARIABLE.fullmatch(url) is not None
    # The addresses of Apprise contain secrets, and those of plug-ins may.
    needs_variable = kind in ("apprise", "plugin")
    if not is_variable and (needs_variable or not is_web_address(url)):
        raise ConfigInvalid(problem=f"{place}.url ($VARIABLE{'' if needs_variable else ', http, https'})")
    if token != "" and (kind == "apprise" or not isinstance(token, str) or not _VARIABLE.fullmatch(token)):
        raise ConfigInvalid(problem=f"{place}.token ($VARIABLE)")
    return AlertTarget(name, kind, cast("str", url), token, cast("str", plugin))


def _quiet(table: object) -> QuietHours:
    fields = _table("alerts.quiet", table, QuietHours._fields)
    for name in ("start", "end"):
        value = fields.get(name)
        if not isinstance(value, str) or not _CLOCK.fullmatch(value):
            raise ConfigInvalid(problem=f"alerts.quiet.{name} (HH:MM)")
    zone = fields.get("zone")
    # Only the machine that sends alerts knows which time zones exist there.
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


class AlertPlan(NamedTuple):
    """The messages to send to a target, and the time of the next plan.

    - ``state``: the state of the target, with the needs that wait for a message.
    - ``messages``: the messages to send now.
    - ``next_at``: the time to plan again even if no need changes, in nanoseconds since the epoch; None for
      never.
    """

    state: TargetState
    messages: tuple[AlertMessage, ...] = ()
    next_at: int | None = None


def plan_alerts(
    state: TargetState,
    items: Sequence[AlertItem],
    now: int,
    *,
    digest_seconds: int,
    reports_ends: bool = True,
    quiet_until: int | None = None,
) -> AlertPlan:
    """Return the messages that are due for a target.

    - ``state``: the state of the target before.
    - ``items``: the open needs.
    - ``now``: the current time, in nanoseconds since the epoch.
    - ``digest_seconds``: seconds that a new need waits for other needs in the same message.
    - ``reports_ends``: whether to report ended needs. A need that continues under another kind has not
      ended.
    - ``quiet_until``: the end of the quiet hours, in nanoseconds since the epoch; default: no quiet hours.
    """
    current = {item.identity: item for item in items}
    rows = {item.since for item in items if item.since}
    ended = [
        item
        for identity, item in state.reported.items()
        if identity not in current and item.since not in rows and reports_ends
    ]
    waiting = {
        identity: state.waiting.get(identity, now) for identity in current if identity not in state.reported
    }
    state = state._replace(waiting=MappingProxyType(waiting))
    due = min(waiting.values()) + digest_seconds * _SECOND if waiting else None
    if quiet_until is not None and now < quiet_until:
        return AlertPlan(state, (), quiet_until if waiting or ended else None)
    messages = [*_split_messages("ended", ended)]
    if due is not None and due <= now:
        messages += _split_messages("new", [current[identity] for identity in waiting])
        due = None
    return AlertPlan(state, tuple(messages), due)


def _split_messages(event: AlertEvent, items: Sequence[AlertItem]) -> Iterable[AlertMessage]:
    for start in range(0, len(items), MAX_ITEMS):
        yield AlertMessage(event, tuple(items[start : start + MAX_ITEMS]))
