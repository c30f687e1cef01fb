"""The files of agents: private files, which only their owner writes (FILES-1), and shared files (FILES-3).

`PrivateFiles` and `SharedFiles` in `service.py` read and write them; `tools.py` offers both as tools. A write
of a shared file names the version that it started from. If that version is no longer the current one, the
write is refused, and the refused text stays in the journal. What happens to refused writes is in
`watchroom.features.conflicts`. Start with `SharedFiles.write`.
"""
