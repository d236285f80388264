"""Snakemake's messages as one view of the run (specledger.foundation.view); profiles/default/config.yaml asks for it.

What Snakemake says of each job goes; its warnings and errors stay, and so does all that a dry run prints.
"""

import logging
import sys

from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from specledger.foundation import view

NOTHING_TO_DO = "Nothing to be done"
TOLD = (
    "At least one job did not complete",
    "Exiting because a job execution failed",
)  # the Snakefile says how it ended


class LogHandler(LogHandlerBase):
    """Shows the jobs of a run; everything else by Snakemake's own handler."""

    def __post_init__(self) -> None:
        asked = self.common_settings
        stream = sys.stdout if asked.stdout else sys.stderr
        self._plain = ColorizingTextHandler(nocolor=asked.nocolor, stream=stream)
        self._plain.setFormatter(DefaultFormatter(asked.quiet, asked.show_failed_logs))
        kinds = (asked.quiet, asked.debug_dag, asked.verbose, asked.dryrun, asked.printshellcmds)
        self._plain.addFilter(DefaultFilter(*kinds))
        self._whole = asked.dryrun or asked.verbose or asked.debug_dag or asked.printshellcmds
        self.view = view.current = None if self._whole else view.View(stream)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._whole or self.view is None:
                self._say(record)
            else:
                self._show(record)
        except Exception:  # a view that fails must not end a run
            self.handleError(record)

    def _show(self, record: logging.LogRecord) -> None:
        match getattr(record, "event", None):
            case LogEvent.JOB_INFO:
                self.view.begun(record.jobid, record.rule_name, dict(record.wildcards or {}), record.log)
            case LogEvent.JOB_FINISHED:
                self.view.ended(record.job_id)
            case LogEvent.JOB_ERROR:
                self.view.failed(record.jobid)
            case LogEvent.ERROR | None if any(words in str(record.msg) for words in TOLD):
                pass
            case LogEvent.ERROR if "CalledProcessError" in str(record.msg):
                pass  # the stage said in a line what is wrong
            case None if record.levelno >= logging.WARNING or NOTHING_TO_DO in record.getMessage():
                self._say(record)
            case LogEvent.ERROR:
                self._say(record)

    def _say(self, record: logging.LogRecord) -> None:
        if not self._plain.filter(record):
            return
        if self.view is None:
            self._plain.handle(record)
            return
        with self.view._lock:
            self.view._clear()
            self._plain.handle(record)

    def close(self) -> None:
        if self.view is not None:
            self.view.close()
        super().close()

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False
