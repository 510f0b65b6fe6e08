"""What came into a run from outside: `Journal`, and how a run is replayed from it."""
