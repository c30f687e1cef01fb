"""The entry point of the command line. Each command loads its own slow imports."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import groupby
from typing import Final

from watchroom import __version__
from watchroom.errors import DiskFailed, PlatformUnsupported, WatchroomError
from watchroom.platform import check_platform
from watchroom.texts import LANGUAGES, Catalogue, Language
from watchroom_tui.formatters.local_time import use_utc
from watchroom_tui.presentation.charset import REPLACEMENT_ERRORS, output_encoding
from watchroom_tui.presentation.localization import load_texts, readable_language

from watchroom_cli.commands import COMMANDS, Command, WrongUsage
from watchroom_cli.output.stream import command_output
from watchroom_cli.termination import Terminated, die_of, ending_on_signals

OK: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130

_OVERVIEW: Final = ("-h", "--help", "--version")
LANGUAGE_VARIABLE: Final = "WATCHROOM_LANGUAGE"
DEBUG_VARIABLE: Final = "WATCHROOM_DEBUG_CATEGORIES"
"""The variable with the categories of debug records to write."""
DEBUG_FILE_VARIABLE: Final = "WATCHROOM_DEBUG_FILE"
"""The variable with the file for debug records, which are appended. Default: standard error."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 for success, 1 for a refusal, 2 for wrong usage."""
    if arguments is None and sys.getfilesystemencoding() != "utf-8":
        # File names are UTF-8 in every workspace, so restart Python in UTF-8 mode.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606  # itself
    _replace_closed_streams()
    _replace_unprintable()
    with command_output() as output:
        try:
            check_platform()
        except PlatformUnsupported as error:
            return _refuse(error, _language())
        status = _run(list(sys.argv[1:] if arguments is None else arguments))
        output.flush()
        if output.failure is None or isinstance(output.failure, BrokenPipeError):
            # A reader that closes a pipe needs no more output.
            return status
        key = "cli.output_lost" if status == OK else "cli.output_lost_refused"
        text = load_texts(_language())(key, reason=output.failure.strerror or str(output.failure))
        print(f"watchroom: {text}", file=sys.stderr)
        return status or REFUSED


def _run(typed: list[str]) -> int:
    language = _language()
    texts = load_texts(language)
    if not typed:
        root = _choose_workspace(texts, language)
        if isinstance(root, int):
            return root
        typed = ["open", root]
    try:
        if typed[0] in _OVERVIEW or typed == ["help"]:
            typed = ["--help"] if typed == ["help"] else typed
            _overview_parser(texts).parse_args(typed)
        command, rest = _find_command(typed, texts)
        # Watchroom prints the help of the command itself.
        is_passed = command.passes_arguments and rest not in (["--help"], ["-h"])
        args = _parse_passed(command, rest) if is_passed else _parse(command, rest, texts)
    except WrongUsage as error:
        print(f"watchroom: {error}", file=sys.stderr)
        return USAGE
    except SystemExit as usage:
        return int(usage.code or OK)
    # The remembered language is used if none is chosen.
    args.is_language_chosen = args.language is not None or LANGUAGE_VARIABLE in os.environ
    args.language = readable_language(args.language or language)
    try:
        with ending_on_signals():
            return _run_command(command, args, texts, language)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Terminated as ended:
        die_of(ended.number)
        raise


def _choose_workspace(texts: Catalogue, language: Language) -> str | int:
    """Return the nearest workspace, or the exit status. Offer to create a workspace if the repository has
    none."""
    from watchroom_cli.arguments.workspace_argument import find_workspace

    root = find_workspace()
    if root is not None:
        return root
    from watchroom_cli.start.repository import offer_workspace

    try:
        root = offer_workspace(texts, readable_language(language))
    except WatchroomError as error:
        return _refuse(error, language)
    except OSError as error:
        return _refuse(_describe_failure(error), language)
    except KeyboardInterrupt:
        return INTERRUPTED
    return USAGE if root is None else root


def _describe_failure(error: OSError) -> DiskFailed:
    reason = error.strerror or str(error)
    if error.filename is not None:
        reason += f": {error.filename or repr('')}"
    return DiskFailed(reason=reason)


def _run_command(command: Command, args: argparse.Namespace, texts: Catalogue, language: Language) -> int:
    try:
        with _debug_records(texts), use_utc() if getattr(args, "utc", False) else nullcontext():
            return command.run(args, texts)
    except WatchroomError as error:
        return _refuse(error, language)
    except OSError as error:
        return _refuse(_describe_failure(error), language)
    except WrongUsage as error:
        print(f"watchroom {command.name}: {error}", file=sys.stderr)
        return USAGE


