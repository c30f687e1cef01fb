"""The dashboard's needs and answers as lines of text, for screen readers, pipes and logs."""
