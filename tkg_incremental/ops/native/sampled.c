/* Scores of queries against samples of a table's rows, and their gradients. Query b takes the rows index[b, k]. */
#include "similarity.h"

FOR_EVERY_CPU
static void scores_of(int64_t kind, const float *q, const float *table, const int64_t *index, float *out, int64_t samples,
                      int64_t width) {
    scores_of_query(kind, q, table, index, out, samples, width);
}

FOR_EVERY_CPU
static void gradient_of(int64_t kind, const float *x, const float *rows, const int64_t *index, const float *weight,
                        int64_t samples, int64_t width, float *out) {
    add_gradient_of_scores(kind, x, rows, index, weight, samples, width, out);
}

EXPORT void sampled_scores(int64_t kind, const float *query, const float *table, const int64_t *index,
                           float *out, int64_t queries, int64_t samples, int64_t width, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t b = 0; b < queries; ++b)
        scores_of(kind, query + b * width, table, index + b * samples, out + b * samples, samples, width);
}

EXPORT void sampled_query_gradient(int64_t kind, const float *query, const float *table, const int64_t *index,
                                   const float *weight, float *out, int64_t queries, int64_t samples, int64_t width,
                                   int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t b = 0; b < queries; ++b) {
        memset(out + b * width, 0, sizeof(float) * (size_t)width);
        gradient_of(kind, query + b * width, table, index + b * samples, weight + b * samples, samples, width,
                    out + b * width);
    }
}

/* Samples are first sorted by the row they took: then each row of the gradient is written once, by one thread. Every
   thread sorts a stretch of the queries, and the stretches follow each other within a row, so the order, and with it
   the bits of the sums, is the same for any number of threads.

   counts [threads, rows] has to be zero; owner and sorted [queries · samples] are only written. The gradient is added
   to `out`, or, if that is fresh, written. */
EXPORT void sampled_table_gradient(int64_t kind, const float *query, const float *table, const int64_t *index,
                                   const float *weight, float *out, int64_t is_fresh, int64_t queries, int64_t samples,
                                   int64_t rows, int64_t width, int64_t *counts, int64_t *owner, float *sorted,
                                   int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t part = 0; part < threads; ++part)
        for (int64_t b = queries * part / threads; b < queries * (part + 1) / threads; ++b) {
            int64_t *count = counts + part * rows;
            for (int64_t k = b * samples; k < (b + 1) * samples; ++k) ++count[index[k]];
        }
    int64_t before = 0;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t part = 0; part < threads; ++part) {
            const int64_t count = counts[part * rows + r];
            counts[part * rows + r] = before;
            before += count;
        }
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t part = 0; part < threads; ++part) {
        for (int64_t b = queries * part / threads; b < queries * (part + 1) / threads; ++b) {
            int64_t *next = counts + part * rows;
            for (int64_t k = b * samples; k < (b + 1) * samples; ++k) {
                const int64_t place = next[index[k]]++;
                owner[place] = b;
                sorted[place] = weight[k];
            }
        }
    }
    const int64_t *end = counts + (threads - 1) * rows;
#pragma omp parallel for num_threads((int)threads) schedule(dynamic, 256)
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t begin = r ? end[r - 1] : 0;
        if (is_fresh) memset(out + r * width, 0, sizeof(float) * (size_t)width);
        gradient_of(kind, table + r * width, query, owner + begin, sorted + begin, end[r] - begin, width,
                    out + r * width);
    }
}

/* Minus the sum of absolute differences of every query and every row, [queries, rows]. */
FOR_EVERY_CPU
static void distances_of(const float *query, const float *table, float *out, int64_t stride, int64_t from, int64_t to,
                         int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r += 4) {
        const float *t[4];
        float score[4];
        for (int i = 0; i < 4; ++i) t[i] = table + at_most(r + i, rows - 1) * width;
        for (int64_t b = from; b < to; ++b) {
            four_scores(L1, query + b * width, t, width, score);
            memcpy(out + b * stride + r, score, sizeof(float) * (size_t)at_most(4, rows - r));
        }
    }
}

EXPORT void all_distances(const float *query, const float *table, float *out, int64_t queries, int64_t rows,
                          int64_t width, int64_t threads) {
    /* Blocks of 64 queries stay in the first cache, while the table goes by. */
    const int64_t block = 64, blocks = (queries + block - 1) / block, strip = 1024, strips = (rows + strip - 1) / strip;
#pragma omp parallel for num_threads((int)threads) schedule(dynamic) collapse(2)
    for (int64_t s = 0; s < strips; ++s)
        for (int64_t i = 0; i < blocks; ++i)
            distances_of(query, table + s * strip * width, out + s * strip, rows, i * block,
                         at_most((i + 1) * block, queries), at_most(strip, rows - s * strip), width);
}
