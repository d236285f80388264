"""Tokens per second of our training loop beside a plain loop in the style of nanoGPT, in one run, taking turns.

Same model, start, batch, threads and optimiser settings. The plain loop is what a reader of nanoGPT would write for
a CPU: float32, batches stacked from slices, AdamW as it comes, the loss read at each tenth step. Writes
training_speed.csv and training_profile.csv into results/<study>/peers/.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import common
import torch
from common import Study, median, paired_ratio, say, shuffled_blocks, spread
from specledger.commands.sweep import alone_on_the_machine
from specledger.corpus.text import Corpus
from specledger.drafters.mtp import MTPModule
from specledger.foundation.devices import describe, prepare, synchronize
from specledger.foundation.fingerprint import code_hash
from specledger.foundation.progress import Log
from specledger.foundation.records import certificate, hash_text, sum_of, write_json, write_rows
from specledger.foundation.stages import stage_settings
from specledger.models.llama import LlamaConfig
from specledger.training.loop import first_state
from specledger.training.precision import precision_of
from specledger.training.schedule import rate_of
from specledger.training.settings import TrainingSettings
from specledger.training.step import update
from specledger.training.target import TargetTraining, build, losses

READ_EVERY = 10
WARMUP_STEPS = 3
PARTS = (  # the first whose words are in a kernel's name
    ("matrix products", ("aten::mm", "aten::addmm", "aten::bmm", "mkldnn", "gemm")),
    ("attention", ("scaled_dot_product", "flash", "fmha")),
    ("optimiser and clipping", ("adamw", "foreach", "vector_norm", "optimizer")),
    ("other kernels", ("aten::", "triton", "compiled")),
)


def nanogpt_style(modules: torch.nn.ModuleList, settings: TrainingSettings, corpus: Corpus, device, _seed) -> Callable:
    """A step of the plain loop, as a function of its number."""
    model, mtp = modules[0], modules[1] if len(modules) > 1 else None
    matrices = [p for p in modules.parameters() if p.dim() >= 2]
    others = [p for p in modules.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, betas=tuple(settings.betas))
    data, length = torch.from_numpy(corpus.train), model.config.context + 2

    def get_batch():
        starts = torch.randint(len(data) - length, (settings.batch,))
        return torch.stack([data[i : i + length] for i in starts]).to(device)

    def step(number: int) -> None:
        for group in optimizer.param_groups:
            group["lr"] = rate_of(settings, number)
        main, after = losses(model, mtp, get_batch())
        loss = main if after is None else main + settings.mtp_weight * after
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(modules.parameters(), settings.clip_norm)
        optimizer.step()
        if number % READ_EVERY == 0:
            loss.item()

    return step


def specledger(modules: torch.nn.ModuleList, settings: TrainingSettings, corpus: Corpus, device, seed: int) -> Callable:
    """A step of our loop, as a function of its number."""
    model, mtp = modules[0], modules[1] if len(modules) > 1 else None
    subject = TargetTraining(model, mtp, settings.mtp_weight)
    state = first_state(subject, settings, seed=seed, device=device)
    tokens = torch.from_numpy(corpus.train).to(device)

    def step(number: int) -> None:
        update(subject, state, rate_of(settings, number), settings, tokens)

    return step


class Loop:
    """A loop with its own model, and the number of the step that it is at."""

    def __init__(self, name: str, precision: str, step: Callable, modules: torch.nn.ModuleList, device: torch.device):
        self.name, self.precision, self.step, self.modules, self.device = name, precision, step, modules, device
        self.number = 0

    def run(self, steps: int) -> float:
        """Seconds of so many steps."""
        # What makes our trainings repeat isn't asked of others: it costs time.
        torch.use_deterministic_algorithms(self.name != "nanogpt_style", warn_only=True)
        synchronize(self.device)
        started = time.perf_counter()
        for _ in range(steps):
            self.number += 1
            self.step(self.number)
        synchronize(self.device)
        return time.perf_counter() - started


def loops_of(study: Study, corpus: Corpus, model: str, device: torch.device) -> list[Loop]:
    """The plain loop, ours as it is configured, and ours in float32 if that is something else."""
    kind = "draft" if model == "draft" else "target"
    sizes, config = study.config["model"], study.config["training"]
    settings = TrainingSettings(**config[kind], mtp_weight=config["mtp_weight"] if model == "mtp" else None)
    llama = LlamaConfig(vocabulary=len(corpus.vocabulary), context=sizes["context"], **sizes[kind])
    ours = str(precision_of(settings.precision, device)).removeprefix("torch.")
    made = []
    for name, make, precision in (
        ("nanogpt_style", nanogpt_style, "float32"),
        *(("specledger", specledger, precision) for precision in dict.fromkeys((ours, "float32"))),
    ):
        parts = build(llama, mtp_of=MTPModule if settings.mtp_weight is not None else None, seed=study.seed)
        modules = torch.nn.ModuleList(m for m in parts if m is not None).to(device)
        step = make(modules, replace(settings, precision=precision), corpus, device, study.seed)
        made.append(Loop(name, precision, step, modules, device))
    return made


def profile(loop: Loop, steps: int = 5) -> list[dict]:
    """What the time of a step goes into, as shares of the processor's (on a GPU: of its own) time."""
    with torch.profiler.profile() as seen:
        wall_s = loop.run(steps)
    cuda = loop.device.type == "cuda"
    seconds = dict.fromkeys([name for name, _ in PARTS], 0.0)
    for event in seen.key_averages():
        part = next((name for name, words in PARTS if any(w in event.key.lower() for w in words)), None)
        if part is not None:
            seconds[part] += (event.self_device_time_total if cuda else event.self_cpu_time_total) / 1e6
    seconds["autograd, Python and waiting"] = max(0.0, wall_s - sum(seconds.values()))
    total = sum(seconds.values())
    return [
        {"loop": loop.name, "precision": loop.precision, "part": part, "share": value / total}
        for part, value in seconds.items()
    ]


