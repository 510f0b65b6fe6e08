"""The standard items, one ring a file; import them from ``onion`` itself."""
