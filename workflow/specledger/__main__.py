"""`python -m specledger STAGE ...`: run one stage, as the workflow's rules do."""

import sys

from specledger.commands.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