def _overview_parser(texts: Catalogue) -> argparse.ArgumentParser:
    """Return the parser that prints the version, and the commands by group. Load no command."""
    parser = argparse.ArgumentParser(
        prog="watchroom",
        usage=texts("cli.overview.usage"),
        description=texts("cli.description"),
        epilog=texts("cli.overview.epilog"),
        add_help=False,
    )
    # Newer Python versions colour the help with escapes.
    parser.color = False  # type: ignore[attr-defined]
    for group, commands in groupby(COMMANDS, lambda command: command.group):
        shown = parser.add_argument_group(texts(f"cli.group.{group}"))
        for command in commands:
            shown.add_argument(command.name, nargs="?", help=texts(f"cli.{command.name}.help"))
    options = parser.add_argument_group(texts("cli.group.options"))
    options.add_argument("-h", "--help", action="help", help=texts("cli.argument.help"))
    version = f"watchroom {__version__}"
    options.add_argument("--version", action="version", version=version, help=texts("cli.argument.version"))
    return parser


def _find_command(typed: list[str], texts: Catalogue) -> tuple[Command, list[str]]:
    """Return the typed command and its arguments. Raise `WrongUsage`."""
    known = {each.name: each for each in COMMANDS}
    first, *rest = typed
    if first == "help":
        return _find_command([*rest, "--help"], texts)
    if first in known:
        return known[first], rest
    if first.startswith("-"):
        raise WrongUsage(texts("cli.typed.options_first"))
    if os.path.isdir(first) or "://" in first:
        # Open a folder given alone. A folder before a command is the command's argument.
        if rest and rest[0] in known and known[rest[0]].passes_arguments:
            raise WrongUsage(texts("cli.launch.here", folder=first, command=rest[0]))
        return (known[rest[0]], [first, *rest[1:]]) if rest and rest[0] in known else (known["open"], typed)
    from watchroom_cli.arguments.parser import unknown_word

    raise WrongUsage(f"{unknown_word(first, list(known), 'command', texts)} {texts('cli.typed.commands')}")


def _parse(command: Command, given: list[str], texts: Catalogue) -> argparse.Namespace:
    """Return the parsed arguments of ``command``. Raise SystemExit if they are wrong."""
    # The parser is slow to load, because it imports the code that recognises workspaces.
    from watchroom_cli.arguments.parser import CommandParser

    parser = CommandParser(prog=f"watchroom {command.name}", description=texts(f"cli.{command.name}.help"))
    parser.color = False  # type: ignore[attr-defined]
    parser.texts = texts
    parser.set_defaults(language=None)
    command.declare(parser, texts)
    return parser.parse_args(given)


def _parse_passed(command: Command, given: list[str]) -> argparse.Namespace:
    """Return the unparsed arguments of ``command``, which passes them to another program."""
    return argparse.Namespace(command=command.name, arguments=given, language=None)


def _refuse(error: WatchroomError, language: Language) -> int:
    print(f"watchroom: {error.report(language)}", file=sys.stderr)
    return REFUSED


def _replace_closed_streams() -> None:
    """Open the null device for each standard stream that the parent process closed, and that Python has
    therefore set to None. Otherwise the next opened file would get the descriptor of the stream."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _replace_unprintable() -> None:
    """Replace characters that the output's encoding lacks, so that an agent's text cannot crash a command."""
    encoding = output_encoding()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors=REPLACEMENT_ERRORS)


@contextmanager
def _debug_records(texts: Catalogue) -> Iterator[None]:
    """Write the debug records of the categories in the environment. Raise `WrongUsage`, OSError."""
    wanted = os.environ.get(DEBUG_VARIABLE, "")
    if not wanted:
        yield
        return
    from watchroom.platform.debug_log import CATEGORIES, debug_records

    path = os.environ.get(DEBUG_FILE_VARIABLE, "")
    with ExitStack() as stack:
        file = stack.enter_context(open(path, "a", encoding="ascii")) if path else sys.stderr
        try:
            stack.enter_context(debug_records(wanted, file))
        except ValueError as unknown:
            text = texts("cli.debug.unknown", given=str(unknown), known=", ".join(("all", *CATEGORIES)))
            raise WrongUsage(text) from unknown
        yield


def _language() -> Language:
    args = os.environ.get(LANGUAGE_VARIABLE, "en")
    return readable_language(args if args in LANGUAGES else "en")


if __name__ == "__main__":
    sys.exit(main())
