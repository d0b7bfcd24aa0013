/* Projections of many entities onto the hyperplanes of many steps, e - (w·e) w, and their gradients. */
#include <string.h>

#include "common.h"

INLINE float dot(const float *a, const float *b, int64_t width) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < width; ++j) sum += a[j] * b[j];
    return sum;
}

FOR_EVERY_CPU
static void projections_of(const float *e, const float *normals, const int64_t *sizes, int64_t count, int64_t entity,
                           int64_t width, float *out) {
    for (int64_t s = 0; s < count; out += sizes[s++] * width) {
        if (entity >= sizes[s]) continue;
        const float *w = normals + s * width, along = dot(e, w, width);
        float *z = out + entity * width;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) z[j] = e[j] - along * w[j];
    }
}

FOR_EVERY_CPU
static void gradients_of(const float *e, const float *normals, const int64_t *sizes, int64_t count, int64_t entity,
                         int64_t width, const float *grad, float *restrict grad_e, float *restrict grad_normals) {
    memset(grad_e, 0, sizeof(float) * (size_t)width);
    for (int64_t s = 0; s < count; grad += sizes[s++] * width) {
        if (entity >= sizes[s]) continue;
        const float *g = grad + entity * width, *w = normals + s * width;
        const float grad_along = dot(g, w, width), along = dot(e, w, width);
        float *restrict grad_w = grad_normals + s * width;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
            grad_e[j] += g[j] - grad_along * w[j];
            grad_w[j] -= g[j] * along + e[j] * grad_along;
        }
    }
}

/* The first sizes[s] entities of `order`, as rows of `vectors`, on the hyperplane of row s of `normals`; one step after
   the other. */
EXPORT void hyperplane_vectors(const float *vectors, const float *normals, const int64_t *order, const int64_t *sizes,
                               int64_t count, int64_t entities, int64_t width, float *out, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < entities; ++i)
        projections_of(vectors + order[i] * width, normals, sizes, count, i, width, out);
}

/* The gradients of the whole table, zero for entities at no step, and those of the normals, in `parts` that are to be
   summed: as many for any number of threads, so that their sum has the same bits. */
EXPORT void hyperplane_gradients(const float *vectors, const float *normals, const int64_t *order, const int64_t *sizes,
                                 int64_t count, int64_t entities, int64_t width, const float *grad,
                                 float *grad_vectors, float *grad_normals, int64_t parts, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(dynamic)
    for (int64_t part = 0; part < parts; ++part)
        for (int64_t i = entities * part / parts; i < entities * (part + 1) / parts; ++i)
            gradients_of(vectors + order[i] * width, normals, sizes, count, i, width, grad,
                         grad_vectors + order[i] * width, grad_normals + part * count * width);
}
