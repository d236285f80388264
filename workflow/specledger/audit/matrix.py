"""Which rows an audit of the workflow has: the modes of each system that its configuration names."""

import json
from dataclasses import dataclass, field

from specledger.audit.exact import SPANS
from specledger.audit.settings import SamplingSettings
from specledger.audit.workers import registry
from specledger.foundation.errors import UserError
from specledger.foundation.records import hash_text

TESTS = len(SPANS) + 1  # of a row: the spans and the score
LONG = 24  # tokens of the prompt `long`, a piece of the text in which a look-up finds something
ROOM = 48  # tokens of a model's context that the longest prompt, its text and the draft tokens behind it take


@dataclass(frozen=True, kw_only=True)
class Row:
    """One mode of one system, sampled after one prompt.

    prompt: `start`, the configuration's, or `long`; draft: whether the draft model proposes, so that the score test
    means something; own_vocabulary: of a target that the system brings itself and whose logits it is asked for, or 0.
    """

    system: str
    mode: str
    prompt: str = "start"
    control: str = ""
    options: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    draft: bool = True
    own_vocabulary: int = 0

    @property
    def greedy(self) -> bool:
        """Are its texts compared, prompt by prompt, rather than counted?"""
        return self.settings.get("temperature") == 0

    @property
    def counted(self) -> bool:
        """Is it held against an exact distribution of our target's, which other rows may share?"""
        return not self.greedy and not self.own_vocabulary

    @property
    def order(self) -> str:
        return registry.adapter(self.system).ORDER

    def sampling(self, audit: dict) -> SamplingSettings:
        return SamplingSettings(**self.settings, tokens=audit["tokens"], seed=audit["seed"])

    def tree(self, audit: dict) -> str:
        """The name of the exact distribution that the row is held against; rows with the same one share it."""
        sampling = {**self.sampling(audit).named(), "seed": None, "order": self.order if self.settings else ""}
        return f"{self.prompt}-{hash_text(json.dumps(sampling, sort_keys=True))[:10]}"


def rows_of(audit: dict, context: int = ROOM) -> list[Row]:
    """The rows in their order; UserError for a mode that a system doesn't have, and for too short a context."""
    if context < ROOM:
        raise UserError(f"config model.context: {context} — an audit's prompts and texts need at least {ROOM}")
    found = []
    for system, wanted in audit["systems"].items():
        modes = registry.adapter(system).MODES
        for mode in modes if wanted == "all" else wanted:
            if mode not in modes:
                allowed = f"allowed: all, or a list of {', '.join(modes)}"
                raise UserError(f"config audit.systems.{system}: {mode} — {allowed}")
            found.append(Row(system=system, mode=mode, **modes[mode]))
    if not found:
        raise UserError("config audit.systems: names no mode of any system — give one of them the value all")
    return found


def family_of(rows: list[Row]) -> int:
    """Tests that share the level, rounded up to a power of two: one mode more then changes no other row."""
    return 1 << (TESTS * len(rows) - 1).bit_length()
