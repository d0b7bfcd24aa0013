/* Scores of a query against rows of a table, and their gradients.

   A score is a dot product, or minus the sum of absolute differences. Four rows of the table are taken at a time, so
   that their sums do not wait for each other; where fewer are left, the last is repeated, so that a score has the same
   bits wherever it stands. */
#ifndef TKG_INCREMENTAL_SIMILARITY_H
#define TKG_INCREMENTAL_SIMILARITY_H

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

/* Scores of a query against the rows `index` of a table. */
INLINE void scores_of_query(int64_t kind, const float *q, const float *table, const int64_t *index, float *out, int64_t samples,
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
INLINE void add_gradient_of_scores(int64_t kind, const float *x, const float *rows, const int64_t *index, const float *weight,
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

#endif
