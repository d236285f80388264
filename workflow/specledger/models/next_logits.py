"""What a kept model says after given tokens, in plain arrays. Shapes: N prefixes, T tokens of each, V vocabulary."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from specledger.models.storage import load_model


def next_logits(folder: Path, threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """The function from ids [N, T] to the logits [N, V] float64 of the token after them, on the CPU."""
    torch.set_num_threads(threads)
    model = load_model(folder, torch.device("cpu"))

    def logits(ids_NT: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            hidden_NTD = model.hidden(torch.as_tensor(ids_NT))
            return model.logits(hidden_NTD[:, -1:])[:, 0].double().numpy()

    return logits
