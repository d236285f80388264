"""The page in a real browser, offline: anything but silence on its console, and any request, fails the test."""

from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")


def driver():
    """Playwright's synchronous interface; the test module is skipped, with a reason, where it or the browser lacks."""
    found = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed", allow_module_level=True)
    return found


class Visits:
    """Tabs of one browser, each in a fresh context without a network."""

    def __init__(self, browser):
        self.browser, self.contexts, self.faults = browser, [], []

    def open(self, page: Path, hash_: str = "", *, folded: bool = False, **options):
        """A tab on the page; what is folded is open, unless the test is of the folds."""
        context = self.browser.new_context(offline=True, **{"viewport": {"width": 1200, "height": 900}, **options})
        context.set_default_timeout(15_000)
        self.contexts.append(context)
        tab = context.new_page()

        def is_foreign(request) -> bool:
            return request.url.split("#")[0] != page.as_uri() and not request.url.startswith(("data:", "blob:"))

        tab.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        tab.on("request", lambda request: self.faults.extend([request.url[:80]] * is_foreign(request)))
        tab.goto(page.as_uri() + hash_)
        if not folded:
            tab.evaluate("document.querySelectorAll('details.fold').forEach((one) => { one.open = true; })")
        return tab

    def close(self) -> None:
        for context in self.contexts:
            context.close()
        assert self.faults == []
