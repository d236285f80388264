"""specledger: what speculative decoding promises, settled by measurement."""

from specledger.foundation.version import VERSION

__version__ = VERSION
