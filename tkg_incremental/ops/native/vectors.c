/* Vectors of entities at steps, and the gradients of the tables they come from. */
#include "formulas.h"

FOR_EVERY_CPU
static void vectors_of(const struct formula *by, const int64_t *order, const int64_t *sizes, int64_t first,
                       int64_t count, int64_t i, float *out) {
    for (int64_t s = 0; s < count; out += sizes[s++] * by->width)
        if (i < sizes[s]) write_vector(by, order[i], first + s, out + i * by->width, 0);
}

FOR_EVERY_CPU
static void gradients_of(const struct formula *by, const int64_t *order, const int64_t *sizes, int64_t first,
                         int64_t count, int64_t i, const float *grad, const struct gradients *out, float *normals) {
    for (int64_t s = 0; s < count; grad += sizes[s++] * by->width)
        if (i < sizes[s])
            add_vector_gradient(by, order[i], first + s, grad + i * by->width, out, normals + s * by->width, 0);
}

INLINE int64_t largest_of(const int64_t *sizes, int64_t count) {
    int64_t largest = 0;
    for (int64_t s = 0; s < count; ++s) largest = sizes[s] > largest ? sizes[s] : largest;
    return largest;
}

/* The first sizes[s] entities of `order`, as rows of the tables, at the steps first … first + count - 1; one step after
   the other. */
EXPORT void vectors_at_steps(const int64_t *formula, const int64_t *order, const int64_t *sizes, int64_t first,
                             int64_t count, float *out, int64_t threads) {
    const struct formula by = formula_of(formula);
    const int64_t entities = largest_of(sizes, count);
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < entities; ++i) {
        fetch_rows(&by, order[at_most(i + AHEAD, entities - 1)]);
        vectors_of(&by, order, sizes, first, count, i, out);
    }
}

/* Adds to the gradients of the tables, in whose rows no two of the entities meet. The gradients of the normals,
   [PARTS, count, width], are to be summed. */
EXPORT void gradients_at_steps(const int64_t *formula, const int64_t *order, const int64_t *sizes, int64_t first,
                               int64_t count, const float *grad, const int64_t *gradients, float *normals,
                               int64_t threads) {
    const struct formula by = formula_of(formula);
    const struct gradients out = gradients_at(gradients);
    const int64_t entities = largest_of(sizes, count);
#pragma omp parallel for num_threads((int)threads) schedule(dynamic)
    for (int64_t part = 0; part < PARTS; ++part)
        for (int64_t i = entities * part / PARTS; i < entities * (part + 1) / PARTS; ++i) {
            const int64_t next = order[at_most(i + AHEAD, entities - 1)];
            fetch_rows(&by, next);
            fetch_gradients(&by, next, &out);
            gradients_of(&by, order, sizes, first, count, i, grad, &out, normals + part * count * by.width);
        }
}

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
    for (int64_t i = 0; i < count; ++i) vector_of(&by, rows[i], numbers[i], out + i * by.width);
}

/* Adds to the gradients of the tables and of the normals. By one thread, as pairs may share rows: they are few. */
EXPORT void gradients_by_pairs(const int64_t *formula, const int64_t *rows, const int64_t *numbers, int64_t count,
                               const float *grad, const int64_t *gradients, float *normals, int64_t threads) {
    (void)threads;
    const struct formula by = formula_of(formula);
    const struct gradients out = gradients_at(gradients);
    gradients_of_pairs(&by, rows, numbers, count, grad, &out, normals);
}
