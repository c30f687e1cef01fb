"""Alerts as texts, and as the payloads of their targets. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from watchroom.features.alerts.rows import AlertItem, AlertMessage
from watchroom.features.alerts.rules import TargetType
from watchroom.model import Json, timestamp, utc_datetime
from watchroom.texts import Catalogue

if TYPE_CHECKING:
    from watchroom.features.overview.model import Need

MAX_NEEDS: Final = 20
"""Max needs listed in a message. The others are counted."""
_MAX_NTFY_BYTES: Final = 3800
"""Max bytes of a message. ntfy turns longer messages into attachments."""
_MAX_PLACE: Final = 80
"""Max characters of the workspace's name in a title."""
_ENDS: Final = (".", "!", "?", "…", "。", "！", "？")


class AlertWording(NamedTuple):
    """The words of alerts, in the language of their readers.

    - ``texts``: the texts of this package.
    - ``describe``: returns a need as an item, with a sentence without a full stop.
    """

    texts: Catalogue
    describe: Callable[[Need], AlertItem]


class AlertText(NamedTuple):
    """The text of a message for people: a ``title``, and a ``body`` of lines."""

    title: str
    body: str


def end_sentence(text: str, stop: str) -> str:
    """Return ``text`` with the full stop ``stop``, unless it already ends a sentence."""
    return text if text.endswith(_ENDS) else text + stop


def alert_summary(message: AlertMessage, texts: Catalogue) -> str:
    """Return one line without a full stop: the number of needs in ``message``, or its only need."""
    items = _distinct_items(message)
    if len(items) == 1:
        return texts(f"alert.{message.event}_one", need=items[0].text)
    return texts(f"alert.{message.event}", count=len(items))


def alert_text(message: AlertMessage, place: str, link: str, texts: Catalogue) -> AlertText:
    """Return the text of ``message`` for people.

    - ``place``: the workspace's name.
    - ``link``: the address of the workspace's dashboard, empty for no link.
    """
    items = _distinct_items(message)
    lines = [_line(item, message, texts) for item in items[:MAX_NEEDS]]
    if len(items) > MAX_NEEDS:
        lines.append(texts("alert.more", count=len(items) - MAX_NEEDS))
    if link:
        lines.append(link)
    number = "one" if len(items) == 1 else "some"
    name = place if len(place) <= _MAX_PLACE else f"{place[: _MAX_PLACE - 1]}…"
    title = texts(f"alert.title.{message.event}_{number}", place=name, count=len(items))
    return AlertText(title, "\n".join(lines))


def _line(item: AlertItem, message: AlertMessage, texts: Catalogue) -> str:
    """Return the sentence about ``item``, with its deadline."""
    sentence = end_sentence(item.text, texts("alert.stop"))
    if item.deadline is None or message.event != "new":
        return sentence
    # Name the time and not the time left, because the message is read later.
    local = utc_datetime(item.deadline).astimezone().isoformat(" ", "seconds")
    return texts("alert.with_deadline", need=sentence, time=local)


def _distinct_items(message: AlertMessage) -> list[AlertItem]:
    """Return the items without duplicates: only the last item about each row."""
    found = {(item.since or item.key): item for item in message.items}
    return list(found.values())


def alert_payload(
    target: TargetType, message: AlertMessage, text: AlertText, place: str, link: str, topic: str = ""
) -> dict[str, Json]:
    """Return the JSON object that ``target`` accepts for ``message``.

    - ``text``: the message's text for people.
    - ``place``: the workspace's name.
    - ``link``: the address of the workspace's dashboard, empty for no link.
    - ``topic``: the topic of ntfy.
    """
    if target == "slack":
        # Escaped, so that an agent's text cannot contain a link with another label.
        whole = without_mentions(f"{text.title}\n{text.body}")
        shown = whole.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return {"text": shown, "mrkdwn": False}
    if target == "ntfy":
        clipped = text.body.encode()[:_MAX_NTFY_BYTES].decode(errors="ignore")
        is_new = message.event == "new"
        sent: dict[str, Json] = {
            "topic": topic,
            "title": text.title,
            "message": clipped,
            "priority": 4 if is_new else 2,
            "tags": ["warning" if is_new else "white_check_mark"],
        }
        return {**sent, "click": link} if link else sent
    needs: list[Json] = [
        {
            "id": item.id,
            "kind": item.kind,
            "agent": item.agent,
            "row": item.since,
            "text": item.text,
            "deadline": None if item.deadline is None else timestamp(item.deadline),
        }
        for item in message.items
    ]
    return {
        "id": message.id,
        "event": message.event,
        "workspace": place,
        "title": text.title,
        "text": text.body,
        "link": link,
        "needs": needs,
    }


def without_mentions(text: str) -> str:
    """Return ``text`` with mentions such as ``@everyone`` disabled, because an agent may have written it."""
    return text.replace("@", "@\N{ZERO WIDTH SPACE}")


def split_topic(url: str) -> tuple[str, str]:
    """Split the ``url`` of an ntfy topic into the server's address and the topic. The topic is empty if the
    URL has none."""
    parts = urlsplit(url)
    above, _, topic = parts.path.rstrip("/").rpartition("/")
    return urlunsplit((parts.scheme, parts.netloc, above or "/", "", "")), topic
