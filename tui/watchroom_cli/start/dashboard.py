"""The command open: open the dashboard."""

from __future__ import annotations

import gc
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from watchroom.errors import DeliveryUnusable
from watchroom.features.trees.place import display_name
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.journal import Journal, database_name, is_server_address, without_password
from watchroom.texts import LANGUAGES, Catalogue, Language, catalogue
from watchroom_tui.presentation.localization import load_texts, readable_language
from watchroom_tui.presentation.memory_file import memory_path
from watchroom_tui.presentation.shown_place import place_word
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.alert_policy import MODES
from watchroom_tui.terminal.session import TerminalWatch, require_terminal

from watchroom_cli.acting_person import name_of_this_person
from watchroom_cli.arguments.time_argument import moment, open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import add_utc_argument, own_program
from watchroom_cli.publication import deliver_later

if TYPE_CHECKING:
    from watchroom.workspace import Workspace
    from watchroom_tui.app import WatchroomApp
    from watchroom_tui.services.settings import Settings


def declare_common(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    parser.add_argument("--language", choices=LANGUAGES, help=texts("cli.argument.language"))
    parser.add_argument("--alerts", choices=MODES, help=texts("cli.argument.alerts"))
    parser.add_argument("--plain", action="store_true", help=texts("cli.argument.plain"))
    add_utc_argument(parser, texts)


def declare_open(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--at", metavar="SEQ | TIME", help=texts("cli.argument.at"))
    parser.add_argument("--view", action="store_true", help=texts("cli.argument.view"))
    parser.add_argument("--checkout", metavar="DIR", help=texts("cli.argument.checkout"))
    declare_common(parser, texts)


def run_open(args: Namespace, texts: Catalogue) -> int:
    if args.plain:
        from watchroom_cli.watch.watch import watch_folder

        if args.at:
            raise WrongUsage(texts("cli.open.plain_at"))
        return watch_folder(args)
    if args.checkout and not is_server_address(args.dir):
        raise WrongUsage(texts("cli.open.checkout_of_database"))
    with ExitStack() as stack:
        journal = stack.enter_context(closing(open_journal(args.dir)))
        place = place_word(args.dir)
        require_terminal(texts, f"watchroom watch {place}, watchroom show {place} needs")
        until = moment(journal, args.at, texts) if args.at else None

        def opened() -> Workspace:
            from watchroom.serving.service.link import ServiceLink
            from watchroom.workspace import Workspace

            workspace = stack.enter_context(Workspace.open(args.dir, create=False, checkout=args.checkout))
            link = ServiceLink(own_program(), "/use", [("root", workspace.root)])
            stack.enter_context(closing(link)).start()
            return workspace

        return run_dashboard(journal, args.dir, args, None if args.view else opened, until=until)


def run_dashboard(
    journal: Journal,
    root: str,
    args: Namespace,
    open_workspace: Callable[[], Workspace] | None,
    *,
    until: int | None = None,
    initial_screen: str | None = None,
    on_app: Callable[[WatchroomApp], object] | None = None,
) -> int:
    """Open the dashboard. Return the exit status, which is not 0 after a crash.

    - ``root``: the workspace's folder or address.
    - ``open_workspace``: opens the workspace for writing, None to view only.
    - ``until``: the last row to show, default: the newest row.
    - ``initial_screen``: the screen to open, default: the remembered screen.
    - ``on_app``: a callback that gets the app before it runs.
    """
    # Objects created before the first paint are no garbage. The app enables the collector again.
    gc.disable()
    # Textual is slow to load, and the commands of this module also run without a screen.
    from watchroom_tui.app import WatchroomApp
    from watchroom_tui.services.settings import (
        WorkspaceMemory,
        read_memory,
        read_settings,
        remember,
        settings_path,
        write_memory,
    )

    watch = TerminalWatch()
    path = settings_path()
    settings = read_settings(path, load_texts(args.language))
    # A demo in a temporary folder has nothing to remember.
    kept = memory_path(_memory_key(root)) if getattr(args, "dir", root) else None
    memory = read_memory(kept) if kept is not None else WorkspaceMemory()
    language: Language = (
        args.language if args.is_language_chosen else readable_language(settings.language or args.language)
    )
    _check_webhook(settings, language)
    app = WatchroomApp(
        journal,
        place=_place(root),
        language=language,
        settings=settings,
        until=until,
        person=args.person or name_of_this_person(),
        open_workspace=None if open_workspace is None else partial(_delivering, open_workspace, language),
        end_after=getattr(args, "seconds", None),
        alerts=args.alerts or settings.alerts or "bell",
        initial_screen=initial_screen or memory.screen or settings.screen,
        filters=memory.filters,
        watch=watch,
        root=getattr(args, "checkout", None) or root,
        folder=_working_folder(),
    )
    if on_app is not None:
        on_app(app)
    with watch.hangups():
        app.run()
    shown = app.memory()
    if shown.screen == initial_screen:
        # The command chose this screen, not the person.
        shown = replace(shown, screen=memory.screen)
    try:
        remember(path, **app.changed_settings())
        if kept is not None:
            path = kept
            write_memory(kept, shown)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        print(app.texts("settings.not_kept", path=path, reason=reason), file=sys.stderr)
    return app.return_code or 0


def _working_folder() -> str:
    """Return the working directory, empty if it was removed."""
    try:
        return os.path.realpath(os.getcwd())
    except OSError:
        return ""


def _memory_key(root: str) -> str:
    """Return the key of the workspace at ``root``: its folder, or its address without the password."""
    return without_password(root) if is_server_address(root) else os.path.realpath(root)


def _check_webhook(settings: Settings, language: Language) -> None:
    """Raise `WrongUsage` if the settings have an invalid webhook for seals."""
    if not settings.webhook:
        return
    from watchroom.history.seal.webhook import open_webhook

    try:
        open_webhook(settings.webhook, os.environ, catalogue(language))
    except DeliveryUnusable as error:
        raise WrongUsage(error.message(language)) from error


def _delivering(open_workspace: Callable[[], Workspace], language: Language) -> Workspace:
    """Open the workspace. Send its alerts, and publish its seals to the places in the settings."""
    workspace = open_workspace()
    deliver_later(workspace, language)
    return workspace


def _place(root: str) -> str:
    """Return the workspace's name in the header."""
    return database_name(root) if is_server_address(root) else display_name(root) + "/"


def is_foreign(root: str) -> bool:
    """Return whether the folder ``root`` contains files, but no workspace."""
    return os.path.isdir(root) and bool(os.listdir(root)) and not os.path.exists(os.path.join(root, CONTROL))
