"""Environments of audited systems: each in a folder of its own, never mixed with ours, since their pins conflict."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from specledger.foundation.errors import UserError
from specledger.foundation.records import write_json

VERSIONS = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"


def environment() -> dict[str, str]:
    """The variables that another environment's interpreter gets: a PYTHONPATH of ours would mix the two."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def python_of(folder: Path) -> Path:
    """The interpreter of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make(folder: Path, requirements: Path, unwanted: Sequence[str], write) -> None:
    """Make the environment anew, with `uv` where it is there and venv and pip otherwise, and tell what is in it.

    `unwanted`: packages that others bring along and that break the system; `write` takes lines for the log.
    UserError where a step fails; installed.json, the record, is written last.
    """
    shutil.rmtree(folder, ignore_errors=True)
    python, uv = python_of(folder), shutil.which("uv")
    if uv:
        steps = [[uv, "venv", "--python", sys.executable, folder]]
        steps += [[uv, "pip", "install", "--python", python, "-r", requirements]]
        steps += [[uv, "pip", "uninstall", "--python", python, *unwanted]] if unwanted else []
    else:
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        steps = [[sys.executable, "-m", "venv", folder], [*pip, "install", "-r", requirements]]
        steps += [[*pip, "uninstall", "--yes", *unwanted]] if unwanted else []
    for step in steps:
        _run(step, folder, requirements, write)
    versions = json.loads(_run([python, "-I", "-c", VERSIONS], folder, requirements, write))
    write_json(folder / "installed.json", {"made_by": "uv" if uv else "pip", "versions": versions})


def _run(command: list, folder: Path, requirements: Path, write) -> str:
    write("$ " + " ".join(map(str, command)))
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment())
    for line in (done.stdout + done.stderr).splitlines():
        write(line)
    if done.returncode:
        last = next((line for line in reversed((done.stderr + done.stdout).splitlines()) if line.strip()), "no message")
        raise UserError(
            f"{folder}: {requirements} could not be installed ({last.strip()}); it needs a network or pip's own "
            "mirror; docs/audit.md says how to bring the packages along without one"
        )
    return done.stdout
