"""Commands for agents and for those who set them up: init, call, tools, prompt."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from typing import get_args

from watchroom.errors import ConfigInvalid
from watchroom.registry import LAYERS, Agent, Layer
from watchroom.texts import LANGUAGES
from watchroom.workspace import Workspace


def declare_init(parser: ArgumentParser) -> None:
    parser.add_argument("dir")
    parser.add_argument(
        "--agent", action="append", default=[], metavar="ID[:LAYER[:SUPERVISOR]]", help="repeatable"
    )
    parser.add_argument("--language", choices=LANGUAGES)


def init(given: Namespace) -> int:
    agents = [_agent(text) for text in given.agent]
    with Workspace.open(given.dir, agents, language=given.language) as workspace:
        for agent in workspace.config.agents.values():
            print(f"{agent.id}\t{agent.layer}\t{agent.supervisor or '-'}")
    return 0


def _agent(text: str) -> Agent:
    agent_id, _, rest = text.partition(":")
    layer, _, supervisor = rest.partition(":")
    if layer and layer not in LAYERS:
        raise ConfigInvalid(problem=f"--agent {text}: layer is one of {', '.join(get_args(Layer))}")
    return Agent(agent_id, layer=layer or "bottom", supervisor=supervisor)


def declare_call(parser: ArgumentParser) -> None:
    parser.add_argument("dir")
    parser.add_argument("agent")
    parser.add_argument("tool")
    parser.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON | -", help="- reads them from stdin"
    )


def call(given: Namespace) -> int:
    arguments = sys.stdin.read() if given.arguments == "-" else given.arguments
    with Workspace.open(given.dir, create=False, scan=False) as workspace:
        result = workspace.tools(given.agent).dispatch_tool_call(given.tool, arguments)
    print(json.dumps(result, ensure_ascii=False, indent=2))
    return 0 if result["success"] else 1


def declare_tools(parser: ArgumentParser) -> None:
    parser.add_argument("--format", choices=("plain", "openai", "anthropic", "mcp"), default="plain")
    parser.add_argument("--toolsets", help="comma-separated: private, handoff, collab")
    parser.add_argument("--language", choices=LANGUAGES, default="en")


def tools(given: Namespace) -> int:
    from watchroom.toolbox.definitions import TOOLS
    from watchroom.toolbox.schemas import definition

    wanted = None if given.toolsets is None else set(given.toolsets.split(","))
    definitions = [
        definition(tool, given.format, given.language)
        for tool in TOOLS.values()
        if wanted is None or tool.toolset in wanted
    ]
    print(json.dumps(definitions, ensure_ascii=False, indent=2))
    return 0


def declare_prompt(parser: ArgumentParser) -> None:
    parser.add_argument("dir")
    parser.add_argument("agent")


def prompt(given: Namespace) -> int:
    with Workspace.open(given.dir, create=False, scan=False) as workspace:
        print(workspace.tools(given.agent).system_prompt())
    return 0
