"""Working trees of a git repository: people and agents change files there with their own tools.

Every change of a file that git does not ignore becomes a version with an author. `recorder` finds changes and
records them, `service.Trees` knows the trees of the repository, `git` asks git. Start reading at `rows`.
"""
