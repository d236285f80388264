// The engine `compiled` on a CPU: the few functions that a forward pass of these models and a round are made of.
//
// One thread, float32 for forward passes, float64 for probabilities. Vectors of 16 numbers are written with the
// compilers' vector extension, so that the same text compiles to AVX-512, AVX2, SSE or NEON.
// Shapes: R rows (positions), D width, H query heads, K key/value heads, E head width, S cached positions, V vocabulary.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

typedef float V16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t I16 __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int W = 16;

// ---------------------------------------------------------------- products

// A matrix [O, I] lies as blocks of 16 outputs [O/16][I][16]; the last block is filled up with zeros.
struct Matrix {
  const float* packed;
  const float* bias;  // [O/16 * 16], or null
  int64_t inputs, blocks;
};

template <int R, int B>
void tile(const float* x, int64_t ldx, const float* w, float* y, int64_t ldy, int64_t inputs) {
  V16 sum[R][B];
  for (int r = 0; r < R; r++)
    for (int b = 0; b < B; b++) sum[r][b] = V16{};
  for (int64_t i = 0; i < inputs; i++) {
    V16 column[B];
    for (int b = 0; b < B; b++) column[b] = *(const V16*)(w + (b * inputs + i) * W);
    for (int r = 0; r < R; r++) {
      const float value = x[r * ldx + i];
      for (int b = 0; b < B; b++) sum[r][b] += value * column[b];
    }
  }
  for (int r = 0; r < R; r++)
    for (int b = 0; b < B; b++) *(V16*)(y + r * ldy + b * W) = sum[r][b];
}

// As many blocks at once as registers hold sums for: 24 of AVX-512's 32, the rest hold weights.
template <int R>
void rows(const float* x, int64_t ldx, const Matrix& m, float* y, int64_t ldy) {
  constexpr int B = R <= 2 ? 8 : R <= 6 ? 4 : R <= 8 ? 3 : R <= 12 ? 2 : 1;
  int64_t b = 0;
  for (; b + B <= m.blocks; b += B) tile<R, B>(x, ldx, m.packed + b * m.inputs * W, y + b * W, ldy, m.inputs);
  for (; b < m.blocks; b++) tile<R, 1>(x, ldx, m.packed + b * m.inputs * W, y + b * W, ldy, m.inputs);
}

void product(const float* x, int64_t ldx, int64_t R, const Matrix& m, float* y, int64_t ldy) {
  float* first = y;
  for (int64_t left = R; left > 0;) {
    const int64_t now = left <= 12 ? left : left <= 24 ? (left + 1) / 2 : 12;
    switch (now) {
#define ROWS(n) case n: rows<n>(x, ldx, m, y, ldy); break;
      ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
#undef ROWS
    }
    x += now * ldx, y += now * ldy, left -= now;
  }
  if (m.bias)
    for (int64_t r = 0; r < R; r++)
      for (int64_t o = 0; o < m.blocks * W; o++) first[r * ldy + o] += m.bias[o];
}

// ---------------------------------------------------------------- the pieces of a block

// exp of 16 floats, relative error below 2e-7; NaN stays NaN (Cody and Waite's reduction, a polynomial of degree 6).
inline V16 exp16(V16 x) {
  const V16 low = V16{} - 87.0f, high = V16{} + 88.0f;
  x = x < low ? low : x;
  x = x > high ? high : x;
  const V16 n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const V16 r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  V16 p = V16{} + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const I16 power = (__builtin_convertvector(n, I16) + 127) << 23;
  V16 scale;
  std::memcpy(&scale, &power, sizeof scale);
  return p * scale;
}

inline float total(V16 x) {
  float sum = 0;
  for (int i = 0; i < W; i++) sum += x[i];
  return sum;
}

