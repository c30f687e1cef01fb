"""The demo of a git repository: simulated clients work in it with their own tools and the hooks of real
clients. They leave a conflict to settle, work to revert, and work to commit."""

from watchroom.agents.simulation.repository.play import RepositorySimulation
from watchroom.agents.simulation.repository.story import NAME, PERSON, Story, load_story, make_repository

__all__ = ["NAME", "PERSON", "RepositorySimulation", "Story", "load_story", "make_repository"]
