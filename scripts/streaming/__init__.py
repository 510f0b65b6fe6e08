"""Real processes that learn from a stream, and are killed: what scripts/exactly_once.py and scripts/online.py share."""
