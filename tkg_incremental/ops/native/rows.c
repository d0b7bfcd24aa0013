/* Rows of tables: which of a gradient are not zero, what pulls them back, and how an optimiser moves them. */
#include <math.h>
#include <string.h>

#include "common.h"

FOR_EVERY_CPU
static int64_t is_not_zero(const float *row, int64_t width) {
    int32_t found = 0;
#pragma omp simd reduction(| : found)
    for (int64_t j = 0; j < width; ++j) found |= row[j] != 0.0f; /* true of what is no number, too */
    return found;
}

EXPORT void rows_not_zero(const float *matrix, int64_t *marks, int64_t rows, int64_t width, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < rows; ++i) marks[i] = is_not_zero(matrix + i * width, width);
}

/* Rows of a large table that will be needed soon are far away. */
enum { AHEAD = 4, LINE = 16 };

INLINE void fetch_row(const float *table, const int64_t *index, int64_t i, int64_t rows, int64_t width) {
    if (i >= rows) return;
    for (int64_t j = 0; j < width; j += LINE) PREFETCH(table + index[i] * width + j);
}

FOR_EVERY_CPU
static void pull_row(float strength, const float *restrict value, const float *restrict former,
                     float *restrict gradient, int64_t width) {
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) gradient[j] += strength * (value[j] - former[j]);
}

/* Adds to the gradient of some rows of a table what pulls them back to their former values. */
EXPORT void pull_back(const float *table, const float *former, const int64_t *index, float *gradient,
                      const float *strength, int64_t rows, int64_t width, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
        const int64_t place = index[i] * width;
        pull_row(*strength, table + place, former + place, gradient + place, width);
    }
}

/* The same for a gradient of `rows` rows of the table alone. What a row was and how strongly it is pulled stand at its
   slot; without slots, at its place in `index`. */
EXPORT void pull_back_rows(const float *table, const int64_t *index, const float *former, const int64_t *slots,
                           float *gradient, const float *strengths, int64_t rows, int64_t width, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
        const int64_t slot = slots ? slots[i] : i;
        fetch_row(table, index, i + AHEAD, rows, width);
        pull_row(strengths[slot], table + index[i] * width, former + slot * width, gradient + i * width, width);
    }
}

/* Rows of a table as they were: those with a slot from `former`, the others from the table. */
EXPORT void former_rows(const float *table, const int64_t *index, const int32_t *slot_of, const float *former,
                        float *out, int64_t rows, int64_t width, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
        const int32_t slot = slot_of[index[i]];
        memcpy(out + i * width, slot < 0 ? table + index[i] * width : former + slot * width, (size_t)width * sizeof *out);
    }
}

struct adam {
    float lr, beta1, beta2, eps, decay, scale;
};

INLINE struct adam adam_of(const float *settings) {
    return (struct adam){settings[0], settings[1], settings[2], settings[3], settings[4], settings[5]};
}

/* One update of numbers that were updated count - 1 times before. */
FOR_EVERY_CPU
static void move(struct adam by, float *restrict value, const float *restrict gradient, float count,
                 float *restrict mean, float *restrict square, int64_t numbers) {
    const float rest1 = 1.0f - by.beta1, rest2 = 1.0f - by.beta2;
    const float bias1 = (float)(1.0 - pow(by.beta1, count)), bias2 = (float)(1.0 - pow(by.beta2, count));
#pragma omp simd
    for (int64_t j = 0; j < numbers; ++j) {
        const float g = gradient[j] * by.scale + by.decay * value[j];
        mean[j] += rest1 * (g - mean[j]);
        square[j] = by.beta2 * square[j] + rest2 * g * g;
        value[j] -= by.lr * (mean[j] / bias1) / (sqrtf(square[j] / bias2) + by.eps);
    }
}

/* One update of some rows of a table. The state of a row, its number of updates and the running means of its gradient
   and of the square of that, stands at its slot; without slots, at its place in `index`. */
EXPORT void move_rows(float *table, const int64_t *index, const int64_t *slots, const float *gradient, float *counts,
                      float *means, float *squares, const float *settings, int64_t rows, int64_t width,
                      int64_t threads) {
    const struct adam by = adam_of(settings);
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
        const int64_t slot = slots ? slots[i] : i;
        fetch_row(table, index, i + AHEAD, rows, width);
        counts[slot] += 1.0f;
        move(by, table + index[i] * width, gradient + i * width, counts[slot], means + slot * width,
             squares + slot * width, width);
    }
}

/* One update of a whole table, all of whose numbers were updated as often. */
EXPORT void move_table(float *table, const float *gradient, const float *count, float *means, float *squares,
                       const float *settings, int64_t numbers, int64_t threads) {
    const struct adam by = adam_of(settings);
    const int64_t at_a_time = 4096, parts = (numbers + at_a_time - 1) / at_a_time;
#pragma omp parallel num_threads((int)threads)
    {
        const uint32_t mode = flush_tiny_numbers();
#pragma omp for schedule(static)
        for (int64_t part = 0; part < parts; ++part) {
            const int64_t at = part * at_a_time;
            move(by, table + at, gradient + at, *count, means + at, squares + at, at_most(at_a_time, numbers - at));
        }
        restore_mode(mode);
    }
}
