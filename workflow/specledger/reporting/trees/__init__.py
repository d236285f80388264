"""Trees of draft tokens."""
