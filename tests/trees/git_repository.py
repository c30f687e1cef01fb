"""A git repository in a folder, with a workspace in its git folder."""

from __future__ import annotations

from pathlib import Path

from trees.git_repo import git, make_repository


class Repository:
    """A repository in ``folder``, with the workspace in its git folder. ``object_format``: that of git."""

    def __init__(self, folder: Path, *, object_format: str = "sha1") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--initial-branch=main", f"--object-format={object_format}")
        make_repository(folder)

    @property
    def root(self) -> Path:
        """The folder of the workspace."""
        return self.folder / ".git" / "watchroom"

    def git(self, *arguments: str) -> str:
        """Run git, and return what it prints."""
        return git(self.folder, *arguments)

    def write(self, name: str, text: str) -> None:
        """Write a file, as a person's editor does."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def read(self, name: str) -> str:
        return (self.folder / name).read_bytes().decode()

    def commit(self, **files: str) -> None:
        """Commit files with these contents; ``__`` in a name stands for a point."""
        for name, text in files.items():
            self.write(name.replace("__", "."), text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "m")
