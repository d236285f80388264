"""The target of one text, eagerly: a forward, its distributions, the rule and the draws, each clocked.

Shapes: G proposals, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from specledger.decoding.counts import Clock
from specledger.decoding.engines import TargetSession
from specledger.decoding.proposals import Decision, Proposal
from specledger.sampling.distributions import Sampling, distribution, draw
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import verify


class EagerJudge:
    """Whatever the engine, the distributions come to the host and go through `verify`."""

    def __init__(self, session: TargetSession, sampling: Sampling):
        self.session, self.sampling = session, sampling

    def sample(self, tokens: Sequence[int], uniforms: Uniforms, clock: Clock) -> int:
        """The token after `tokens` by plain decoding."""
        logits_TV = self.session.forward(tokens, rows=1).logits_TV
        clock.lap("verify")
        logits_V = logits_TV.cpu().numpy()[0]
        clock.lap("sync")
        return int(draw(distribution(logits_V, self.sampling), uniforms.extra.random()))

    def judge(self, tokens: Sequence[int], proposal: Proposal, uniforms: Uniforms, clock: Clock) -> Decision:
        """The verdict on proposals after `tokens`."""
        drafted = len(proposal.tokens)
        output = self.session.forward([*tokens, *proposal.tokens], rows=drafted + 1)
        clock.lap("verify")
        logits_GV = output.logits_TV.cpu().numpy()
        clock.lap("sync")
        verdict = verify(
            distribution(logits_GV, self.sampling)[None],
            proposal.probs_GV[None],
            np.array([proposal.tokens], dtype=np.int64),
            uniforms.accept.random((1, drafted)),
            uniforms.extra.random(1),
        )
        accept_len = int(verdict.accept_len_N[0])
        return Decision(
            tokens=[*proposal.tokens[:accept_len], int(verdict.token_N[0])],
            drafted=drafted,
            accept_len=accept_len,
            accept_probs=verdict.accept_probs_NG[0],
            output=output,
        )

    def rollback(self, length: int) -> None:
        self.session.rollback(length)
