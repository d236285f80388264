"""Evidence that the distribution is kept, and its controls."""
