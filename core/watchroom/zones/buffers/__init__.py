"""Buffers: texts that one agent edits exclusively until it flushes them (EDIT), each with its rows.

To read rows import `record`, which loads quickly; `zone` needs the editor."""
