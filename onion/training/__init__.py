"""What items that train share: microbatches, loss scale, learning rate schedules, pairing of updaters and networks."""
