"""An argument that lists files of one folder, as a rule's inputs and outputs are listed."""

import argparse
from pathlib import Path


class FolderOf(argparse.Action):
    """Keeps the folder of the listed files."""

    def __call__(self, parser, namespace, values, option_string=None):
        folders = {path.parent for path in values}
        if len(folders) != 1:
            parser.error(f"{option_string} must list files of one folder, got {sorted(map(str, folders))}")
        setattr(namespace, self.dest, folders.pop())


def add_folder(parser, name: str, text: str) -> None:
    parser.add_argument(name, type=Path, nargs="+", required=True, action=FolderOf, help=text)
