"""Send alerts to the targets in the config, about new and ended needs."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Condition, Thread
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from watchroom.errors import DeliveryUnusable, JournalDenied, JournalError
from watchroom.features.alerts.delivery import AlertDelivery, open_delivery
from watchroom.features.alerts.links import AlertLinks
from watchroom.features.alerts.payloads import NO_LINKS, AlertWording, alert_summary, end_sentence
from watchroom.features.alerts.rows import AlertItem, AlertMessage, Identity
from watchroom.features.alerts.rules import AlertSettings, plan_alerts
from watchroom.features.alerts.service import Alerts
from watchroom.features.links.service import Links
from watchroom.features.overview.model import Need
from watchroom.features.sessions.runtime.models.retry_policy import RetryPolicy
from watchroom.platform.json_post import DeliveryFailed
from watchroom.texts import Catalogue

RETRY: Final = RetryPolicy(retries=10, base=1.0, longest=300.0)
"""The retries of a message. They cover a quarter of an hour, for a server that restarts."""
_END_SECONDS: Final = 12.0
"""Max seconds to wait at the end for requests in progress, so that their deliveries are recorded."""
_RECORD_SECONDS: Final = 30
"""Seconds until a sent message is recorded again after the journal refused it."""
_log = logging.getLogger("watchroom")


class AlertOutbox:
    """Sends messages to one target, and records them.

    - ``record``: the record of sent messages.
    - ``target``: the target's name.
    - ``delivery``: delivers the messages.
    - ``settings``: the settings of all targets.
    - ``on_line``: a callback that gets a line about each message and each failure.
    - ``retry``: the policy for retries of a failed message.
    - ``links``: the links in the target's messages, None for no links.
    """

    def __init__(
        self,
        record: Alerts,
        target: str,
        delivery: AlertDelivery,
        settings: AlertSettings,
        texts: Catalogue,
        on_line: Callable[[str], None],
        retry: RetryPolicy = RETRY,
        links: AlertLinks | None = None,
    ) -> None:
        self._links = links
        self._record = record
        self._target = target
        self._delivery = delivery
        self._settings = settings
        self._zone = _time_zone(settings, texts)
        self._texts = texts
        self._on_line = on_line
        self._retry = retry
        self._state = self._record.state(target)
        self._given_up: set[Identity] = set()
        self._failures = 0
        self._failing: set[Identity] = set()
        """The needs in the first message of the current series of failures."""
        self._retry_at = 0
        self._sent: AlertMessage | None = None
        """The sent message that is not recorded yet."""

    def advance(self, items: Sequence[AlertItem], now: int) -> int | None:
        """Send the messages that are due.

        - ``items``: the open needs.
        - ``now``: the current time, in nanoseconds since the epoch.

        Return the time of the next call if no need changes before, None for never. Raise `JournalError`.
        """
        if now < self._retry_at or not self._record_sent(now):
            return self._retry_at
        self._given_up &= {item.identity for item in items}
        quiet = self._settings.quiet
        plan = plan_alerts(
            self._state,
            [item for item in items if item.identity not in self._given_up],
            now,
            digest_seconds=self._settings.digest_seconds,
            reports_ends=self._settings.ended,
            quiet_until=quiet.end_of(now, self._zone) if quiet and self._zone else None,
        )
        self._state = plan.state
        for message in plan.messages:
            try:
                self._delivery.send(message, NO_LINKS if self._links is None else self._links.find(message))
            except DeliveryFailed as failure:
                return self._fail(message, failure, now)
            self._failures, self._failing = 0, set()
            self._state = self._state.after(message)
            self._forget_links(message)
            self._sent = message
            if not self._record_sent(now):
                return self._retry_at
        return plan.next_at

    def _record_sent(self, now: int) -> bool:
        """Record the sent message, if it is not recorded yet. Return False if the journal refuses that. Then
        nothing more is sent for a while, because every later process would send it again. Raise
        `JournalDenied`."""
        if self._sent is None:
            return True
        summary = alert_summary(self._sent, self._texts)
        try:
            self._record.record_sent(self._target, self._sent, summary)
        except JournalDenied:
            raise
        except JournalError:
            _log.exception("an alert to %s was sent, and could not be recorded", self._target)
            self._retry_at = now + _RECORD_SECONDS * 1_000_000_000
            return False
        self._sent = None
        self._report("sent", what=summary)
        return True

    def _fail(self, message: AlertMessage, failure: DeliveryFailed, now: int) -> int:
        """Record that ``message`` was not delivered. Return the time of the next attempt."""
        self._failures += 1
        if self._failures == 1:
            self._failing = {item.identity for item in message.items}
        reason = str(failure)
        tried = message._replace(
            items=tuple(each for each in message.items if each.identity in self._failing)
        )
        if failure.is_final or (self._failures > self._retry.retries and tried.items):
            given_up = message if failure.is_final else tried
            if message.event == "new":
                self._given_up |= {item.identity for item in given_up.items}
            else:
                self._state = self._state.after(given_up)
            self._forget_links(given_up)
            self._record.record_failure(self._target, given_up, reason, is_final=True)
            self._report("given_up", what=alert_summary(given_up, self._texts), reason=reason)
            self._failures, self._failing = 0, set()
            self._retry_at = now
            return now
        if self._failures == 1:
            self._record.record_failure(self._target, message, reason, is_final=False)
            self._report("delayed", what=alert_summary(message, self._texts), reason=reason)
        elif self._failures > self._retry.retries:
            # The needs of the first failed message have ended, so the other needs get their own retries.
            self._failures, self._failing = 1, {item.identity for item in message.items}
        wait = self._retry.wait(self._failures, failure.retry_after)
        self._retry_at = now + int(wait * 1e9)
        return self._retry_at

    def _forget_links(self, message: AlertMessage) -> None:
        if self._links is not None:
            self._links.forget(message)

    def _report(self, event: str, **fields: str) -> None:
        line = self._texts(f"alert.{event}_line", target=self._target, **fields)
        self._on_line(end_sentence(line, self._texts("alert.stop")))


class AlertSender:
    """Sends needs to all targets of ``settings``, each on its own thread, so that a slow target does not
    delay the others.

    - ``wording``: the words of the messages.
    - ``now``: returns the current time, in nanoseconds since the epoch.
    - ``make_outboxes``: creates the outboxes. Its argument is a callback for lines to print.

    Call `close` at the end.
    """

    def __init__(
        self,
        settings: AlertSettings,
        wording: AlertWording,
        now: Callable[[], int],
        make_outboxes: Callable[[Callable[[str], None]], Iterable[AlertOutbox]],
    ) -> None:
        self.lines: deque[str] = deque()
        """The lines to show about messages, oldest first."""
        self._settings = settings
        self._describe = wording.describe
        self._now = now
        self._on_line: Callable[[], None] | None = None
        self._changed = Condition()
        self._items: tuple[AlertItem, ...] | None = None
        self._is_closed = False
        self._error: Exception | None = None
        self._threads = [
            Thread(target=self._run, args=(each,), name="watchroom-alerts", daemon=True)
            for each in make_outboxes(self._add_line)
        ]

    def start(self, on_line: Callable[[], None]) -> None:
        """Start sending. ``on_line`` is called after each new line, and when a thread fails."""
        self._on_line = on_line
        for each in self._threads:
            each.start()

    def set_needs(self, needs: Iterable[Need]) -> None:
        """Set the open ``needs``. Raise the error that ended a thread, such as `JournalError`."""
        if self._error is not None:
            raise self._error
        wanted = self._settings.kinds
        items = tuple(self._describe(need) for need in needs if need.kind in wanted)
        with self._changed:
            if items != self._items:
                self._items = items
                self._changed.notify_all()

    def close(self) -> None:
        """End all threads after the requests in progress. Wait at most `_END_SECONDS`."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        end = time.monotonic() + _END_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, end - time.monotonic()))

    def _add_line(self, line: str) -> None:
        self.lines.append(line)
        self._report_line()

    def _report_line(self) -> None:
        if self._on_line is not None:
            self._on_line()

    def _run(self, outbox: AlertOutbox) -> None:
        try:
            seen: tuple[AlertItem, ...] | None = None
            next_at: int | None = None
            while True:
                with self._changed:
                    wait = None if next_at is None else max(0.0, (next_at - self._now()) / 1e9)
                    self._changed.wait_for(lambda: self._is_closed or self._items is not seen, wait)  # noqa: B023
                    if self._is_closed:
                        return
                    seen = self._items
                if seen is not None:
                    next_at = outbox.advance(seen, self._now())
        except Exception as error:  # noqa: BLE001  # `set_needs` raises it
            self._error = error
            self._report_line()


