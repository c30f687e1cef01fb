"""How each zone judges what somebody writes into its files by hand."""

from __future__ import annotations

from watchroom import validation
from watchroom.checkout.reconciler import EditRule
from watchroom.errors import InvalidPath
from watchroom.model import Zone
from watchroom.registry import Registry
from watchroom.rules.config import parse_config


def edit_rules(registry: Registry) -> dict[Zone, EditRule]:
    """The rule of each zone whose files count; private files are those of the agents in ``registry``."""

    def check_private(path: str) -> None:
        owner, filename = _split(path)
        validation.check_path(filename)
        registry.agent(owner)

    return {
        "private": EditRule(check_private),
        "handoff": EditRule(_check_handoff),
        "board": EditRule(validation.check_board_name),
        "config": EditRule(bool, parse_config, may_remove=False),
    }


def _check_handoff(path: str) -> None:
    pair, filename = _split(path)
    validation.check_path(filename)
    validation.check_path(pair)


def _split(path: str) -> tuple[str, str]:
    """The folder that the owners of a path share, and the rest. Raises `InvalidPath`."""
    owner, _, filename = path.partition("/")
    if not filename:
        raise InvalidPath(given=path, rule="no_owner")
    return owner, filename
