"""The workspace and git: the history of its files as a repository, and back.

exported = export_history(workspace.journal, "team.git")
"""

from watchroom.git.branch import Branched, write_branch
from watchroom.git.errors import GitError, GitMissing, InvalidRepository
from watchroom.git.export import Exported, Grouping, LeftOut, export_history
from watchroom.git.importing import Imported, Omitted, import_into_task, import_shared
from watchroom.git.seal_branch import SealBranch

__all__ = [
    "Branched",
    "Exported",
    "GitError",
    "GitMissing",
    "Grouping",
    "Imported",
    "InvalidRepository",
    "LeftOut",
    "Omitted",
    "SealBranch",
    "export_history",
    "import_into_task",
    "import_shared",
    "write_branch",
]
