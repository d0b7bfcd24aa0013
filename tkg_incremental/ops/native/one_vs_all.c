/* Cross-entropy of queries against all entities known at their step, with the gradients of queries and tables.

   Some groups of queries, each of one step, are taken at a time. Their scores are written first. After the softmax, the
   vectors of a tile of entities are computed a second time, and their gradients go into those of the tables while they
   are in the cache. */
#include "exponential.h"
#include "formulas.h"
#include "product.h"

/* Entities at a time; and shares of the entities, which threads divide: as many for any number of threads, so that sums
   have the same bits. As in one_vs_all.py. */
enum { TILE = 48, SHARES = 4 };

/* Numbers that are the same for all groups. */
struct problem {
    int64_t kind, quads, width, stride; /* the stride of a row is its width, rounded up to LANES */
    float scale;
    const int64_t *order;
    const float *query, *true_scores;
    float *partition, *grad_query;
};

struct group {
    int64_t step, first, quads, entities; /* number of the step, first quad, quads, entities: the first of the order */
    int64_t queries, padded;              /* for tails, then for heads; rounded up to LANES */
    float *rows, *turned;                 /* the queries, [queries, stride] and [width, padded] */
    float *scores;                        /* [entities, padded] */
    float *factor;                        /* [padded] true scores, then what the softmax is multiplied by */
    float *gradients;                     /* [SHARES, queries, stride] */
};

INLINE int64_t round_up(int64_t number) { return (number + LANES - 1) / LANES * LANES; }

INLINE struct group group_of(const int64_t *given, int64_t width, float *room) {
    struct group group = {given[0], given[1], given[2], given[3]};
    group.queries = 2 * group.quads, group.padded = round_up(group.queries);
    group.rows = room;
    group.gradients = group.rows + group.padded * round_up(width);
    group.turned = group.gradients + SHARES * group.padded * round_up(width);
    group.factor = group.turned + width * group.padded;
    group.scores = group.factor + group.padded;
    return group;
}

INLINE int64_t query_of(const struct problem *of, const struct group *group, int64_t i) {
    return i < group->quads ? group->first + i : of->quads + group->first + i - group->quads;
}

FOR_EVERY_CPU
static void pack_queries(const struct problem *of, const struct group *group) {
    memset(group->rows, 0, sizeof(float) * (size_t)((1 + SHARES) * group->padded * of->stride));
    memset(group->turned, 0, sizeof(float) * (size_t)((of->width + 1) * group->padded));
    for (int64_t i = 0; i < group->queries; ++i) {
        const int64_t q = query_of(of, group, i);
        group->factor[i] = of->true_scores[q];
        memcpy(group->rows + i * of->stride, of->query + q * of->width, sizeof(float) * (size_t)of->width);
        for (int64_t j = 0; j < of->width; ++j) group->turned[j * group->padded + i] = of->query[q * of->width + j];
    }
}

/* The vectors of a tile, [count, stride], and their sines and cosines. */
INLINE void vectors_of_tile(const struct formula *by, const struct problem *of, const struct group *group, int64_t from,
                            int64_t count, float *vectors, float *kept) {
    for (int64_t i = 0; i < count; ++i) {
        fetch_rows(by, of->order[from + at_most(i + AHEAD, count - 1)]);
        write_vector(by, of->order[from + i], group->step, vectors + i * of->stride, kept + i * 2 * by->channels);
    }
}

FOR_EVERY_CPU
static void scores_of_tile(const struct formula *by, const struct problem *of, const struct group *group, int64_t from,
                           float *vectors, float *kept) {
    const int64_t count = at_most(TILE, group->entities - from);
    vectors_of_tile(by, of, group, from, count, vectors, kept);
    const struct matrix z = {vectors, of->stride, 1}, q = {group->turned, group->padded, 1};
    const struct matrix scores = {group->scores + from * group->padded, group->padded, 1};
    if (of->kind == DOT)
        multiply(DOT, 0, z, q, scores, count, of->width, group->padded);
    else
        multiply(L1, 0, z, q, scores, count, of->width, group->padded);
}

