"""How small and fast trained models become, and what it costs: ``make compression``."""
