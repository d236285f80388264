"""The library of `kernels.cpp`: compiled once for a machine, and loaded from then on.

Its file is named by what it is made of: the source, the compiler's version and flags, and the processor's
instructions, so that a file that another machine made is never loaded.
"""

import contextlib
import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from ctypes import c_double, c_float, c_int64, c_void_p
from functools import cache
from pathlib import Path

from specledger.foundation.errors import UserError
from specledger.foundation.records import read_json, write_json

SOURCE = Path(__file__).with_name("kernels.cpp")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-std=c++17", "-shared", "-fPIC")
FUNCTIONS = {
    "specledger_distribution": (c_void_p, c_int64, c_int64, c_int64, c_void_p, c_void_p),
    "specledger_model": (
        c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_void_p,
    ),
    "specledger_chain": (
        c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_double, c_void_p, c_void_p, c_void_p,
    ),
    "specledger_draw": (c_void_p, c_int64, c_double),
    "specledger_siblings": (c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_void_p),
    "specledger_accept": (
        c_void_p, c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_double, c_void_p, c_void_p,
    ),
    "specledger_linear": (c_void_p, c_int64, c_void_p, c_void_p),
    "specledger_norm": (c_void_p, c_int64, c_int64, c_void_p, c_float, c_void_p),
    "specledger_normed_linear": (
        c_void_p, c_int64, c_int64, c_void_p, c_float, c_void_p, c_void_p, c_void_p,
    ),
    "specledger_blocks": (
        c_void_p, c_int64, c_int64, c_void_p, c_int64, c_int64, c_void_p, c_float, c_void_p, c_void_p,
    ),
}  # fmt: skip
RETURNS = {
    "specledger_distribution": c_int64,
    "specledger_draw": c_int64,
    "specledger_chain": c_int64,
    "specledger_siblings": c_int64,
    "specledger_accept": c_double,
}


class NotCompiled(UserError):
    """The compiler is missing or failed; the study can go on without the engine."""


def compiler() -> str:
    """The path of the C++ compiler: CXX, or what the system has; NotCompiled where there is none."""
    named = os.environ.get("CXX")
    for name in (named,) if named else ("g++", "clang++", "c++"):
        if found := shutil.which(name):
            return found
    raise NotCompiled("no C++ compiler found; install one (Debian: apt install g++), or set CXX")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        line = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0][:200]
        raise NotCompiled(f"{command[0]} failed ({line})")
    return done.stdout


def identity() -> str:
    """The name of the library that this machine would make, 16 letters."""
    path = compiler()
    about = _run(path, "--version") + _run(path, *FLAGS[:2], "-E", "-dM", "-x", "c++", os.devnull)
    return hashlib.sha256(SOURCE.read_bytes() + about.encode() + " ".join(FLAGS).encode()).hexdigest()[:16]


def build(folder: Path | None = None) -> tuple[Path, float]:
    """The library of this machine in `folder`, made there unless it is there, and the seconds that making it took."""
    path = (folder or default_folder()) / f"kernels-{identity()}.so"
    record = path.with_suffix(".json")
    if not (path.exists() and record.exists()):
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=path.parent) as inside:
            made = Path(inside) / path.name
            _run(compiler(), *FLAGS, str(SOURCE), "-o", str(made))
            made.replace(path)
        write_json(record, {"compile_s": round(time.perf_counter() - begun, 3)})
    return path, read_json(record)["compile_s"]


def default_folder() -> Path:
    """This user's folder for what is compiled, in the cache's or, where that can't be written, the temporary folder."""
    for folder in (Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"), Path(tempfile.gettempdir())):
        own = folder / ("specledger" if folder.name == ".cache" else f"specledger-{os.getuid()}")
        with contextlib.suppress(OSError):
            own.mkdir(parents=True, exist_ok=True, mode=0o700)
            if os.access(own, os.W_OK) and own.stat().st_uid == os.getuid():
                return own
    raise NotCompiled("no folder for its library can be written; set XDG_CACHE_HOME")


@cache
def library() -> ctypes.CDLL:
    """The functions of `kernels.cpp`; NotCompiled where they can't be had."""
    path, _ = build()
    try:
        found = ctypes.CDLL(str(path))
    except OSError as error:
        raise NotCompiled(f"{path} can't be loaded ({error})") from None
    for name, arguments in FUNCTIONS.items():
        function = getattr(found, name)
        function.argtypes, function.restype = arguments, RETURNS.get(name)
    return found
