"""A stage's folders: an argument that lists files of one, as rules do, and the certificate beside results."""

import argparse
from pathlib import Path

from specledger.foundation.records import certificate, write_json


class FolderOf(argparse.Action):
    """Keeps the folder of the listed files."""

    def __call__(self, parser, namespace, values, option_string=None):
        folders = {path.parent for path in values}
        if len(folders) != 1:
            parser.error(f"{option_string} must list files of one folder, got {sorted(map(str, folders))}")
        setattr(namespace, self.dest, folders.pop())


def add_folder(parser, name: str, text: str) -> None:
    parser.add_argument(name, type=Path, nargs="+", required=True, action=FolderOf, help=text)


def certify(folder: Path, options, device: str, threads: int) -> None:
    """Write certificate.json: what made the results of a folder."""
    record = certificate(
        stage=options.stage, settings=options.settings, code=options.code, device=device, threads=threads
    )
    write_json(folder / "certificate.json", record)
