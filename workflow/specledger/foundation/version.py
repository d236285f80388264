"""The version of the program, as pyproject.toml and CITATION.cff have it."""

VERSION = "0.1.0"
