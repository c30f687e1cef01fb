"""The catalogues of the boards."""
