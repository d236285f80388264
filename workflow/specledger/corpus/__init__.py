"""The text: where it comes from and how it is encoded."""
