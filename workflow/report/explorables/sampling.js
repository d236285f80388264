// Draws and the acceptance rule, as in specledger.sampling, and a generator whose seed gives the same numbers everywhere.

// Inverse-CDF draw from weights that need not sum to 1; a symbol without weight is never drawn.
function draw(weights, uniform) {
  let total = 0;
  const cumulative = weights.map((weight) => (total += weight));
  const threshold = uniform * total;
  const token = cumulative.filter((sum) => sum <= threshold).length;
  return Math.min(token, cumulative.filter((sum) => sum < total).length);
}

const residual = (p, q) => p.map((value, index) => Math.max(value - q[index], 0));
const beta = (p, q) => p.reduce((sum, value, index) => sum + Math.min(value, q[index]), 0);
const totalVariation = (p, q) => p.reduce((sum, value, index) => sum + Math.abs(value - q[index]), 0) / 2;

// One round: rows of p (one more than proposals), rows of q, and a uniform for each decision.
function verify(pRows, qRows, proposals, acceptUniforms, extraUniform) {
  let acceptLength = 0;
  while (
    acceptLength < proposals.length &&
    acceptUniforms[acceptLength] * qRows[acceptLength][proposals[acceptLength]] <
      pRows[acceptLength][proposals[acceptLength]]
  ) acceptLength += 1;
  const p = pRows[acceptLength];
  const weights = acceptLength < proposals.length ? residual(p, qRows[acceptLength]) : p;
  return { acceptLength, token: draw(weights, extraUniform) };
}

// xoshiro128** (Blackman & Vigna 2018), seeded by splitmix32; 53 bits a number.
function uniforms(seed) {
  let mixed = seed >>> 0;
  const word = () => {
    mixed = (mixed + 0x9e3779b9) >>> 0;
    let z = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  let [a, b, c, d] = [word(), word(), word(), word()];
  const turn = (value, by) => ((value << by) | (value >>> (32 - by))) >>> 0;
  const next = () => {
    const result = Math.imul(turn(Math.imul(b, 5) >>> 0, 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a; d ^= b; b ^= c; a ^= d; c ^= shifted;
    d = turn(d >>> 0, 11);
    [a, b, c] = [a >>> 0, b >>> 0, c >>> 0];
    return result;
  };
  return () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
}

globalThis.specledger.sampling = { draw, residual, beta, totalVariation, verify, uniforms };
