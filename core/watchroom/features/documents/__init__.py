"""Realtime documents: several actors edit them at the same time, and edits merge automatically (FILES-4).

A document is the sequence of its deltas in the journal. Version 1 holds its schema; `rows` describes the
others. `service.Documents` creates and opens documents, `DocumentEditor` edits a document for one actor, and
`ReplicaView` records the fields as an actor last saw them. A process has one `LiveReplica` of each document,
shared by all its agents. `Checkpoints` writes the file of each document, and `replica_check` checks states
from other machines in a child process. Start reading at `Documents.edit_document`.
"""
