"""The files of agents: private files, which only their owner writes (FILES-1), and shared files (FILES-3).

`PrivateFiles` and `SharedFiles` in `service.py` read and write them; `tools.py` offers both as tools. A write
of a shared file names its base version. If that is no longer the current version, the write is refused, and
the refused text stays in the journal. `watchroom.features.conflicts` handles refused writes.
`plugin_zones.py` has the rules of other packages for folders of shared files. Start with `SharedFiles.write`.
"""