def open_sender(
    alerts: Alerts,
    settings: AlertSettings,
    wording: AlertWording,
    environ: Mapping[str, str],
    place: str,
    link: str = "",
    links: Links | None = None,
) -> AlertSender:
    """Return a sender to the targets of ``settings``. The caller must hold `Alerts.claim`.

    - ``alerts``: the record of sent messages.
    - ``environ``: the environment that resolves variables in addresses.
    - ``place``: the workspace's name.
    - ``link``: the address of the workspace's dashboard, default: the link in ``settings``.
    - ``links``: issues links to single needs, for the targets in the table ``[web]``; default: no links.

    Raise `DeliveryUnusable` if a target is invalid, `JournalDenied` if this login cannot record alerts,
    `JournalError`.
    """
    alerts.check_recordable()
    name = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in place)

    def open_outboxes(on_line: Callable[[str], None]) -> Iterable[AlertOutbox]:
        for target in settings.targets.values():
            delivery = open_delivery(target, environ, name, link or settings.link, wording.texts)
            own = None
            if links is not None and target.name in links.settings.targets:
                own = AlertLinks(links, can_approve=target.type == "ntfy")
            yield AlertOutbox(alerts, target.name, delivery, settings, wording.texts, on_line, links=own)

    return AlertSender(settings, wording, alerts.now, open_outboxes)


def _time_zone(settings: AlertSettings, texts: Catalogue) -> ZoneInfo | None:
    if settings.quiet is None:
        return None
    try:
        return ZoneInfo(settings.quiet.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise DeliveryUnusable(problem=texts("alert.no_zone", zone=settings.quiet.zone)) from error
