"""Record the writes of a file system to its disk, and replay them up to a power loss."""
