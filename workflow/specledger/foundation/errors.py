"""Errors that are meant for the user."""


class UserError(ValueError):
    """One line for the user: what is wrong, where (file or config key), and what is allowed."""
