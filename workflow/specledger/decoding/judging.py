"""The target of one text, eagerly: a forward, its distributions, the rule and the draws, each clocked.

Shapes: G proposals, N nodes of a tree, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from specledger.decoding.counts import Clock
from specledger.decoding.engines import TargetSession
from specledger.decoding.proposals import Decision, Proposal
from specledger.sampling.distributions import Sampling, distribution, draw
from specledger.sampling.layout import Layout
from specledger.sampling.typical import typical
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
        if proposal.tree is not None:
            return self._judge_tree(tokens, proposal, uniforms, clock)
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
            examined=min(accept_len + 1, drafted),
            accept_len=accept_len,
            accept_probs=verdict.accept_probs_NG[0],
            output=output,
        )

    def _judge_tree(self, tokens: Sequence[int], proposal: Proposal, uniforms: Uniforms, clock: Clock) -> Decision:
        """The same for a tree: one forward over all of its nodes, of which the accepted path stays in the cache."""
        tree, drafted = proposal.tree, len(proposal.tokens)
        output = self.session.branch(tokens, proposal.tokens, tree)
        clock.lap("verify")
        logits_NV = output.logits_TV.cpu().numpy()
        clock.lap("sync")
        probs_1NV = distribution(logits_NV, self.sampling)[None]
        proposed_1N = np.array([proposal.tokens], dtype=np.int64)
        accept_1N, extra_1 = uniforms.accept.random((1, drafted)), uniforms.extra.random(1)
        if proposal.typical:
            verdict = typical(probs_1NV, proposed_1N, extra_1, tree)
        else:
            verdict = verify(probs_1NV, proposal.probs_GV[None], proposed_1N, accept_1N, extra_1, tree)
        last = int(verdict.last_N[0])
        path = tree.path(last)
        self.session.keep(path, drafted)
        line = len(output.hidden_TD) - drafted
        return Decision(
            tokens=[*(proposal.tokens[node] for node in path), int(verdict.token_N[0])],
            drafted=drafted,
            examined=len(path) + bool(tree.children[last]),
            accept_len=len(path),
            accept_probs=np.where(Layout.of(tree).examined_RG[last + 1], verdict.accept_probs_NG[0], np.nan),
            output=output.along((*range(line), *(line + node for node in path))),
        )

    def rollback(self, length: int) -> None:
        self.session.rollback(length)
