"""Recording what a file system writes to its disk, and replaying it up to where the power failed."""
