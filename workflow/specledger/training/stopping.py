"""Signals that ask a training to stop, noted so that its step can end and its state be kept first."""

import signal
import time

NAMES = ("SIGTERM", "SIGINT", "SIGHUP")  # kill and cluster, Ctrl-C, a terminal that closes
PATIENCE_S = 3.0  # one Ctrl-C may arrive twice, from the terminal and from a parent; later ones mean it


class StopSignals:
    """While it is open, the first signal sets `asked`; one that comes after PATIENCE_S has its usual effect."""

    def __init__(self):
        self.asked: str | None = None
        self._at = 0.0
        self._before = {}

    def __enter__(self) -> "StopSignals":
        for number in (getattr(signal, name) for name in NAMES if hasattr(signal, name)):
            # What nohup and a shell's & ignore stays ignored; None is a handler that Python can't put back.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame) -> None:
        if self.asked is None:
            self.asked, self._at = signal.Signals(number).name, time.monotonic()
        elif time.monotonic() - self._at > PATIENCE_S:
            self.__exit__()
            signal.raise_signal(number)
