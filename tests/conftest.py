"""What all tests share: one thread, no surprise from the user's environment, repeatable hypothesis."""

import os
import signal

import pytest
from hypothesis import settings

os.environ.pop("SPECLEDGER_CORPUS", None)  # the tests bring texts of their own
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Two workers on two cores: a second thread each would only make them wait."""
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def ctrl_c():
    """SIGINT and SIGHUP with their usual effect: tests started in the background, or by nohup, have them ignored."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def planned_study(tmp_path_factory):
    """A finished study of which Snakemake makes plans; a file that edits it takes a `copy`."""
    from planning import Planned

    made = Planned.in_folder(tmp_path_factory.mktemp("planned"))
    made.finish()
    return made


@pytest.fixture(scope="module")
def browser():
    """Chromium, started once a file; a test that wants it is skipped where it, or playwright, lacks.

    No longer than a file: Snakemake runs in no process whose event loop is taken, as a running playwright takes it.
    """
    from browsing import CHROMIUM, driver

    with driver().sync_playwright() as running:
        opened = running.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file run in one worker, so that what they share is made once; files go in our order."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


def pytest_collection_modifyitems(items):
    """The files that take longest, a whole study first, go first, so that no worker waits at the end."""
    longest = "workflow cluster reruns browser_systems explorables explorables_limits browser reporting faults proof"
    first = {f"test_{name}.py": place for place, name in enumerate(longest.split())}
    items.sort(key=lambda item: first.get(item.path.name, len(first)))
