"""The target of one text: a forward pass, its distributions, the rule and the draws, each clocked.

Shapes: G draft tokens (nodes of a tree), V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from specledger.decoding.counts import Clock
from specledger.decoding.engines import Engine
from specledger.decoding.proposals import Decision, Proposal
from specledger.decoding.rules import Found, Rules
from specledger.models.arrays import to_host
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms
from specledger.theory.trees import Tree


def judged(
    rules: Rules, sampling: Sampling, logits_TV: np.ndarray, proposal: Proposal, tree: Tree, uniforms: Uniforms
) -> Found:
    """The verdict on a round's draft tokens from the target's logits after the text and after each of them."""
    probs_TV = rules.distribution(logits_TV, sampling)
    accept_G, extra = uniforms.accept.random(len(proposal.tokens)), uniforms.extra.random()
    if proposal.typical:
        return rules.typical(probs_TV, proposal.tokens, extra, tree)
    return rules.verify(probs_TV, proposal.probs_GV, proposal.tokens, accept_G, extra, tree)


class Verifier:
    """The target of one text of at most `capacity` tokens; rounds hold at most `gamma` draft tokens."""

    def __init__(self, engine: Engine, target: Llama, sampling: Sampling, capacity: int, *, gamma: int):
        # The nodes of a tree may be more than the tokens that are left.
        self.session, self.sampling = engine.open(target, capacity + gamma), sampling
        self.rules = engine.rules

    def sample(self, tokens: Sequence[int], uniforms: Uniforms, clock: Clock) -> int:
        """The token after `tokens` by plain decoding."""
        logits_TV = self.session.forward(tokens, rows=1).logits_TV
        clock.lap("verify")
        logits_TV = to_host(logits_TV)
        clock.lap("sync")
        return self.rules.draw(self.rules.distribution(logits_TV, self.sampling)[0], uniforms.extra.random())

    def verify(self, tokens: Sequence[int], proposal: Proposal, uniforms: Uniforms, clock: Clock) -> Decision:
        """The verdict on draft tokens after `tokens`; of a tree the accepted path stays in the cache."""
        drafted, line = len(proposal.tokens), proposal.tree is None
        tree = Tree.chain(drafted) if line else proposal.tree
        if line:
            output = self.session.forward([*tokens, *proposal.tokens], rows=drafted + 1)
        else:
            output = self.session.branch(tokens, proposal.tokens, tree)
        clock.lap("verify")
        logits_TV = to_host(output.logits_TV)
        clock.lap("sync")
        found = judged(self.rules, self.sampling, logits_TV, proposal, tree, uniforms)
        if line:
            path, accept_probs = range(found.last + 1), found.accept_probs
        else:
            path = tree.path(found.last)
            self.session.keep(path, drafted)
            before = len(output.hidden_TD) - drafted
            output = output.along((*range(before), *(before + node for node in path)))
            accept_probs = np.where(tree.examined(found.last), found.accept_probs, np.nan)
        return Decision(
            tokens=[*(proposal.tokens[node] for node in path), found.token],
            drafted=drafted,
            examined=len(path) + bool(tree.children[found.last]),
            accept_len=len(path),
            accept_probs=accept_probs,
            output=output,
        )

    def rollback(self, length: int) -> None:
        self.session.rollback(length)
