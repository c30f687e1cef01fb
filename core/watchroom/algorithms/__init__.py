"""Pure algorithms without I/O: CRDTs, the editor, merging, patterns, signatures, trees."""
