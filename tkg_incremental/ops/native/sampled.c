/* Scores of queries against samples of a table's rows, and their gradients. Query b takes the rows first[b] + index[b, k].

   A score is a dot product, or minus the sum of absolute differences. Four rows of the table are taken at a time, so
   that their sums do not wait for each other; where fewer are left, the last is repeated, so that a score has the same
   bits wherever it stands. */
#include <math.h>
#include <string.h>

#include "common.h"

enum { DOT = 0, L1 = 1 };

INLINE float sign(float x) { return (float)((x > 0.0f) - (x < 0.0f)); }

/* Rows are taken in no order that the processor could see: those to come are fetched whole. */
INLINE void prefetch_whole_row(const float *row, int64_t width) {
    for (int64_t j = 0; j < width; j += 16) PREFETCH(row + j);
}

/* The first lines of a row; the processor sees by itself where they lead. */
INLINE void prefetch_row(const float *row, int64_t width) {
    PREFETCH(row);
    if (width > 16) PREFETCH(row + 16);
}

INLINE void four_scores(int kind, const float *q, const float *const t[4], int64_t width, float score[4]) {
    const float *t0 = t[0], *t1 = t[1], *t2 = t[2], *t3 = t[3];
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    if (kind == DOT) {
#pragma omp simd reduction(+ : s0, s1, s2, s3)
        for (int64_t j = 0; j < width; ++j) {
            s0 += q[j] * t0[j];
            s1 += q[j] * t1[j];
            s2 += q[j] * t2[j];
            s3 += q[j] * t3[j];
        }
    } else {
#pragma omp simd reduction(- : s0, s1, s2, s3)
        for (int64_t j = 0; j < width; ++j) {
            s0 -= fabsf(q[j] - t0[j]);
            s1 -= fabsf(q[j] - t1[j]);
            s2 -= fabsf(q[j] - t2[j]);
            s3 -= fabsf(q[j] - t3[j]);
        }
    }
    score[0] = s0, score[1] = s1, score[2] = s2, score[3] = s3;
}

/* sum += the gradients by x of weight · score(x, y), for four y */
INLINE void four_gradients(int kind, const float *x, const float *const y[4], const float w[4], int64_t width,
                           float *restrict sum) {
    const float *y0 = y[0], *y1 = y[1], *y2 = y[2], *y3 = y[3];
    const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
    if (kind == DOT) {
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) sum[j] += (w0 * y0[j] + w1 * y1[j]) + (w2 * y2[j] + w3 * y3[j]);
    } else {
#pragma omp simd
        for (int64_t j = 0; j < width; ++j)
            sum[j] += (w0 * sign(y0[j] - x[j]) + w1 * sign(y1[j] - x[j])) +
                      (w2 * sign(y2[j] - x[j]) + w3 * sign(y3[j] - x[j]));
    }
}

FOR_EVERY_CPU
static void scores_of(int64_t kind, const float *q, const float *table, const int64_t *index, float *out, int64_t samples,
                      int64_t width) {
    for (int64_t k = 0; k < samples; k += 4) {
        const float *rows[4];
        float score[4];
        for (int i = 0; i < 4; ++i) {
            rows[i] = table + index[at_most(k + i, samples - 1)] * width;
            prefetch_whole_row(table + index[at_most(k + 8 + i, samples - 1)] * width, width);
        }
        if (kind == DOT)
            four_scores(DOT, q, rows, width, score);
        else
            four_scores(L1, q, rows, width, score);
        memcpy(out + k, score, sizeof(float) * (size_t)at_most(4, samples - k));
    }
}

/* Adds to `out` the gradient by x of the sum of weight[k] · score(x, rows[index[k]]). */
FOR_EVERY_CPU
static void gradient_of(int64_t kind, const float *x, const float *rows, const int64_t *index, const float *weight,
                        int64_t samples, int64_t width, float *out) {
    for (int64_t k = 0; k < samples; k += 4) {
        const float *y[4];
        float w[4];
        for (int i = 0; i < 4; ++i) {
            y[i] = rows + index[at_most(k + i, samples - 1)] * width;
            w[i] = k + i < samples ? weight[k + i] : 0.0f;
            prefetch_row(rows + index[at_most(k + 4 + i, samples - 1)] * width, width);
        }
        if (kind == DOT)
            four_gradients(DOT, x, y, w, width, out);
        else
            four_gradients(L1, x, y, w, width, out);
    }
}

EXPORT void sampled_scores(int64_t kind, const float *query, const float *table, const int64_t *index,
                           const int64_t *first, float *out, int64_t queries, int64_t samples, int64_t width,
                           int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t b = 0; b < queries; ++b)
        scores_of(kind, query + b * width, table + first[b] * width, index + b * samples, out + b * samples, samples,
                  width);
}

EXPORT void sampled_query_gradient(int64_t kind, const float *query, const float *table, const int64_t *index,
                                   const int64_t *first, const float *weight, float *out, int64_t queries,
                                   int64_t samples, int64_t width, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t b = 0; b < queries; ++b) {
        memset(out + b * width, 0, sizeof(float) * (size_t)width);
        gradient_of(kind, query + b * width, table + first[b] * width, index + b * samples, weight + b * samples,
                    samples, width, out + b * width);
    }
}

/* Samples are first sorted by the row they took: then each row of the gradient is written once, by one thread. Every
   thread sorts a stretch of the queries, and the stretches follow each other within a row, so the order, and with it
   the bits of the sums, is the same for any number of threads.

   counts [threads, rows] has to be zero; owner and sorted [queries · samples] are only written. The gradient is added
   to `out`, or, if that is fresh, written. */
EXPORT void sampled_table_gradient(int64_t kind, const float *query, const float *table, const int64_t *index,
                                   const int64_t *first, const float *weight, float *out, int64_t is_fresh,
                                   int64_t queries, int64_t samples, int64_t rows, int64_t width, int64_t *counts,
                                   int64_t *owner, float *sorted, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t part = 0; part < threads; ++part)
        for (int64_t b = queries * part / threads; b < queries * (part + 1) / threads; ++b) {
            int64_t *count = counts + part * rows + first[b];
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
            int64_t *next = counts + part * rows + first[b];
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
