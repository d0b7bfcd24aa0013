/* Scores of queries against samples of entities at the query's step, and their gradients, one step after the other: the
   vectors of one step stay in the cache until they are no longer needed. */
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "formulas.h"
#include "similarity.h"

/* Gives the distinct rows in the lists of a step slots, in the order in which they are met. Lists are [lists, samples];
   those of step s are by_step[starts[s] … starts[s + 1] - 1]. Writes the slot of each sample, the rows by slot from
   used[starts[s] · samples] on, and the number of slots of each step. slot_of [rows of the table] has to be -1. */
EXPORT void assign_slots(const int64_t *index, const int64_t *by_step, const int64_t *starts, int64_t steps,
                         int64_t samples, int64_t *slot_of, int64_t *slots, int64_t *used, int64_t *counts,
                         int64_t threads) {
    (void)threads;
    for (int64_t s = 0; s < steps; ++s) {
        int64_t *const rows = used + starts[s] * samples, count = 0;
        for (int64_t i = starts[s]; i < starts[s + 1]; ++i) {
            const int64_t *list = index + by_step[i] * samples;
            int64_t *const out = slots + by_step[i] * samples;
            for (int64_t k = 0; k < samples; ++k) {
                int64_t slot = slot_of[list[k]];
                if (slot < 0) {
                    slot = slot_of[list[k]] = count;
                    rows[count++] = list[k];
                }
                out[k] = slot;
            }
        }
        for (int64_t i = 0; i < count; ++i) slot_of[rows[i]] = -1;
        counts[s] = count;
    }
}

/* How samples refer to vectors: lists [lists, samples] of rows, and what `assign_slots` found. The queries of step s are
   queries[starts[s] … starts[s + 1] - 1]; query q is of step step_of[q] and has the list list_of[q], or q. */
struct samples {
    const int64_t *index, *slots, *used, *counts, *list_starts, *list_of, *queries, *starts, *step_of;
    int64_t steps, samples;
};

INLINE struct samples samples_of(const int64_t *given) {
    return (struct samples){(const int64_t *)given[0], (const int64_t *)given[1], (const int64_t *)given[2],
                            (const int64_t *)given[3], (const int64_t *)given[4], (const int64_t *)given[5],
                            (const int64_t *)given[6], (const int64_t *)given[7], (const int64_t *)given[8],
                            given[9],                  given[10]};
}

INLINE int64_t list_of(const struct samples *of, int64_t q) { return (of->list_of ? of->list_of[q] : q) * of->samples; }

FOR_EVERY_CPU
static void vectors_of(const struct formula *by, const int64_t *rows, int64_t s, int64_t count, float *out) {
    for (int64_t u = 0; u < count; ++u) {
        if (u + AHEAD < count) fetch_rows(by, rows[u + AHEAD]);
        write_vector(by, rows[u], s, out + u * by->width, 0);
    }
}

FOR_EVERY_CPU
static void scores_of(int64_t kind, const float *q, const float *vectors, const int64_t *slots, int64_t samples,
                      int64_t width, float *out) {
    scores_of_query(kind, q, vectors, slots, out, samples, width);
}

FOR_EVERY_CPU
static void gradient_of_query(int64_t kind, const float *q, const float *vectors, const int64_t *slots,
                              const float *weight, int64_t samples, int64_t width, float *out) {
    memset(out, 0, sizeof(float) * (size_t)width);
    add_gradient_of_scores(kind, q, vectors, slots, weight, samples, width, out);
}

/* Scores, or gradients, of the queries from … to - 1 of step s. */
static void walk_step(int64_t kind, const struct formula *by, const struct samples *of, const float *query,
                      const float *weight, float *out, float *vectors, int64_t s, int64_t from, int64_t to) {
    const int64_t width = by->width, samples = of->samples;
    if (from == to) return;
    vectors_of(by, of->used + of->list_starts[s] * samples, s, of->counts[s], vectors);
    for (int64_t i = from; i < to; ++i) {
        const int64_t q = of->queries[i], *slots = of->slots + list_of(of, q);
        if (weight)
            gradient_of_query(kind, query + q * width, vectors, slots, weight + q * samples, samples, width,
                              out + q * width);
        else
            scores_of(kind, query + q * width, vectors, slots, samples, width, out + q * samples);
    }
}

/* Scores of all queries; or, with the weights of the scores, the gradients of the queries. Threads take whole steps; the
   queries of a step are divided only if one thread would wait for another otherwise. */
static void walk_queries(int64_t kind, const struct formula *by, const struct samples *of, const float *query,
                         const float *weight, float *out, float *scratch, int64_t most, int64_t threads) {
    const int64_t width = by->width, total = of->starts[of->steps];
    const int64_t at_a_time = threads == 1 ? total : total / (4 * threads) + 1;
#pragma omp parallel num_threads((int)threads)
    {
#if defined(_OPENMP)
        float *const vectors = scratch + omp_get_thread_num() * most * width;
#else
        float *const vectors = scratch;
#endif
#pragma omp for schedule(dynamic)
        for (int64_t s = 0; s < of->steps; ++s)
            if (of->starts[s + 1] - of->starts[s] <= at_a_time)
                walk_step(kind, by, of, query, weight, out, vectors, s, of->starts[s], of->starts[s + 1]);
        for (int64_t s = 0; s < of->steps; ++s)
            if (of->starts[s + 1] - of->starts[s] > at_a_time) {
#pragma omp for schedule(static)
                for (int64_t part = 0; part < threads; ++part) {
                    const int64_t asked = of->starts[s + 1] - of->starts[s];
                    walk_step(kind, by, of, query, weight, out, vectors, s, of->starts[s] + asked * part / threads,
                              of->starts[s] + asked * (part + 1) / threads);
                }
            }
    }
}

