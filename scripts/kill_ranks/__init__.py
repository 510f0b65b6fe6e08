"""Kill random ranks of a training at chosen moments, go on with other numbers of processes, compare the bits."""