def main(given: list[str]) -> None:
    parser = common.arguments(__doc__.splitlines()[0], blocks=20)
    parser.add_argument("--steps", type=int, default=10, help="steps of a block")
    parser.add_argument("--models", nargs="+", choices=("plain", "mtp", "draft"), default=["plain", "mtp", "draft"])
    options = parser.parse_args(given)
    study = Study.of(options)
    device, corpus = prepare(study.config["device"], study.config["threads"]), study.corpus()
    machine = {"threads": study.config["threads"], "device": describe(device)}
    rows, shares = [], []
    with alone_on_the_machine(Log(None)):
        for model in options.models:
            loops = loops_of(study, corpus, model, device)
            for loop in loops:
                loop.run(WARMUP_STEPS)
            times = shuffled_blocks(loops, options.blocks, lambda loop, _: loop.run(options.steps))
            shares += [{"model": model, **row} for loop in loops for row in profile(loop)]
            rows += [{"model": model, **row, **machine} for row in rows_of(loops, times, study, model, options.steps)]
    write_rows(study.results / "peers" / "training_speed.csv", rows)
    write_rows(study.results / "peers" / "training_profile.csv", shares)
    write_certificate(study, options, machine)
    for row in rows:
        speed = (
            f"{row['tokens_per_s']:,.0f} tokens/s, {row['ratio']:.2f} [{row['ratio_lo']:.2f}, {row['ratio_hi']:.2f}]"
        )
        say(f"training-speed: {row['model']} {row['loop']} {row['precision']}: {speed} times the plain loop")
    say(f"training-speed: {common.what_next(options)}")


def write_certificate(study: Study, options, machine: dict) -> None:
    """What was trained on, and with which settings: the models begin anew, so no weights went into it."""
    trained = {model: hash_text(stage_settings(study.config, "train", model=model)) for model in options.models}
    record = certificate(
        stage="training-speed",
        settings=study.settings(steps=options.steps, blocks=options.blocks, trained=trained),
        code=code_hash("train", tuple(Path(__file__).parent.glob("*.py"))),
        inputs={"text": sum_of(study.results / "corpus" / "text.txt")},
        **machine,
    )
    write_json(study.results / "peers" / "training_certificate.json", record)


def rows_of(loops: list[Loop], times: list[list[float]], study: Study, model: str, steps: int) -> list[dict]:
    """One row a loop: tokens per second, and their ratio to those of the plain loop in the same block."""
    kind = "draft" if model == "draft" else "target"
    tokens = steps * study.config["training"][kind]["batch"] * study.config["model"]["context"]
    return [
        {
            "loop": loop.name,
            "precision": loop.precision,
            **spread("tokens_per_s", median([tokens / second for second in seconds])),
            **spread("ratio", paired_ratio(times[0], seconds)),
            "blocks": len(seconds),
            "steps": steps,
            "interval": common.METHOD,
        }
        for loop, seconds in zip(loops, times, strict=True)
    ]


if __name__ == "__main__":
    common.one_line("training-speed", main)
