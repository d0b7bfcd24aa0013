/* Vectors of entities at steps, and the gradients of the tables they come from. */
#include "formulas.h"

FOR_EVERY_CPU
static void vector_of(const struct formula *by, int64_t row, int64_t s, float *out) { write_vector(by, row, s, out, 0); }

FOR_EVERY_CPU
static void gradients_of_pairs(const struct formula *by, const int64_t *rows, const int64_t *numbers, int64_t count,
                               const float *grad, const struct gradients *out, float *normals) {
    for (int64_t i = 0; i < count; ++i)
        add_vector_gradient(by, rows[i], numbers[i], grad + i * by->width, out, normals + numbers[i] * by->width, 0);
}

/* Rows of the tables at steps, pair by pair. */
EXPORT void vectors_of_pairs(const int64_t *formula, const int64_t *rows, const int64_t *numbers, int64_t count,
                             float *out, int64_t threads) {
    const struct formula by = formula_of(formula);
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < count; ++i) {
        fetch_rows(&by, rows[at_most(i + AHEAD, count - 1)]);
        vector_of(&by, rows[i], numbers[i], out + i * by.width);
    }
}

/* Adds to the gradients of the tables and of the normals. By one thread, as pairs may share rows: they are few. */
EXPORT void gradients_by_pairs(const int64_t *formula, const int64_t *rows, const int64_t *numbers, int64_t count,
                               const float *grad, const int64_t *gradients, float *normals, int64_t threads) {
    (void)threads;
    const struct formula by = formula_of(formula);
    const struct gradients out = gradients_at(gradients);
    gradients_of_pairs(&by, rows, numbers, count, grad, &out, normals);
}
