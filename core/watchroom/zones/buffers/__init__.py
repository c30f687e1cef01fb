"""Buffers: texts that one agent edits exclusively until it flushes them (EDIT), each with its rows."""
