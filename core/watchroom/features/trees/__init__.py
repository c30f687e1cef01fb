"""Working trees of a git repository: people and agents change files there with their own tools.

Every change of a file that git does not ignore becomes a version with an author. `recorder` finds and records
changes, `service.Trees` manages the trees of the repository, and `git` runs git. Start reading at `rows`.
"""
