"""What the stages that train share: arguments, signals, checkpoints, progress, and what is recorded of each."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from specledger.corpus.text import Corpus
from specledger.foundation.devices import describe
from specledger.foundation.fingerprint import code_hash
from specledger.foundation.progress import Progress
from specledger.foundation.records import hash_text
from specledger.training.checkpoint import text_sum
from specledger.training.checkpointer import EVERY_S, Checkpointer
from specledger.training.precision import precision_of
from specledger.training.settings import TrainingSettings
from specledger.training.stopping import StopSignals


def add_arguments(parser) -> None:
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True, help="history.csv; the other files go beside it")
    parser.add_argument("--checkpoint", type=Path, required=True, help="where the training is kept until it is done")
    parser.add_argument("--checkpoint-every", type=float, default=EVERY_S, metavar="SECONDS")


def identity(options, model: str, corpus: Corpus, device: str, **made_from: str) -> dict[str, str]:
    """All that makes the weights what they are, by name: a checkpoint in which any of it differs is another's."""
    return {
        "model": model,
        "seed": str(options.seed),
        "settings": hash_text(options.settings),
        "code": options.code or code_hash(options.stage),
        "text": text_sum(corpus),
        "device": device,
        "torch": metadata.version("torch"),
        **made_from,
    }


def carry_out(name: str, options, log, *, steps: int, made_by: dict[str, str], train: Callable, save: Callable):
    """Train and save from where an interruption left it; returns what `train` yields.

    Args:
        made_by: the training's `identity`.
        train: called with `on_step` and `checkpointer` by name.
        save: called with what it yields; only then the checkpoint goes.
    """
    with StopSignals() as signals:
        checkpointer = Checkpointer(
            options.checkpoint,
            made_by,
            say=lambda line: log.say(f"{name}: {line}"),
            asked=lambda: signals.asked,
            every_s=options.checkpoint_every,
        )
        already = 0 if checkpointer.found is None else checkpointer.found.step
        with Progress(name, steps, log, already=already) as progress:

            def show(step, read_loss):
                progress.advance(f"loss {read_loss():.3f}" if progress.due() else "")

            trained = train(on_step=show, checkpointer=checkpointer)
        save(trained)
        checkpointer.remove()
    return trained


def facts(options, settings: dict, training: TrainingSettings, *, context: int, device) -> dict:
    """What training.json says of any training: how, and on what."""
    return {
        "seed": options.seed,
        **{key: getattr(training, key) for key in ("steps", "batch", "learning_rate", "checkpoint")},
        "precision": str(precision_of(training.precision, device)).removeprefix("torch."),
        "tokens": training.steps * training.batch * context,
        "device": describe(device),
        "threads": settings["threads"],
    }
