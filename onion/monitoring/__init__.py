"""What items that watch a run share: the best value so far, logged values, progress lines."""
