"""Pure algorithms, which read and write nothing: CRDTs, the editor, merging, patterns, signatures, trees."""