/* The scores of LANES queries become e^(score - peak). */
FOR_EVERY_CPU
static void softmax_of_lanes(const struct problem *of, const struct group *group, int64_t at) {
    float peak[LANES], total[LANES], *const scores = group->scores + at, *const factor = group->factor + at;
    memcpy(peak, factor, sizeof peak);
    for (int64_t n = 0; n < group->entities; ++n)
#pragma omp simd
        for (int j = 0; j < LANES; ++j) {
            const float score = scores[n * group->padded + j];
            peak[j] = score > peak[j] ? score : peak[j];
        }
#pragma omp simd
    for (int j = 0; j < LANES; ++j) total[j] = exponential(factor[j] - peak[j]);
    for (int64_t from = 0; from < group->entities; from += TILE) {
        float part[LANES] = {0}; /* sums of short sums lose fewer bits */
        for (int64_t n = from; n < at_most(from + TILE, group->entities); ++n)
#pragma omp simd
            for (int j = 0; j < LANES; ++j) {
                const float value = exponential(scores[n * group->padded + j] - peak[j]);
                scores[n * group->padded + j] = value;
                part[j] += value;
            }
        for (int j = 0; j < LANES; ++j) total[j] += part[j];
    }
    for (int64_t j = 0; j < at_most(LANES, group->queries - at); ++j) {
        of->partition[query_of(of, group, at + j)] = peak[j] + logf(total[j]);
        factor[j] = of->scale / total[j];
    }
}

/* Adds to `out` the gradients by the rows x of Σ weight · score for distances. */
INLINE void add_signs(struct matrix x, struct matrix y, struct matrix weight, struct matrix out, int64_t rows,
                      int64_t depth, int64_t width) {
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t l = 0; l < depth; l += 4) {
            const float *some[4];
            float w[4];
            for (int k = 0; k < 4; ++k) {
                some[k] = y.values + at_most(l + k, depth - 1) * y.row;
                w[k] = l + k < depth ? weight.values[i * weight.row + (l + k) * weight.column] : 0.0f;
            }
            some_gradients(L1, 4, x.values + i * x.row, some, w, width, out.values + i * out.row);
        }
}

FOR_EVERY_CPU
static void gradients_of_tile(const struct formula *by, const struct problem *of, const struct group *group,
                              int64_t from, int64_t share, const struct gradients *out, float *normal, float *vectors,
                              float *kept) {
    const int64_t count = at_most(TILE, group->entities - from), stride = of->stride, padded = group->padded;
    float *const scores = group->scores + from * padded, *const factor = group->factor;
    vectors_of_tile(by, of, group, from, count, vectors, kept);
    for (int64_t n = 0; n < count; ++n)
#pragma omp simd
        for (int64_t i = 0; i < padded; ++i) scores[n * padded + i] *= factor[i];
    const struct matrix z = {vectors, stride, 1}, by_z = {vectors + TILE * stride, stride, 1};
    const struct matrix q = {group->rows, stride, 1}, by_q = {group->gradients + share * padded * stride, stride, 1};
    const struct matrix weight = {scores, padded, 1}, turned = {scores, 1, padded};
    if (of->kind == DOT) {
        multiply(DOT, 1, turned, z, by_q, group->queries, count, stride);
        multiply(DOT, 0, weight, q, by_z, count, group->queries, stride);
    } else {
        memset(by_z.values, 0, sizeof(float) * (size_t)(count * stride));
        add_signs(q, z, turned, by_q, group->queries, count, of->width);
        add_signs(z, q, weight, by_z, count, group->queries, of->width);
    }
    for (int64_t i = 0; i < count; ++i) {
        fetch_gradients(by, of->order[from + at_most(i + AHEAD, count - 1)], out);
        add_vector_gradient(by, of->order[from + i], group->step, by_z.values + i * stride, out, normal,
                            kept + i * 2 * by->channels);
    }
}

FOR_EVERY_CPU
static void sum_shares(const struct problem *of, const struct group *group) {
    for (int64_t i = 0; i < group->queries; ++i) {
        float *const out = of->grad_query + query_of(of, group, i) * of->width;
        for (int64_t share = 0; share < SHARES; ++share) {
            const float *part = group->gradients + (share * group->padded + i) * of->stride;
#pragma omp simd
            for (int64_t j = 0; j < of->width; ++j) out[j] = share ? out[j] + part[j] : part[j];
        }
    }
}

