"""specledger: what speculative decoding promises, settled by measurement."""

__version__ = "0.1.0"
