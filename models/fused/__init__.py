"""The encoder layers' fast paths: prediction, and training with a backward pass of our own."""
