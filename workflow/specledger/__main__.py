"""`python -m specledger STAGE ...`: run one stage, as the workflow's rules do."""

import sys

from specledger.commands.run import main


def console() -> int:
    """The command `specledger`."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(console())
