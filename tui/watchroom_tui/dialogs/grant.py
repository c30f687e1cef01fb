"""Approve a call in a wider scope: what is granted, until when, and how often."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static
from watchroom.features.calls.reads import RequestDetails
from watchroom.features.policy.grants import (
    DEFAULT_SECONDS,
    DEFAULT_USES,
    MAX_USES,
    GrantChoice,
    build_grant,
    can_have_more_words,
    describe_grant,
    list_scopes,
    read_call,
)
from watchroom.texts import Catalogue, catalogue

from watchroom_tui.dialogs.base import ModalDialog
from watchroom_tui.formatters.columns import Column
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.actions import Scope, bindings
from watchroom_tui.presentation.grant_end import parse_end
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.widgets.item_list import ItemList
from watchroom_tui.widgets.line_widget import content

_TIMES: Final = ("1h", "24:00", "7d")
"""The suggested ends: an hour, the end of the day, a week. A grant for a session can also have none."""
_MAX_PREFIXES: Final = 5
_MAX_CHARACTERS: Final = 20


class GrantOffer(NamedTuple):
    """A grant that the person can give. ``covers``: one sentence with exactly what it covers."""

    choice: GrantChoice
    covers: str


def list_offers(details: RequestDetails, texts: Catalogue) -> list[GrantOffer]:
    """Return the grants that a request offers, narrowest first. Empty if its call can only be approved once.

    ``texts``: the core's texts.
    """
    call, path = read_call(details.request), details.asked.row.path
    if call is None:
        return []
    prefixes: list[int | None] = []
    if call.words and can_have_more_words(call.words):
        prefixes = [*range(len(call.words), 0, -1)][:_MAX_PREFIXES]
    offers = []
    for scope in list_scopes(path, call):
        for words in (None, *prefixes):
            choice = GrantChoice(scope, 1, DEFAULT_SECONDS if scope == "place" else None, words)
            grant = build_grant(path, details.asked.row.seq, details.request, choice, 0)
            if grant is not None:
                offers.append(GrantOffer(choice, describe_grant(grant, texts)))
    return offers


class OfferList(ItemList[GrantOffer]):
    """The grants that a request offers."""

    COLUMNS: ClassVar = (Column(grows=True),)
    WRAPS = "always"

    def __init__(self) -> None:
        super().__init__(title="grant.offers", empty="empty.grants", id="offers", classes="pane")

    def item_key(self, item: GrantOffer) -> Hashable:
        return item.choice

    def cells(self, item: GrantOffer) -> Sequence[Line]:
        return ([Span(sanitize(item.covers))],)

    def copy_text(self, item: GrantOffer) -> str:
        return item.covers


class GrantDialog(ModalDialog[GrantChoice | None]):
    """Form for a grant: what it covers, its end and its uses. Enter submits the form from every field."""

    BINDINGS = [*bindings("dialog"), *bindings("grant")]  # noqa: RUF012  # as textual has it
    SCOPES: ClassVar[tuple[Scope, ...]] = ("grant", "dialog")

    def __init__(self, details: RequestDetails) -> None:
        super().__init__()
        self._details = details
        self._offers = OfferList()
        self._end = Input(id="end", max_length=_MAX_CHARACTERS, select_on_focus=False)
        self._uses = Input(str(DEFAULT_USES), id="uses", max_length=_MAX_CHARACTERS, select_on_focus=False)

    def compose(self) -> ComposeResult:
        with Vertical(id="grant-form"):
            yield self._offers
            yield self._end
            yield self._uses
            note = Static(Content(self.dashboard.texts("grant.about")), id="note", markup=False)
            note.border_subtitle = content(self.key_hints())
            yield note

    def on_mount(self) -> None:
        super().on_mount()
        texts = self.dashboard.texts
        self._end.border_title = content(texts("grant.end"))
        self._uses.border_title = content(texts("grant.uses"))
        self._offers.show(list_offers(self._details, catalogue(self.dashboard.language)))
        self._offers.focus()

    @on(ItemList.Highlighted, "#offers")
    def choose_offer(self) -> None:
        offer = self._offers.item
        if offer is not None and self._end.value not in _TIMES[1:]:
            self._end.value = "" if offer.choice.seconds is None else _TIMES[0]

    def action_end(self, step: int) -> None:
        """Select the next suggested end (1) or the previous end (-1)."""
        offer = self._offers.item
        times = (*_TIMES, "") if offer is not None and offer.choice.seconds is None else _TIMES
        at = times.index(self._end.value) if self._end.value in times else -1
        self._end.value = times[(at + step) % len(times)]

    def action_back(self) -> None:
        self.dismiss(None)

    @on(ItemList.Opened, "#offers")
    @on(Input.Submitted, "#end, #uses")
    def grant(self) -> None:
        """Close the dialog with the choice, or show which field is invalid."""
        offer, app = self._offers.item, self.dashboard
        if offer is None:
            return
        now = datetime.fromtimestamp(app.now() / 1e9).astimezone()
        try:
            seconds = parse_end(self._end.value, now)
            if seconds is None and offer.choice.seconds is not None:
                raise ValueError
        except ValueError:
            app.show_message(app.texts("grant.unclear_end", given=sanitize(self._end.value)), "warning")
            return
        text = self._uses.value.strip()
        if not (text.isdecimal() and 0 < int(text) <= MAX_USES):
            app.show_message(app.texts("grant.unclear_uses", given=sanitize(text), most=MAX_USES), "warning")
            return
        self.dismiss(offer.choice._replace(seconds=seconds, uses=int(text)))