/* Queries and their gradients [2, quads, width], for tails and for heads; groups [count, 4]: see struct group. masked:
   (quad, place in the order) pairs for tails and then for heads, by ascending quad; those of side i in group g begin at
   starts[i, g].
   partition [2, quads]: logarithms of the sums of exponentials. normals [SHARES, steps, width] are to be summed.

   room [at_a_time, floats], of which each group takes what it needs; tiles [SHARES, TILE · 2 · (stride + channels)]. */
EXPORT void one_vs_all_at_steps(int64_t kind, const int64_t *formula, const int64_t *order, const int64_t *groups,
                                int64_t count, const int64_t *masked, const int64_t *starts, int64_t quads,
                                const float *scale, const float *query, const float *true_scores, float *partition,
                                float *grad_query, const int64_t *gradients, float *normals, int64_t steps, float *room,
                                int64_t at_a_time, int64_t floats, float *tiles, int64_t threads) {
    const struct formula by = formula_of(formula);
    const struct gradients out = gradients_at(gradients);
    const int64_t stride = round_up(by.width), tile = TILE * 2 * (stride + by.channels);
    const struct problem of = {kind, quads, by.width, stride, *scale, order, query, true_scores, partition, grad_query};
#pragma omp parallel num_threads((int)threads)
    for (int64_t begin = 0; begin < count; begin += at_a_time) {
        const int64_t some = at_most(at_a_time, count - begin);
        int64_t most = 0;
        for (int64_t g = begin; g < begin + some; ++g) most = groups[4 * g + 3] > most ? groups[4 * g + 3] : most;
        const int64_t tiles_of_all = (most + TILE - 1) / TILE;
#pragma omp for schedule(static)
        for (int64_t g = 0; g < some; ++g) {
            const struct group group = group_of(groups + 4 * (begin + g), by.width, room + g * floats);
            pack_queries(&of, &group);
        }
#pragma omp for schedule(dynamic)
        for (int64_t share = 0; share < SHARES; ++share)
            for (int64_t t = tiles_of_all * share / SHARES; t < tiles_of_all * (share + 1) / SHARES; ++t)
                for (int64_t g = 0; g < some; ++g) {
                    const struct group group = group_of(groups + 4 * (begin + g), by.width, room + g * floats);
                    float *const mine = tiles + share * tile;
                    if (t * TILE < group.entities)
                        scores_of_tile(&by, &of, &group, t * TILE, mine, mine + 2 * TILE * stride);
                }
#pragma omp for schedule(dynamic)
        for (int64_t g = 0; g < some; ++g) {
            const struct group group = group_of(groups + 4 * (begin + g), by.width, room + g * floats);
            for (int64_t side = 0; side < 2; ++side)
                for (int64_t k = starts[side * (count + 1) + begin + g]; k < starts[side * (count + 1) + begin + g + 1]; ++k)
                    group.scores[masked[2 * k + 1] * group.padded + masked[2 * k] - group.first + side * group.quads] =
                        -INFINITY;
            for (int64_t at = 0; at < group.padded; at += LANES) softmax_of_lanes(&of, &group, at);
        }
#pragma omp for schedule(dynamic)
        for (int64_t share = 0; share < SHARES; ++share)
            for (int64_t t = tiles_of_all * share / SHARES; t < tiles_of_all * (share + 1) / SHARES; ++t)
                for (int64_t g = 0; g < some; ++g) {
                    const struct group group = group_of(groups + 4 * (begin + g), by.width, room + g * floats);
                    float *const mine = tiles + share * tile;
                    float *const normal = normals ? normals + (share * steps + group.step) * by.width : 0;
                    if (t * TILE < group.entities)
                        gradients_of_tile(&by, &of, &group, t * TILE, share, &out, normal, mine,
                                          mine + 2 * TILE * stride);
                }
#pragma omp for schedule(static)
        for (int64_t g = 0; g < some; ++g) {
            const struct group group = group_of(groups + 4 * (begin + g), by.width, room + g * floats);
            sum_shares(&of, &group);
        }
    }
}
