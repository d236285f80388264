"""Formulas only: what the papers predict."""
