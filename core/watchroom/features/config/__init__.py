"""Config: the registered agents and the settings of the workspace.

``config.toml`` is a view of the journal: registering an agent is a row, and an external edit becomes a row.
`Config` in `rows` has the contents of one version of the file, or of the settings that an owner signed.
`Registry` returns the config in force, and changes it. `Store` has the parts that every service needs: the
journal, commits, the files, the background loop and the registry. `edit_rules` checks external edits of
files. Start reading at `Config`.
"""
