"""From data files to features: rows, texts, labels, cached features."""
