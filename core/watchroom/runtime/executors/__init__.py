"""The built-in executors: each carries out one kind of instruction and gives events and a new state."""

from watchroom.runtime.executors.built_in import built_in_executors

__all__ = ["built_in_executors"]
