"""The pretraining tasks, one a file."""
