"""The command watch: print needs and read answers as lines of text, for screen readers, pipes and logs."""

from __future__ import annotations

import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from watchroom.errors import DeliveryUnusable, WatchroomError
from watchroom.features.trees.place import display_name
from watchroom.kernel.checkout.file_watcher import FileWatcher, WatchMode
from watchroom.kernel.journal import Journal
from watchroom.texts import LANGUAGES, Catalogue
from watchroom.validation import check_human_name
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import own_folder
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import act_as_person, name_of_this_person
from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import add_utc_argument
from watchroom_cli.publication import deliver_later, publish_later

if TYPE_CHECKING:
    from watchroom.features.alerts.sender import AlertSender
    from watchroom.workspace import Workspace


def declare_watch(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--all", dest="all_rows", action="store_true", help=texts("cli.argument.all_rows"))
    parser.add_argument("--view", action="store_true", help=texts("cli.argument.view"))
    parser.add_argument("--send", action="store_true", help=texts("cli.argument.send"))
    parser.add_argument("--link", metavar="URL", help=texts("cli.argument.link"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    parser.add_argument("--language", choices=LANGUAGES, help=texts("cli.argument.language"))
    add_utc_argument(parser, texts)


def run_watch(args: Namespace, texts: Catalogue) -> int:
    if args.send:
        return _send(args)
    if args.link is not None:
        raise WrongUsage(texts("watch.alert.link_alone"))
    return watch_folder(args)


def watch_folder(args: Namespace) -> int:
    """Print the news of the workspace until the input ends or the person quits. Return the exit status.

    Ask questions at a terminal and record external edits, if the workspace is writable and not only viewed.
    """
    with ExitStack() as stack:
        journal = stack.enter_context(closing(open_journal(args.dir)))
        workspace = None
        if not args.view:
            from watchroom.workspace import Workspace

            try:
                workspace = stack.enter_context(Workspace.open(args.dir, create=False))
                deliver_later(workspace, args.language)
                watch_files(workspace, load_texts(args.language))
            except (WatchroomError, OSError) as error:
                # A read-only workspace can still be watched.
                message = error.message(args.language) if isinstance(error, WatchroomError) else str(error)
                print(load_texts(args.language)("watch.view_only", reason=sanitize(message)), file=sys.stderr)
        return watch_plainly(journal, args.dir, args, workspace)


def _send(args: Namespace) -> int:
    """Watch and send alerts until SIGTERM."""
    from watchroom.features.alerts.rules import is_link
    from watchroom.features.alerts.sender import open_sender
    from watchroom.workspace import Workspace

    from watchroom_cli.plain.sentences import alert_wording

    texts = load_texts(args.language)
    if args.link and not is_link(args.link):
        raise WrongUsage(texts("watch.alert.no_link"))
    with ExitStack() as stack:
        workspace = stack.enter_context(Workspace.open(args.dir, create=False))
        publish_later(workspace, args.language)
        watch_files(workspace, texts)
        if not stack.enter_context(workspace.alerts.claim()):
            raise WrongUsage(texts("watch.alert.sent_already"))
        settings = workspace.config.alerts
        if not settings.targets:
            raise WrongUsage(texts("watch.alert.no_target"))
        wording, place = alert_wording(args.language), display_name(workspace.root)
        try:
            sender = open_sender(
                *(workspace.alerts, settings, wording, os.environ, place, args.link or ""), workspace.links
            )
        except DeliveryUnusable as error:
            raise WrongUsage(error.message(args.language)) from error
        stack.enter_context(closing(sender))
        acting = None if args.view else workspace
        return watch_plainly(workspace.journal, args.dir, args, acting, sender)


def watch_files(workspace: Workspace, texts: Catalogue) -> None:
    """Record external edits until ``workspace`` is closed. Print a line if polling finds them."""

    def show(mode: WatchMode) -> None:
        if mode == "polling":
            print(
                texts("header.polling_reason", seconds=FileWatcher.POLL_SECONDS), file=sys.stderr, flush=True
            )

    workspace.file_watcher.subscribe(show)


def is_interactive() -> bool:
    """Return whether standard input and output are a terminal, so that a person can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def watch_plainly(
    journal: Journal,
    root: str,
    args: Namespace,
    workspace: Workspace | None,
    alerts: AlertSender | None = None,
) -> int:
    """Print the news of ``journal`` as lines, and return the exit status.

    - ``root``: the workspace's folder or address.
    - ``workspace``: the open workspace for answers, None to ask no questions.
    - ``alerts``: a sender of alerts, default: none. A watch with a sender ends on SIGTERM.

    Raise `InvalidAgentId` if the person's name is invalid.
    """
    from watchroom_cli.plain.watcher import Watcher, WatchOptions

    options = WatchOptions(
        display_name(root),
        own_folder(journal, root),
        args.language,
        all_rows=getattr(args, "all_rows", False),
        seconds=getattr(args, "seconds", None),
    )
    person = check_human_name(args.person or name_of_this_person())
    act = None
    if workspace is not None and is_interactive():
        act = partial(act_as_person, workspace, person, language=args.language)
    watcher = Watcher(journal, load_texts(args.language), options, act, alerts)
    if alerts is None:
        watcher.run()
        return 0
    with _on_sigterm(watcher.stop):
        watcher.run()
    return 0


@contextmanager
def _on_sigterm(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on SIGTERM while the context lasts."""
    before = signal.signal(signal.SIGTERM, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