void norm(const float* x, int64_t R, int64_t D, const float* gain, float eps, float* y) {
  for (int64_t r = 0; r < R; r++, x += D, y += D) {
    V16 squares{};
    float rest = 0;
    int64_t d = 0;
    for (; d + W <= D; d += W) squares += *(const V16*)(x + d) * *(const V16*)(x + d);
    for (; d < D; d++) rest += x[d] * x[d];
    const float scale = 1.0f / std::sqrt((total(squares) + rest) / D + eps);
    for (d = 0; d < D; d++) y[d] = x[d] * scale * gain[d];
  }
}

// y = silu(gate) * up, both in one row of 2 F numbers
void gated(const float* both, int64_t R, int64_t F, int64_t ld, float* y, int64_t ldy) {
  for (int64_t r = 0; r < R; r++, both += ld, y += ldy) {
    int64_t f = 0;
    for (; f + W <= F; f += W) {
      const V16 g = *(const V16*)(both + f), u = *(const V16*)(both + F + f);
      *(V16*)(y + f) = g / (1.0f + exp16(-g)) * u;
    }
    for (; f < F; f++) y[f] = both[f] / (1.0f + std::exp(-both[f])) * both[F + f];
  }
}

struct Block {
  const float *attention_gain, *mlp_gain;
  Matrix qkv, out, gate_up, down;
};

// Keys lie transposed [K][E][S], so that 16 positions are scored at once; values [K][S][E].
struct View {
  float *keys, *values;      // of the first layer
  int64_t layer, capacity;   // numbers of a layer; S, a multiple of 16
  int64_t start, stop;       // attended positions; the last R of them are new
  const float *cos, *sin;    // [positions, E]
  const int64_t* places;     // [R], rows of the tables
  const uint8_t* mask;       // [R, stop - start] of what a row sees, or null where each sees all
  int64_t heads, kv_heads, head_width, context;
};

void turn(float* x, int64_t heads, int64_t E, const float* cos, const float* sin) {
  const int64_t half = E / 2;
  for (int64_t h = 0; h < heads; h++, x += E)
    for (int64_t e = 0; e < half; e++) {
      const float a = x[e], b = x[e + half];
      x[e] = a * cos[e] - b * sin[e];
      x[e + half] = b * cos[e + half] + a * sin[e + half];
    }
}

// out [R, H E] from q, k, v in rows of (H + 2 K) E numbers
void attend(float* qkv, int64_t ld, int64_t R, const View& v, int64_t index, float* scores, float* out, int64_t ldo) {
  const int64_t E = v.head_width, H = v.heads, K = v.kv_heads, S = v.capacity, group = H / K;
  float *keys = v.keys + index * v.layer, *values = v.values + index * v.layer;
  for (int64_t r = 0; r < R; r++) {
    float* row = qkv + r * ld;
    turn(row, H + K, E, v.cos + v.places[r] * E, v.sin + v.places[r] * E);
    const int64_t at = v.stop - R + r;
    for (int64_t k = 0; k < K; k++) {
      for (int64_t e = 0; e < E; e++) keys[(k * E + e) * S + at] = row[(H + k) * E + e];
      std::memcpy(values + (k * S + at) * E, row + (H + K + k) * E, E * sizeof(float));
    }
  }
  const int64_t count = v.stop - v.start, wide = (count + W - 1) / W * W;
  const float scale = 1.0f / std::sqrt((float)E);
  for (int64_t r = 0; r < R; r++)
    for (int64_t h = 0; h < H; h++) {
      const float *q = qkv + r * ld + h * E, *k = keys + h / group * E * S + v.start;
      float most = -INFINITY;
      for (int64_t s = 0; s < wide; s += W) {
        V16 sum{};
        for (int64_t e = 0; e < E; e++) sum += q[e] * *(const V16*)(k + e * S + s);
        *(V16*)(scores + s) = sum * scale;
      }
      const uint8_t* sees = v.mask ? v.mask + r * count : nullptr;
      for (int64_t s = 0; s < wide; s++) {
        if (s >= count || (sees && !sees[s])) scores[s] = -INFINITY;
        most = scores[s] > most ? scores[s] : most;
      }
      V16 sums{};
      for (int64_t s = 0; s < wide; s += W) {
        const V16 below = *(const V16*)(scores + s) - most;
        V16 one = exp16(below);
        one = below < -86.0f ? V16{} : one;  // what a row doesn't see weighs nothing at all
        *(V16*)(scores + s) = one;
        sums += one;
      }
      const float whole = 1.0f / total(sums);
      float* y = out + r * ldo + h * E;
      const float* value = values + (h / group * S + v.start) * E;
      int64_t e = 0;
      for (; e + 2 * W <= E; e += 2 * W) {
        V16 a{}, b{};
        for (int64_t s = 0; s < count; s++) {
          a += scores[s] * *(const V16*)(value + s * E + e);
          b += scores[s] * *(const V16*)(value + s * E + e + W);
        }
        *(V16*)(y + e) = a * whole, *(V16*)(y + e + W) = b * whole;
      }
      for (; e + W <= E; e += W) {
        V16 a{};
        for (int64_t s = 0; s < count; s++) a += scores[s] * *(const V16*)(value + s * E + e);
        *(V16*)(y + e) = a * whole;
      }
      for (; e < E; e++) {
        float a = 0;
        for (int64_t s = 0; s < count; s++) a += scores[s] * value[s * E + e];
        y[e] = a * whole;
      }
    }
}

