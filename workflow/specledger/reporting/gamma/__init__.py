"""Draft tokens per round, the acceptance rate by position, and eq. (1)."""
