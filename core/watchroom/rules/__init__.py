"""What rows mean and what may be written: pure functions over rows, for zones and projections alike."""
