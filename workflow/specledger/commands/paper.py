"""Stage `paper`: report/report.pdf."""

from specledger.commands import presenting
from specledger.reporting.paper import render

add_arguments = presenting.add_arguments


def run(options, log) -> None:
    presenting.present(options, log, render)
