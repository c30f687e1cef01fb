"""The command init: create a workspace, and register agents."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from watchroom.features.config.rows import LAYERS, Agent
from watchroom.kernel.journal import is_server_address
from watchroom.texts import LANGUAGES, Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.shown_place import place_word
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.acting_person import suggest_closing


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
        if workspace.config.agents and sys.stderr.isatty():
            agent_id = next(iter(workspace.config.agents))
            print(texts("cli.init.next", root=place_word(args.dir), agent=agent_id), file=sys.stderr)
        suggest_closing(workspace, args.dir, texts)
    return 0


def _agent(text: str, texts: Catalogue) -> Agent:
    agent_id, _, rest = text.partition(":")
    layer, _, rest = rest.partition(":")
    supervisor, _, role = rest.partition(":")
    if layer and layer not in LAYERS:
        raise WrongUsage(texts("cli.init.layer", given=text, layers=", ".join(LAYERS)))
    return Agent(agent_id, role=role, layer=layer or "bottom", supervisor=supervisor)
