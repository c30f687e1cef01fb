"""The commands init, call, tools and prompt: set up agents and call their tools."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from watchroom.features.config.rows import LAYERS, Agent
from watchroom.kernel.journal import is_server_address
from watchroom.texts import LANGUAGES, Catalogue
from watchroom.workspace import Workspace

from watchroom_tui.commands.command import print_json
from watchroom_tui.commands.person import suggest_closing
from watchroom_tui.commands.workspace_argument import add_workspace_argument
from watchroom_tui.shown_place import place_word
from watchroom_tui.usage import WrongUsage


def declare_init(parser: ArgumentParser, texts: Catalogue) -> None:
    parser.add_argument("dir", help=texts("cli.argument.dir"))
    parser.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="ID[:LAYER[:SUPERVISOR[:ROLE]]]",
        help=texts("cli.argument.agent"),
    )
    parser.add_argument("--database", metavar="ADDRESS", help=texts("cli.init.database"))
    parser.add_argument("--language", choices=LANGUAGES, help=texts("cli.argument.language"))


def run_init(args: Namespace, texts: Catalogue) -> int:
    agents = [_agent(text, texts) for text in args.agent]
    if args.database and not is_server_address(args.database):
        raise WrongUsage(texts("cli.init.no_database"))
    root, checkout = (args.database, args.dir) if args.database else (args.dir, None)
    with Workspace.open(root, agents, language=args.language, checkout=checkout) as workspace:
        if not workspace.config.agents:
            print(texts("cli.init.empty", root=place_word(args.dir)))
        for agent in workspace.config.agents.values():
            print(f"{agent.id}\t{agent.layer}\t{agent.supervisor or '-'}")
        suggest_closing(workspace, args.dir, texts)
    return 0


def _agent(text: str, texts: Catalogue) -> Agent:
    agent_id, _, rest = text.partition(":")
    layer, _, rest = rest.partition(":")
    supervisor, _, role = rest.partition(":")
    if layer and layer not in LAYERS:
        raise WrongUsage(texts("cli.init.layer", given=text, layers=", ".join(LAYERS)))
    return Agent(agent_id, role=role, layer=layer or "bottom", supervisor=supervisor)


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
    from watchroom.features.calls.tool_registry import all_tools
    from watchroom.kernel.tools.schemas import build_definition

    tools = [tool for tool in all_tools().values() if tool.is_for(human=False)]
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
