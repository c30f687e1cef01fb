"""The commands call, tools and prompt: make a tool call, print definitions of tools and system prompts."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from watchroom.texts import LANGUAGES, Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json


def declare_call(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("agent")
    parser.add_argument("tool")
    parser.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON | -", help=texts("cli.argument.arguments")
    )


def run_call(args: Namespace, texts: Catalogue) -> int:
    arguments = sys.stdin.read() if args.arguments == "-" else args.arguments
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        result = workspace.tools(args.agent).dispatch_tool_call(args.tool, arguments)
    print_json(result, indent=2)
    return 0 if result["success"] else 1


def declare_tools(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("--format", choices=("plain", "openai", "anthropic", "mcp"), default="plain")
    parser.add_argument("--toolsets", help=texts("cli.argument.toolsets"))
    parser.add_argument("--language", choices=LANGUAGES, help=texts("cli.argument.language"))


def run_tools(args: Namespace, texts: Catalogue) -> int:
    from watchroom.features.calls.tool_registry import tools_for
    from watchroom.kernel.tools.schemas import build_definition

    tools = [*tools_for(human=False).values()]
    known = {tool.toolset for tool in tools}
    wanted = known if args.toolsets is None else set(args.toolsets.split(","))
    if unknown := wanted - known:
        text = texts("cli.tools.unknown", given=", ".join(sorted(unknown)), known=", ".join(sorted(known)))
        raise WrongUsage(text)
    chosen = [tool for tool in tools if tool.toolset in wanted]
    print_json([build_definition(tool, args.format, args.language) for tool in chosen], indent=2)
    return 0


def declare_prompt(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("agent")


def run_prompt(args: Namespace, texts: Catalogue) -> int:
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        print(workspace.tools(args.agent).system_prompt())
    return 0
