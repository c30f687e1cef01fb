"""Alerts as texts, and as the payloads of their targets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from watchroom.features.alerts.rows import AlertItem, AlertMessage, Identity
from watchroom.features.alerts.rules import TargetType
from watchroom.model import Json, timestamp, utc_datetime
from watchroom.texts import Catalogue

if TYPE_CHECKING:
    from watchroom.features.overview.model import Need

MAX_NEEDS: Final = 20
"""Max needs listed in a message. The others are counted."""
_MAX_NTFY_BYTES: Final = 3800
"""Max bytes of a message. ntfy turns longer messages into attachments."""
_MAX_NTFY_ACTIONS: Final = 3
"""Max buttons of a message of ntfy."""
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


class NeedLink(NamedTuple):
    """The links to a need.

    - ``page``: the address of its page.
    - ``approve``: the address at which a POST request approves the need's request; empty for none.
    """

    page: str
    approve: str = ""


NO_LINKS: Final[Mapping[Identity, NeedLink]] = MappingProxyType({})
"""The links in a message without links to single needs."""


def end_sentence(text: str, stop: str) -> str:
    """Return ``text`` with the full stop ``stop``, unless it already ends a sentence."""
    return text if text.endswith(_ENDS) else text + stop


def alert_summary(message: AlertMessage, texts: Catalogue) -> str:
    """Return one line without a full stop: the number of needs in ``message``, or its only need."""
    items = _distinct_items(message)
    if len(items) == 1:
        return texts(f"alert.{message.event}_one", need=items[0].text)
    return texts(f"alert.{message.event}", count=len(items))


def alert_text(
    message: AlertMessage,
    place: str,
    link: str,
    texts: Catalogue,
    links: Mapping[Identity, NeedLink] = NO_LINKS,
) -> AlertText:
    """Return the text of ``message`` for people.

    - ``place``: the workspace's name.
    - ``link``: the address of the workspace's dashboard, empty for no link.
    - ``links``: the links to single needs. Each is a line after its need.
    """
    items = _distinct_items(message)
    lines = []
    for item in items[:MAX_NEEDS]:
        lines.append(_line(item, message, texts))
        if item.identity in links:
            lines.append(links[item.identity].page)
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
    target: TargetType,
    message: AlertMessage,
    text: AlertText,
    place: str,
    link: str,
    topic: str = "",
    links: Mapping[Identity, NeedLink] = NO_LINKS,
) -> dict[str, Json]:
    """Return the JSON object that ``target`` accepts for ``message``.

    - ``text``: the message's text for people.
    - ``place``: the workspace's name.
    - ``link``: the address of the workspace's dashboard, empty for no link.
    - ``topic``: the topic of ntfy.
    - ``links``: the links to single needs. The link of the only need replaces ``link``.
    """
    items = _distinct_items(message)
    if len(items) == 1 and items[0].identity in links:
        link = links[items[0].identity].page
    if target == "slack":
        # Escaped, so that an agent's text cannot contain a link with another label.
        whole = without_mentions(f"{text.title}\n{text.body}")
        shown = whole.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return {"text": shown, "mrkdwn": False}
    if target == "ntfy":
        is_new = message.event == "new"
        sent: dict[str, Json] = {
            "topic": topic,
            "title": text.title,
            "message": _clip_lines(text.body),
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
            **({"link": links[item.identity].page} if item.identity in links else {}),
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


def _clip_lines(text: str) -> str:
    """Return ``text``, cut to the bytes that ntfy shows. A line that is not whole is left out, because it may
    be a link."""
    whole = text.encode()
    if len(whole) <= _MAX_NTFY_BYTES:
        return text
    clipped = whole[:_MAX_NTFY_BYTES].decode(errors="ignore")
    return clipped.rpartition("\n")[0] or clipped


def ntfy_buttons(
    message: AlertMessage, links: Mapping[Identity, NeedLink], texts: Catalogue
) -> Sequence[Mapping[str, Json]]:
    """Return the buttons of ``message`` for ntfy: one that opens the page of each need, and one that approves
    the only request if it has such a link."""
    items = [item for item in _distinct_items(message) if item.identity in links]
    buttons: list[Mapping[str, Json]] = []
    for item in items:
        key = "alert.open_need" if len(items) == 1 else "alert.open_need_of"
        label = texts(key, row=item.since)
        buttons.append({"action": "view", "label": label, "url": links[item.identity].page, "clear": False})
    if len(items) == 1 and (approve := links[items[0].identity].approve):
        label = texts("alert.approve")
        buttons.append({"action": "http", "label": label, "url": approve, "method": "POST", "clear": True})
    return buttons[:_MAX_NTFY_ACTIONS]


def without_mentions(text: str) -> str:
    """Return ``text`` with mentions such as ``@everyone`` disabled, because an agent may have written it."""
    return text.replace("@", "@\N{ZERO WIDTH SPACE}")


def split_topic(url: str) -> tuple[str, str]:
    """Split the ``url`` of an ntfy topic into the server's address and the topic. The topic is empty if the
    URL has none."""
    parts = urlsplit(url)
    above, _, topic = parts.path.rstrip("/").rpartition("/")
    return urlunsplit((parts.scheme, parts.netloc, above or "/", "", "")), topic
