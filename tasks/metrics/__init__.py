"""How well a task is done: figures over all examples of a pass, from decoded outputs."""
