"""Learning from a stream: validation on new batches, drift, replayed samples, snapshots that predict."""
