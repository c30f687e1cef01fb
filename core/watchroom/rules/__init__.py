"""What may be written, and what rows mean: pure rules, which zones, projections and journals share."""
