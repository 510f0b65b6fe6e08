"""ERNIE 1.0's pretraining by onion and by a loop in plain Paddle: ``make pretraining-parity``."""
