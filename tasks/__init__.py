"""Tasks: what turns files into examples, an encoder's output into an answer, and both into a ready onion."""
