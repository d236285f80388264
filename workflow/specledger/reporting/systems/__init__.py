"""Published systems."""
