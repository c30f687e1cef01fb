"""Buffers: texts that one agent has to itself until it flushes them (spec 4), each with its rows.

Whoever only reads the rows takes `record`, which is quick to load; `buffers` needs the editor.
"""
