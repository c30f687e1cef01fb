"""Buffers: texts that one agent edits alone until it flushes them to their source (EDIT).

`service.Buffers` opens, edits and closes buffers. Each operation that changes a buffer is one version of its
path ``AGENT/NAME``. `rows.BufferRecord` describes such a version, and `reads` rebuilds the text.
`BufferStore` keeps open buffers in memory. `sources` reads and writes the file, board or task file that a
buffer edits. Each open buffer has its own tools (`tools`), and `view` shows buffers on the dashboard. Start
reading at `Buffers.apply_operation`.
"""
