"""A stage's folders: an argument that lists files of one, as rules do, and the certificate beside results."""

import argparse
from pathlib import Path

from specledger.foundation.records import certificate, head_weights_of, sum_of, weights_of, write_json


class FolderOf(argparse.Action):
    """Keeps the folder of the listed files."""

    def __call__(self, parser, namespace, values, option_string=None):
        folders = {path.parent for path in values}
        if not folders:  # a rule that has no such files for this job
            return
        if len(folders) != 1:
            parser.error(f"{option_string} must list files of one folder, got {sorted(map(str, folders))}")
        setattr(namespace, self.dest, folders.pop())


def add_folder(parser, name: str, text: str, *, required: bool = True) -> None:
    parser.add_argument(name, type=Path, nargs="+" if required else "*", required=required, action=FolderOf, help=text)


def inputs_of(options) -> dict[str, str]:
    """The sums of what a stage reads, by name: its files, and of a model's folder the weights."""
    found = {}
    for name in ("text", "ngram", "mtp", "draft", "plain"):
        path = getattr(options, name, None)
        if path is not None:
            found[name] = sum_of(*weights_of(path)) if path.is_dir() else sum_of(path)
    if getattr(options, "first", None) is not None:
        found[options.begins_with] = sum_of(*head_weights_of(options.first))
    for path in getattr(options, "shapes", ()):
        found["shapes"] = sum_of(path)
    for path in getattr(options, "heads", ()):
        found[path.parent.parent.name] = sum_of(path)
    return found


def certify(folder: Path, options, device: str, threads: int) -> None:
    """Write certificate.json: what made the results of a folder."""
    record = certificate(
        stage=options.stage,
        settings=options.settings,
        code=options.code,
        inputs=inputs_of(options),
        device=device,
        threads=threads,
    )
    results = [path for path in folder.iterdir() if path.suffix != ".part" and path.name != "certificate.json"]
    record["files"] = {path.name: sum_of(path) for path in sorted(results)}
    write_json(folder / "certificate.json", record)
