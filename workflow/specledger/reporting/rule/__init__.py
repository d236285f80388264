"""The acceptance rule."""
