"""Buffers: texts that one agent edits exclusively until it flushes them (spec 4), each with its rows.

To read rows import `record`, which loads quickly; `zone` needs the editor."""
