"""Learning from a stream: validation on new batches, drift detection, replay of old samples, published snapshots."""
