"""Verification in one forward pass."""
