/* How many scores of each row are higher than one of them, and how many are lower. */
#include "common.h"

FOR_EVERY_CPU
static void count_row(const float *scores, float own, int64_t n, int64_t *higher, int64_t *lower) {
    int64_t above = 0, below = 0;
    /* Narrow sums for a while are several times as fast as wide ones. */
    for (int64_t from = 0; from < n; from += 1 << 20) {
        const int32_t some = (int32_t)at_most(1 << 20, n - from);
        const float *s = scores + from;
        int32_t up = 0, down = 0;
#pragma omp simd reduction(+ : up, down)
        for (int32_t j = 0; j < some; ++j) {
            up += s[j] > own;
            down += s[j] < own;
        }
        above += up, below += down;
    }
    *higher += above, *lower += below;
}

/* Adds to higher[i] and lower[i] how many of the n scores of row row_of[i], from column `first` on, are higher and lower
   than own[i]. */
EXPORT void count_scores(const float *scores, int64_t stride, int64_t first, int64_t n, const int64_t *row_of,
                         const float *own, int64_t answers, int64_t *higher, int64_t *lower, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < answers; ++i)
        count_row(scores + row_of[i] * stride + first, own[i], n, higher + i, lower + i);
}