// ---------------------------------------------------------------- distributions and the rule, as in sampling/

typedef double D8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t L8 __attribute__((vector_size(64), aligned(8), may_alias));

// exp of 8 doubles, wrong by at most 2 units in the last place; NaN stays NaN (the same reduction, Taylor's terms to 13)
inline D8 exp8(D8 x) {
  for (int i = 0; i < 8; i++)
    if (x[i] < -708.0) {  // results below the normal range, where scaling by a power of two fails
      for (int j = 0; j < 8; j++) x[j] = std::exp(x[j]);
      return x;
    }
  const D8 magic = D8{} + 6755399441055744.0;
  const D8 shifted = x * 1.4426950408889634 + magic, n = shifted - magic;
  const D8 r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  D8 p = D8{} + 1.0 / 6227020800.0;
  for (double term : {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0,
                      1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0})
    p = p * r + term;
  L8 power;
  std::memcpy(&power, &shifted, sizeof power);
  power <<= 52;  // what the addition left in the low bits is n
  L8 bits;
  std::memcpy(&bits, &p, sizeof bits);
  bits += power;
  std::memcpy(&p, &bits, sizeof p);
  return p;
}

// exp of `count` doubles in place, and their sum
double exp_all(double* x, int64_t count) {
  int64_t i = 0;
  D8 sums{};
  for (; i + 8 <= count; i += 8) {
    const D8 one = exp8(*(const D8*)(x + i));
    *(D8*)(x + i) = one;
    sums += one;
  }
  double sum = 0;
  for (int j = 0; j < 8; j++) sum += sums[j];
  for (; i < count; i++) sum += x[i] = std::exp(x[i]);
  return sum;
}

bool has_nan(const float* x, int64_t count) {
  int found = 0;
  for (int64_t i = 0; i < count; i++) found |= x[i] != x[i];
  return found;
}

int64_t draw(const double* weights, int64_t V, double uniform, double* mass = nullptr) {
  double sum = 0;
  for (int64_t v = 0; v < V; v++) sum += weights[v];
  if (mass) *mass = sum;
  const double wanted = uniform * sum;
  double reached = 0;
  int64_t last = 0;
  for (int64_t v = 0; v < V; v++) {
    reached += weights[v];
    if (weights[v] > 0) {
      last = v;
      if (reached > wanted) return v;
    }
  }
  return last;
}

