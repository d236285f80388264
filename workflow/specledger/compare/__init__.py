"""A study's tables beside those of a reference: what agrees, what differs, and what is open."""
