"""Several tasks in one run: their data, the sampler, and its strategies."""