// p - q, right where both are nearly certain: at the likeliest symbol of p the sum of q - p over all others
void difference(const double* p, const double* q, int64_t V, double* out) {
  const int64_t top = std::max_element(p, p + V) - p;
  double others = 0;
  for (int64_t v = 0; v < V; v++) {
    out[v] = p[v] - q[v];
    if (v != top) others += out[v];
  }
  out[top] = -others;
}

// The settings of a `Sampling`: 0 for top_k and negative numbers for top_p and min_p stand for none.
struct Warpers {
  double temperature, top_p, min_p;
  int64_t top_k;
};

// probs [R, V] of logits [R, ld], as `sampling.distributions.distribution`. Returns the first row whose largest logit
// is not finite, or -1.
int64_t distribution(const float* logits, int64_t R, int64_t ld, int64_t V, const Warpers& w, double* probs) {
  const auto [temperature, top_p, min_p, top_k] = w;
  static thread_local std::vector<double> sorted;
  for (int64_t r = 0; r < R; r++, logits += ld, probs += V) {
    double top = -INFINITY;
    int64_t first = 0;
    for (int64_t v = 0; v < V; v++)
      if (logits[v] > top) top = logits[v], first = v;
    if (!std::isfinite(top) || has_nan(logits, V)) return r;
    double least = -INFINITY;  // log weights below it are cut
    for (int64_t v = 0; v < V; v++) probs[v] = logits[v] - top;
    if (temperature == 0) {
      for (int64_t v = 0; v < V; v++) probs[v] = v == first ? 0.0 : -INFINITY;
    } else if (temperature != 1) {
      for (int64_t v = 0; v < V; v++) probs[v] /= temperature;
    }
    if (top_k > 0 && top_k < V) {
      sorted.assign(probs, probs + V);
      std::nth_element(sorted.begin(), sorted.begin() + (top_k - 1), sorted.end(), std::greater<double>());
      least = sorted[top_k - 1];
      for (int64_t v = 0; v < V; v++) probs[v] = probs[v] < least ? -INFINITY : probs[v];
    }
    if (top_p >= 0 && top_p < 1) {
      sorted.assign(probs, probs + V);
      std::sort(sorted.begin(), sorted.end(), std::greater<double>());
      std::vector<double> weights = sorted;
      const double whole = exp_all(weights.data(), V);
      double sum = 0;
      least = sorted[0];
      for (int64_t v = 0; v + 1 < V; v++) {
        sum += weights[v];
        if (!(sum < top_p * whole)) break;
        least = sorted[v + 1];
      }
      for (int64_t v = 0; v < V; v++) probs[v] = probs[v] < least ? -INFINITY : probs[v];
    }
    if (min_p >= 0) {
      least = std::log(min_p);
      for (int64_t v = 0; v < V; v++) probs[v] = probs[v] < least ? -INFINITY : probs[v];
    }
    const double sum = exp_all(probs, V);
    for (int64_t v = 0; v < V; v++) probs[v] /= sum;
  }
  return -1;
}

// `count` blocks over x [R, D], in place; `before` [R, D] takes the stream before the last of them, unless null.
// `work` holds R * (D + max(qkv, gate_up, down) columns + max(H E, F)) + S + 64 numbers.
void run_blocks(float* x, int64_t R, int64_t D, const Block* blocks, int64_t count, int64_t first, const View& view,
                float eps, float* before, float* work) {
  for (int64_t n = 0; n < count; n++) {
    const Block& b = blocks[n];
    if (before && n == count - 1) std::memcpy(before, x, R * D * sizeof(float));
    float* normed = work;
    float* wide = normed + R * D;
    const int64_t ldq = b.qkv.blocks * W, ldg = b.gate_up.blocks * W, ldd = b.down.blocks * W, ldo = b.out.blocks * W;
    float* narrow = wide + R * (ldq > ldg ? ldq : ldg);
    const int64_t mixed = b.out.inputs, F = b.down.inputs, most = mixed > F ? mixed : F;
    float* added = narrow + R * most;
    float* scores = added + R * (ldd > ldo ? ldd : ldo);
    norm(x, R, D, b.attention_gain, eps, normed);
    product(normed, D, R, b.qkv, wide, ldq);
    attend(wide, ldq, R, view, first + n, scores, narrow, mixed);
    product(narrow, mixed, R, b.out, added, ldo);
    for (int64_t r = 0; r < R; r++)
      for (int64_t d = 0; d < D; d++) x[r * D + d] += added[r * ldo + d];
    norm(x, R, D, b.mlp_gain, eps, normed);
    product(normed, D, R, b.gate_up, wide, ldg);
    gated(wide, R, F, ldg, narrow, F);
    product(narrow, F, R, b.down, added, ldd);
    for (int64_t r = 0; r < R; r++)
      for (int64_t d = 0; d < D; d++) x[r * D + d] += added[r * ldd + d];
  }
}

