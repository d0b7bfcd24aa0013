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

/* Adds the gradient by x of weight · score(x, y), in one of its numbers. The sign of a difference is a choice, which
   costs less than a product. */
INLINE float add_part(int kind, float sum, float weight, float y, float x) {
    if (kind == DOT) return sum + weight * y;
    sum = y > x ? sum + weight : sum;
    return y < x ? sum - weight : sum;
}

/* Rows are taken in no order that the processor could see: those to come are fetched whole. */
INLINE void prefetch_whole_row(const float *row, int64_t width) {
    for (int64_t j = 0; j < width; j += 16) PREFETCH(row + j);
}

/* The first lines of a row; the processor sees by itself where they lead. */
INLINE void prefetch_row(const float *row, int64_t width) {
    PREFETCH(row);
    if (width > 16) PREFETCH(row + 16);
}

INLINE float part_of_score(int kind, float q, float t) { return kind == DOT ? q * t : -fabsf(q - t); }

INLINE void add_parts(int kind, const lanes *q, const float *t, lanes *sums) {
    const lanes row = *(const lanes *)t;
    if (kind == DOT) {
        *sums += *q * row;
    } else {
        const lanes difference = *q - row;
        *sums -= (lanes)((lane_bits)difference & 0x7fffffff); /* without its sign */
    }
}

INLINE void four_scores(int kind, const float *q, const float *const t[4], int64_t width, float score[4]) {
    lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t j = 0;
    for (; j + LANES <= width; j += LANES) {
        const lanes part = *(const lanes *)(q + j);
        add_parts(kind, &part, t[0] + j, &s0);
        add_parts(kind, &part, t[1] + j, &s1);
        add_parts(kind, &part, t[2] + j, &s2);
        add_parts(kind, &part, t[3] + j, &s3);
    }
    score[0] = sum_of_lanes(&s0), score[1] = sum_of_lanes(&s1);
    score[2] = sum_of_lanes(&s2), score[3] = sum_of_lanes(&s3);
    for (; j < width; ++j)
        for (int i = 0; i < 4; ++i) score[i] += part_of_score(kind, q[j], t[i][j]);
}

/* sum += the gradients by x of weight · score(x, y), for `count` y, one to four */
INLINE void some_gradients(int kind, int count, const float *x, const float *const y[4], const float w[4],
                           int64_t width, float *restrict sum) {
    const float *y0 = y[0], *y1 = y[1], *y2 = y[2], *y3 = y[3];
    const float w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
#define ADD(i) part = add_part(kind, part, w##i, y##i[j], x[j])
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
        float part = sum[j];
        ADD(0);
        if (count > 1) ADD(1);
        if (count > 2) ADD(2);
        if (count > 3) ADD(3);
        sum[j] = part;
    }
#undef ADD
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
            w[i] = weight[at_most(k + i, samples - 1)];
            prefetch_row(rows + index[at_most(k + 4 + i, samples - 1)] * width, width);
        }
        /* Compiled for each number of rows. */
        switch (at_most(4, samples - k) + (kind == DOT ? 0 : 4)) {
        case 1: some_gradients(DOT, 1, x, y, w, width, out); break;
        case 2: some_gradients(DOT, 2, x, y, w, width, out); break;
        case 3: some_gradients(DOT, 3, x, y, w, width, out); break;
        case 4: some_gradients(DOT, 4, x, y, w, width, out); break;
        case 5: some_gradients(L1, 1, x, y, w, width, out); break;
        case 6: some_gradients(L1, 2, x, y, w, width, out); break;
        case 7: some_gradients(L1, 3, x, y, w, width, out); break;
        default: some_gradients(L1, 4, x, y, w, width, out);
        }
    }
}

#endif
