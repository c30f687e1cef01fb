"""The rules for valid external edits of files, by zone."""

from __future__ import annotations

from watchroom import validation
from watchroom.errors import InvalidPath
from watchroom.features.config.registry import Registry
from watchroom.features.config.rows import parse_config
from watchroom.kernel.checkout.reconciler import EditRule
from watchroom.kernel.zones import DELIVERED, ZONES
from watchroom.model import Zone


def edit_rules(registry: Registry) -> dict[Zone, EditRule]:
    """Return the rule of each zone whose external edits are checked. The owner of a private file must be an
    agent in ``registry``."""

    def check_private(path: str) -> None:
        owner, filename = _split(path)
        validation.check_path(filename)
        registry.agent(owner)

    return {
        "private": EditRule(check_private),
        "config": EditRule(bool, parse_config, may_remove=False),
        **{zone: EditRule(_check_delivery) for zone in DELIVERED},
        **{zone: EditRule(validation.check_board_name) for zone, spec in ZONES.items() if spec.suffix},
    }


def _check_delivery(path: str) -> None:
    pair, filename = _split(path)
    validation.check_path(filename)
    validation.check_path(pair)


def _split(path: str) -> tuple[str, str]:
    """Split ``path`` into the folder of its owners and the rest. Raise `InvalidPath` if there is no rest."""
    owner, _, filename = path.partition("/")
    if not filename:
        raise InvalidPath(given=path, rule="no_owner")
    return owner, filename
