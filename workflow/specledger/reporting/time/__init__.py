"""Time on the clock, by part and against theory."""
