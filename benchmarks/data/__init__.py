"""Data: from texts to features, from features to batches, and what it takes to begin."""
