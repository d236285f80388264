// The formulas of specledger.theory, in the letters of Leviathan et al. 2023.

// Eq. (1) as the sum of its geometric series, which needs no special case at alpha = 1.
function tokensARound(alpha, gamma) {
  let sum = 0;
  for (let power = gamma; power >= 0; power -= 1) sum = sum * alpha + 1;
  return sum;
}

// Theorem 3.8.
const speedup = (alpha, gamma, c) => tokensARound(alpha, gamma) / (gamma * c + 1);

// Tokens x t_AR / (t_verify + gamma t_draft + overhead).
const measuredCost = ({ tokens, plain, verify, draft, gamma, overhead = 0 }) =>
  (tokens * plain) / (verify + gamma * draft + overhead);

// The gamma of the largest speed-up by Theorem 3.8; the smallest one on a tie.
function bestGamma(alpha, c, gammas) {
  return [...gammas].sort((a, b) => a - b).reduce((best, gamma) =>
    speedup(alpha, gamma, c) > speedup(alpha, best, c) ? gamma : best);
}

globalThis.specledger.theory = { tokensARound, speedup, measuredCost, bestGamma };
