"""Private attributes of Textual and textual-serve that the dashboard uses.

Modules that override private methods call `require` on import. `require` fails if a version of Textual uses
other names. The real tier of the tests runs with the oldest and the newest allowed version. "Missing in
Textual" names the public interface to request upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import time
from typing import IO, TYPE_CHECKING, Any, Final, cast

from textual.app import App
from textual.dom import DOMNode
from textual.geometry import Size
from textual.notifications import Notification
from textual.screen import Screen
from textual.widget import Widget

if TYPE_CHECKING:
    from textual._xterm_parser import XTermParser
    from textual.driver import Driver
    from textual.drivers.linux_driver import LinuxDriver
    from textual.drivers.web_driver import WebDriver


class TextualIncompatible(ImportError):
    """Error for an installed version of Textual or textual-serve without the required attributes."""


def require(owner: type, *names: str) -> None:
    """Raise `TextualIncompatible` unless the class ``owner`` has the attributes ``names``."""
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        # It loads the email package, and the versions are known but for an error.
        from importlib.metadata import version

        package = owner.__module__.partition(".")[0].replace("_", "-")
        problem = f"{package} {version(package)}: {owner.__name__} has no {', '.join(missing)}"
        raise TextualIncompatible(problem)


# The app overrides App._handle_exception. Missing in Textual: a public hook for errors of workers.
require(App, "_handle_exception", "_unnotify")
require(Widget, "_scroll_update", "_set_dirty")
require(DOMNode, "_attach")
require(Screen, "_get_breakpoint_classes")


def driver_of(app: App[Any]) -> Driver | None:
    """Return the driver of a running app. Missing in Textual: a method of `App` that writes a terminal
    sequence."""
    return app._driver


class LayoutHooks:
    """Mixin for scrollable widgets, with hooks in each layout before the paint. Missing in Textual: an event
    for each hook."""

    def before_scrollbars(self) -> None:
        """Prepare the layout. Called after the widget has its new size. Overrides can change the virtual size
        without another layout."""

    def after_scrollbars(self) -> None:
        """Finish the layout. Called after the text area has its final size."""

    def update_scrollbars(self) -> None:
        """Update the scrollbars for a changed virtual size, without another layout."""
        cast(Any, super())._scroll_update(cast("Widget", self).virtual_size)

    def _scroll_update(self, virtual_size: Size) -> None:
        self.before_scrollbars()
        self.update_scrollbars()
        self.after_scrollbars()


def mark_dirty(widget: Widget) -> None:
    """Paint all of ``widget`` with the current frame. Missing in Textual: `refresh` during a layout."""
    widget._set_dirty()


def has_dirty_regions(widget: Widget) -> bool:
    """Return whether ``widget`` changed since `clear_dirty_regions`. Missing in Textual: a paint cache. Each
    paint asks all widgets for all lines."""
    return bool(widget._dirty_regions)


def clear_dirty_regions(widget: Widget) -> None:
    """Mark ``widget`` as painted."""
    widget._dirty_regions.clear()


def paint_with_next_frame(screen: Screen[Any], widgets: Iterable[Widget]) -> None:
    """Paint ``widgets`` together with the next frame of ``screen``. Missing in Textual: a refresh without a
    message."""
    for each in widgets:
        screen._dirty_widgets.add(each)


def attach(node: DOMNode, parent: DOMNode) -> None:
    """Make ``node`` a child of ``parent`` for the stylesheet only. Missing in Textual: the style of one
    component class, computed on first use."""
    node._attach(parent)


def note_styles_read(screen: Screen[Any]) -> None:
    """Prevent Textual from parsing all stylesheets again for ``screen``, after its own stylesheets were read.

    Missing in Textual: adding a stylesheet without parsing the others.
    """
    screen._css_update_count = screen.app._css_update_count


def add_breakpoint_classes(screen: Screen[Any]) -> None:
    """Add the classes of ``screen`` for the size of the terminal before the first layout.

    Textual adds the classes after the first layout, and then repeats all styling and layout. Missing in
    Textual: classes before the first layout.
    """
    size = screen.app.size
    across, down = screen.HORIZONTAL_BREAKPOINTS or [], screen.VERTICAL_BREAKPOINTS or []
    screen.add_class(*screen._get_breakpoint_classes(size.width, across), update=False)
    screen.add_class(*screen._get_breakpoint_classes(size.height, down), update=False)


MIN_NOTICE_SECONDS: Final = 0.05
"""Minimum number of seconds for the timer of a `Notice`."""


@dataclass
class Notice(Notification):
    """A notification with a timer of at least `MIN_NOTICE_SECONDS`.

    A negative timer blocks the event loop (Textual 8.2), and a notification may expire between a screen's
    check and its timer. Missing in Textual: the same minimum.
    """

    @property
    def time_left(self) -> float:
        return max(MIN_NOTICE_SECONDS, self.raised_at + self.timeout - time())

    @property
    def has_expired(self) -> bool:
        return self.raised_at + self.timeout <= time()


def drop_information(app: App[Any]) -> None:
    """Remove the information notices. Missing in Textual: a method that removes one kind of notices."""
    for each in [*app._notifications]:
        if each.severity == "information":
            app._unnotify(each, refresh=False)


def is_reading_keys(driver: LinuxDriver) -> bool:
    """Return whether the key thread of a terminal driver is running."""
    return driver._key_thread is not None and driver._key_thread.is_alive()


def restarts_itself(driver: LinuxDriver) -> bool:
    """Return whether a driver sets the terminal up again after SIGCONT."""
    return driver._auto_restart


def wrap_output(driver: LinuxDriver, wrap: Callable[[IO[str]], object]) -> None:
    """Put ``wrap`` between a driver and its terminal. Missing in Textual: a driver that survives a failed
    write."""
    cast(Any, driver)._file = wrap(cast("IO[str]", driver._file))


def wrap_page_output(driver: WebDriver, wrap: Callable[[Callable[[bytes], int]], object]) -> None:
    """Put ``wrap`` between a driver and its page. Missing in Textual: see `wrap_output`."""
    cast(Any, driver)._write = wrap(driver._write)


def make_xterm_parser() -> XTermParser:
    """Return Textual's parser of terminal input. Missing in Textual: a driver whose input can be decoded with
    errors replaced."""
    from textual._xterm_parser import XTermParser

    return XTermParser()


async def process_messages(server: object, page: object, dashboard: object) -> None:
    """Pass messages between a page and its dashboard process, as textual-serve's server does. Missing in
    Textual: a websocket handler that subclasses can wrap."""
    await cast(Any, server)._process_messages(page, dashboard)
