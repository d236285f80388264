"""A training between two steps, as one object that can be put away and taken up without a bit of difference."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

WEIGHTS, BEST, OPTIMIZER, ORDER = "weights.", "best.", "optimizer.", "order"


@dataclass(frozen=True, kw_only=True)
class Best:
    """The lowest validation loss so far, the step it was met at, and the weights of that step."""

    loss: float
    step: int
    weights: dict[str, Tensor]


@dataclass(kw_only=True)
class State:
    """All that the steps to come depend on; `order` draws the batches, the other streams are spent at the start."""

    modules: torch.nn.ModuleList
    optimizer: torch.optim.Optimizer
    order: torch.Generator
    step: int = 0
    elapsed_s: float = 0.0
    history: list[dict] = field(default_factory=list)
    best: Best | None = None

    def tensors(self) -> dict[str, Tensor]:
        """Weights, moments, the generator's state and the best weights, on the CPU."""
        found = {WEIGHTS + name: tensor for name, tensor in self.modules.state_dict().items()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            found |= {f"{OPTIMIZER}{index}.{name}": tensor for name, tensor in moments.items()}
        if self.best is not None:
            found |= {BEST + name: tensor for name, tensor in self.best.weights.items()}
        found[ORDER] = self.order.get_state()
        return {name: tensor.detach().cpu().contiguous() for name, tensor in found.items()}

    def facts(self) -> dict:
        """What is no tensor, as JSON keeps it: a float read back is the same float."""
        best = None if self.best is None else {"loss": self.best.loss, "step": self.best.step}
        return {"step": self.step, "elapsed_s": self.elapsed_s, "history": self.history, "best": best}

    def restore(self, tensors: dict[str, Tensor], facts: dict) -> None:
        """Become the state that `tensors()` and `facts()` were taken of; models and optimiser are built alike."""
        self.modules.load_state_dict(_under(WEIGHTS, tensors))
        moments: dict[int, dict] = {}
        for name, tensor in _under(OPTIMIZER, tensors).items():
            index, _, key = name.partition(".")
            # A copy: what safetensors yields is a view into the file's bytes.
            moments.setdefault(int(index), {})[key] = tensor.clone()
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self.order.set_state(tensors[ORDER].clone())
        self.step, self.elapsed_s, self.history = facts["step"], facts["elapsed_s"], list(facts["history"])
        if facts["best"] is not None:
            self.best = Best(**facts["best"], weights=_under(BEST, tensors))


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
