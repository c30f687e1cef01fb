"""The workspace and git: the history of its files as a repository, and back.

exported = export_history(workspace.journal, "team.git")
"""

from watchroom.git.errors import GitError, GitMissing, InvalidRepository
from watchroom.git.export import Exported, Grouping, LeftOut, export_history

__all__ = [
    "Exported",
    "GitError",
    "GitMissing",
    "Grouping",
    "InvalidRepository",
    "LeftOut",
    "export_history",
]