/* scratch [threads, most slots of a step, width] */
EXPORT void scores_at_steps(int64_t kind, const int64_t *formula, const int64_t *given, const float *query, float *out,
                            float *scratch, int64_t most, int64_t threads) {
    const struct formula by = formula_of(formula);
    const struct samples of = samples_of(given);
    walk_queries(kind, &by, &of, query, 0, out, scratch, most, threads);
}

/* A sample of a row: the query that took it, and the gradient of the score. Together, so that sorting writes to one place. */
struct sample {
    int32_t query;
    float weight;
};

/* Samples that are taken apart at a time; a multiple of the rows that the gradients take at a time. */
enum { AT_ONCE = 64 };

/* Rows at a time: while they go through the steps, the queries of one step stay in the cache, and so do the rows. */
enum { BLOCK = 64 };

/* The step of a sample; the number of steps if it is not below the end of its row. */
INLINE int64_t step_of_sample(const struct samples *of, const struct sample *sorted, int64_t place, int64_t end) {
    return place < end ? of->step_of[sorted[place].query] : of->steps;
}

/* The gradients of the rows first … first + rows - 1 at all steps from their samples, sorted by row and by step. */
FOR_EVERY_CPU
static void gradients_of_rows(int64_t kind, const struct formula *by, const struct samples *of, int64_t first,
                              int64_t rows, const float *query, const struct sample *sorted, const int64_t *ends,
                              float *z, float *g, const struct gradients *out, float *normals) {
    const int64_t width = by->width;
    int64_t next[BLOCK], step[BLOCK], owner[AT_ONCE];
    float weight[AT_ONCE];
    for (int64_t r = 0; r < rows; ++r) {
        next[r] = first + r ? ends[first + r - 1] : 0;
        step[r] = step_of_sample(of, sorted, next[r], ends[first + r]);
    }
    for (;;) {
        int64_t s = of->steps;
        for (int64_t r = 0; r < rows; ++r) s = at_most(s, step[r]);
        if (s == of->steps) return;
        for (int64_t r = 0; r < rows; ++r) {
            if (step[r] != s) continue;
            const int64_t count = ends[first + r];
            int64_t from = next[r];
            if (kind == L1) write_vector(by, first + r, s, z, 0);
            memset(g, 0, sizeof(float) * (size_t)width);
            for (int64_t some = AT_ONCE; some == AT_ONCE && from < count; from += some) {
                for (some = 0; some < AT_ONCE && from + some < count && of->step_of[sorted[from + some].query] == s; ++some)
                    owner[some] = sorted[from + some].query, weight[some] = sorted[from + some].weight;
                add_gradient_of_scores(kind, z, query, owner, weight, some, width, g);
            }
            add_vector_gradient(by, first + r, s, g, out, normals + s * width, 0);
            next[r] = from;
            step[r] = step_of_sample(of, sorted, from, count);
        }
    }
}

/* The gradients of the queries, and what is added to those of the tables. Samples are first sorted by the row they took:
   then one thread sums the gradient of a row. Every thread sorts a stretch of the queries, and the stretches follow each
   other within a row, so that sums have the same bits for any number of threads. The gradients of the normals,
   [PARTS, steps, width], are to be summed.

   places [threads, rows] has to be zero; sorted [queries · samples], scratch [threads, most slots, width] and
   sums [PARTS, 2, width] are only written. */
EXPORT void gradients_of_scores_at_steps(int64_t kind, const int64_t *formula, const int64_t *given, const float *query,
                                         const float *weight, float *grad_query, const int64_t *gradients,
                                         float *normals, float *scratch, int64_t most, int64_t *places, int64_t rows,
                                         struct sample *sorted, float *sums, int64_t threads) {
    const struct formula by = formula_of(formula);
    const struct samples of = samples_of(given);
    const struct gradients out = gradients_at(gradients);
    const int64_t width = by.width, samples = of.samples, queries = of.starts[of.steps];
    walk_queries(kind, &by, &of, query, weight, grad_query, scratch, most, threads);
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t part = 0; part < threads; ++part)
        for (int64_t i = queries * part / threads; i < queries * (part + 1) / threads; ++i) {
            const int64_t *list = of.index + list_of(&of, of.queries[i]);
            for (int64_t k = 0; k < samples; ++k) ++places[part * rows + list[k]];
        }
    int64_t before = 0;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t part = 0; part < threads; ++part) {
            const int64_t count = places[part * rows + r];
            places[part * rows + r] = before;
            before += count;
        }
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t part = 0; part < threads; ++part) {
        int64_t *const next = places + part * rows;
        for (int64_t i = queries * part / threads; i < queries * (part + 1) / threads; ++i) {
            const int64_t q = of.queries[i], *list = of.index + list_of(&of, q);
            for (int64_t k = 0; k < samples; ++k) {
                sorted[next[list[k]]++] = (struct sample){(int32_t)q, weight[q * samples + k]};
            }
        }
    }
    const int64_t *ends = places + (threads - 1) * rows;
#pragma omp parallel for num_threads((int)threads) schedule(dynamic)
    for (int64_t part = 0; part < PARTS; ++part)
        for (int64_t r = rows * part / PARTS; r < rows * (part + 1) / PARTS; r += BLOCK) {
            float *const mine = sums + part * 2 * width, *to = normals ? normals + part * of.steps * width : mine;
            gradients_of_rows(kind, &by, &of, r, at_most(BLOCK, rows * (part + 1) / PARTS - r), query, sorted, ends, mine,
                              mine + width, &out, to);
        }
}
