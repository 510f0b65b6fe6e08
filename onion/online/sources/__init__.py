"""Where samples come from: files, SQLite, Redis; and what writes samples there."""
