"""The version of the program, as pyproject.toml and CITATION.cff have it."""

VERSION = "1.0.0"
