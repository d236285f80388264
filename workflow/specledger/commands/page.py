"""Stage `page`: report/index.html."""

from specledger.commands import presenting
from specledger.reporting.page import render

add_arguments = presenting.add_arguments


def run(options, log) -> None:
    presenting.present(options, log, render)
