"""The composing engine: rings, items, runner, state. It imports no Paddle."""
