"""The paths of parameters in the networks of tasks, for whoever reads weights without the networks."""

ENCODER = "encoder."
"""What the paths of an encoder's parameters begin with in every network of ours."""
