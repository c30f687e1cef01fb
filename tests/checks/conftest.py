"""A git repository with a workspace, and an agent whose work is checked."""

from __future__ import annotations

from trees.conftest import _nobody, alice, bob, kept, repository

__all__ = ["_nobody", "alice", "bob", "kept", "repository"]