// A whole model: its embedding [V, D], blocks, final norm and output head.
struct Model {
  const float* embedding;
  const Block* blocks;
  const float* gain;
  Matrix head;
  int64_t layers, width, vocabulary;
  float eps;
};

// Embedding, blocks and, of the last `rows` positions, logits [rows, ld of the head]; x and before [R, D]
void run_model(const Model& m, const View& view, const int64_t* tokens, int64_t R, int64_t rows, float* x, float* before,
               float* logits, float* work) {
  const int64_t D = m.width;
  for (int64_t r = 0; r < R; r++) std::memcpy(x + r * D, m.embedding + tokens[r] * D, D * sizeof(float));
  run_blocks(x, R, D, m.blocks, m.layers, 0, view, m.eps, before, work);
  norm(x + (R - rows) * D, rows, D, m.gain, m.eps, work);
  product(work, D, rows, m.head, logits, m.head.blocks * W);
}

}  // namespace

extern "C" {

int64_t specledger_distribution(const float* logits, int64_t R, int64_t ld, int64_t V, const Warpers* w, double* probs) {
  return distribution(logits, R, ld, V, *w, probs);
}

int64_t specledger_draw(const double* weights, int64_t V, double uniform) { return draw(weights, V, uniform); }

// Up to K different tokens from q [V], without replacement, and the row that each is drawn from [K, V]; as
// `sampling.distributions.draw_siblings`. Returns how many there are.
int64_t specledger_siblings(const double* q, int64_t V, int64_t K, const double* uniforms, int64_t* tokens, double* rows) {
  for (int64_t k = 0; k < K; k++) {
    double* row = rows + k * V;
    std::memcpy(row, k ? row - V : q, V * sizeof(double));
    if (k) {
      row[tokens[k - 1]] = 0;
      double sum = 0;
      for (int64_t v = 0; v < V; v++) sum += row[v];
      if (!(sum > 0)) return k;
      for (int64_t v = 0; v < V; v++) row[v] /= sum;
    }
    tokens[k] = draw(row, V, uniforms[k]);
  }
  return K;
}

// The rule for one round, as `sampling.rule.accept`: p [G + 1, V], q [G, V], the parents of nodes that lie level by level.
// found: last, token. accept_probs [G]: NaN for later siblings that the round didn't come to. Returns the mass that the
// token was drawn from, NaN where a row of q gives its own token nothing.
double specledger_accept(const double* p, const double* q, const int64_t* tokens, const int64_t* parents, int64_t G,
                         int64_t V, const double* uniforms, double extra, int64_t* found, double* accept_probs) {
  static thread_local std::vector<double> held, rest, of_last;
  held.resize(V), rest.resize(V);
  int64_t last = -1;
  bool possible = true;
  of_last.assign(p, p + V);
  for (int64_t parent = -1; parent < G; parent++) {
    bool open = parent == last, first = true;  // has the walk come to this parent, and is no child accepted yet?
    if (open) of_last.assign(p + (parent + 1) * V, p + (parent + 2) * V);
    for (int64_t node = parent + 1; node < G; node++) {
      if (parents[node] != parent) continue;
      const int64_t token = tokens[node];
      const double* row = q + node * V;
      possible = possible && row[token] > 0;
      if (first) {
        held.assign(p + (parent + 1) * V, p + (parent + 2) * V);
      } else if (!open) {
        accept_probs[node] = NAN;
        continue;
      } else {
        double sum = 0;
        for (double one : rest) sum += one;
        if (!(sum > 0)) sum = 1;
        for (int64_t v = 0; v < V; v++) held[v] = rest[v] / sum;
      }
      first = false;
      accept_probs[node] = std::min(1.0, held[token] / row[token]);
      if (!open) continue;
      difference(held.data(), row, V, rest.data());
      if (uniforms[node] * row[token] < held[token] || rest[token] >= 0) {
        open = false, last = node;
      } else {
        for (int64_t v = 0; v < V; v++) rest[v] = std::max(rest[v], 0.0);
        of_last = rest;
      }
    }
  }
  double mass = 0;
  found[0] = last;
  found[1] = draw(of_last.data(), V, extra, &mass);
  return possible ? mass : NAN;
}

// y [R, blocks * 16] = x [R, inputs] times the matrix
void specledger_linear(const float* x, int64_t R, const Matrix* m, float* y) {
  product(x, m->inputs, R, *m, y, m->blocks * W);
}

void specledger_norm(const float* x, int64_t R, int64_t D, const float* gain, float eps, float* y) {
  norm(x, R, D, gain, eps, y);
}

// y [R, blocks * 16]: a norm and then a product; `work` holds R * D numbers
void specledger_normed_linear(const float* x, int64_t R, int64_t D, const float* gain, float eps, const Matrix* m, float* y,
                              float* work) {
  norm(x, R, D, gain, eps, work);
  product(work, D, R, *m, y, m->blocks * W);
}

void specledger_blocks(float* x, int64_t R, int64_t D, const Block* blocks, int64_t count, int64_t first, const View* view,
                       float eps, float* before, float* work) {
  run_blocks(x, R, D, blocks, count, first, *view, eps, before, work);
}

void specledger_model(const Model* m, const View* view, const int64_t* tokens, int64_t R, int64_t rows, float* x,
                      float* before, float* logits, float* work) {
  run_model(*m, *view, tokens, R, rows, x, before, logits, work);
}

// A chain of at most G draft tokens after `tokens` [R], of which the view holds the first forward pass: drawn one by one,
// each from its row of probs [G, V]. Ends after a token that got less than `threshold`. `work` holds what `run_model`
// asks for, 2 R D numbers and a row of logits more. Returns how many there are, or -1 - g where row g was none.
int64_t specledger_chain(const Model* m, const View* first, const int64_t* tokens, int64_t R, int64_t G, const Warpers* w,
                         const double* uniforms, double threshold, int64_t* drawn, double* probs, float* work) {
  View view = *first;
  const int64_t D = m->width, V = m->vocabulary;
  float *x = work, *before = x + R * D, *logits = before + R * D, *rest = logits + m->head.blocks * W;
  int64_t place = 0;
  for (int64_t g = 0; g < G; g++) {
    run_model(*m, view, g ? &drawn[g - 1] : tokens, g ? 1 : R, 1, x, before, logits, rest);
    double* row = probs + g * V;
    if (distribution(logits, 1, 0, V, *w, row) >= 0) return -1 - g;
    drawn[g] = draw(row, V, uniforms[g]);
    if (row[drawn[g]] < threshold) return g + 1;
    place = g ? place + 1 : view.places[R - 1] + 1;
    view.places = &place, view.mask = nullptr, view.stop++;
    view.start = std::max<int64_t>(0, view.stop - first->context);
  }
  return G;
}

}  // extern "C"
