/* Products of small matrices that stay in the cache, and the sums of distances that take their place for L1. */
#ifndef TKG_INCREMENTAL_PRODUCT_H
#define TKG_INCREMENTAL_PRODUCT_H

#include "similarity.h"

/* Rows of the result at a time. With four columns of lanes they fill the registers of AVX512, with one those of others. */
enum { ROWS = 6, COLUMNS = 4 };

INLINE int columns_at_a_time(void) {
#if defined(__GNUC__) && defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? COLUMNS : 1;
#else
    return 1;
#endif
}

/* A matrix whose number (i, j) stands at values[i · row + j · column]. */
struct matrix {
    float *values;
    int64_t row, column;
};

/* c[i, j] = or += Σ a[i, l] · b[l, j] for some rows i and columns j; for L1, Σ -|a[i, l] - b[l, j]|. */
INLINE void multiply_some(int kind, int columns, int add, struct matrix a, struct matrix b, struct matrix c,
                          int64_t rows, int64_t depth) {
    lanes sums[ROWS][COLUMNS];
    const float *from[ROWS];
    for (int i = 0; i < ROWS; ++i) {
        const int64_t row = at_most(i, rows - 1); /* the last is repeated where fewer are left */
        from[i] = a.values + row * a.row;
        for (int j = 0; j < columns; ++j)
            sums[i][j] = add ? *(const lanes *)(c.values + row * c.row + j * LANES) : (lanes){0};
    }
    for (int64_t l = 0; l < depth; ++l) {
        lanes values[COLUMNS];
        for (int j = 0; j < columns; ++j) values[j] = *(const lanes *)(b.values + l * b.row + j * LANES);
        for (int i = 0; i < ROWS; ++i) {
            const float x = from[i][l * a.column];
            for (int j = 0; j < columns; ++j) {
                if (kind == DOT) {
                    sums[i][j] += x * values[j];
                } else {
                    const lanes difference = values[j] - x;
                    sums[i][j] -= (lanes)((lane_bits)difference & 0x7fffffff); /* without its sign */
                }
            }
        }
    }
    for (int i = 0; i < at_most(ROWS, rows); ++i)
        for (int j = 0; j < columns; ++j) *(lanes *)(c.values + i * c.row + j * LANES) = sums[i][j];
}

/* For all rows and columns; the number of columns is a multiple of LANES, and those of b and c stand side by side. */
INLINE void multiply(int kind, int add, struct matrix a, struct matrix b, struct matrix c, int64_t rows, int64_t depth,
                     int64_t columns) {
    const int most = columns_at_a_time();
    for (int64_t j = 0, some; j < columns; j += some * LANES, b.values += some * LANES, c.values += some * LANES) {
        some = (columns - j) / LANES >= most ? most : 1;
        struct matrix from = a, to = c;
        for (int64_t i = 0; i < rows; i += ROWS, from.values += ROWS * a.row, to.values += ROWS * c.row)
            if (some == COLUMNS)
                multiply_some(kind, COLUMNS, add, from, b, to, rows - i, depth);
            else
                multiply_some(kind, 1, add, from, b, to, rows - i, depth);
    }
}

#endif
