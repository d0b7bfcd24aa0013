/* The vector of an entity at a step, from the rows of its tables, and the gradients of these rows. */
#ifndef TKG_INCREMENTAL_FORMULAS_H
#define TKG_INCREMENTAL_FORMULAS_H

#include <math.h>
#include <string.h>

#include "common.h"

/* Sums over entities are taken in this many parts: as many for any number of threads, so that they have the same bits. */
enum { PARTS = 16 };

/* DIACHRONIC: e · sin(w t + b) in the first channels, e in the others; tables e [rows, width] and w, b [rows, channels].
   HYPERPLANE: e - (n·e) n with the normal n of the step; table e. */
enum { DIACHRONIC = 0, HYPERPLANE = 1 };

/* Steps are numbered from 0: step s has the time when[s] and the normal normals[s, width]. */
struct formula {
    int64_t kind, width, channels;
    const float *e, *w, *b, *when, *normals;
};

struct gradients {
    float *e, *w, *b;
};

/* From the numbers and addresses that Python writes. */
INLINE struct formula formula_of(const int64_t *given) {
    return (struct formula){given[0], given[1], given[2], (const float *)given[3], (const float *)given[4],
                            (const float *)given[5], (const float *)given[6], (const float *)given[7]};
}

INLINE struct gradients gradients_at(const int64_t *given) {
    return (struct gradients){(float *)given[0], (float *)given[1], (float *)given[2]};
}

/* Past this, three parts of π no longer take all of the half turns out of an angle. */
#define LARGEST_ANGLE 4096.0f
/* Channels at a time: their angles, sines and cosines stay in the first cache. */
#define CHUNK 64

INLINE float with_sign(float number, uint32_t sign) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits ^= sign;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Sine and cosine to about one unit in the last place of 1, in arithmetic that compilers turn into vectors. */
INLINE void sine_cosine(float x, float *sine, float *cosine) {
    const float nearest = floorf(x * 0.318309886183790672f + 0.5f); /* half turns: 1/π */
    const uint32_t sign = (uint32_t)(int32_t)nearest << 31;         /* odd ones change the signs of both */
    /* π in three parts; the first two have so few bits that their products are exact. */
    float r = x - nearest * 3.140625f;
    r = r - nearest * 9.67502593994140625e-4f;
    r = r - nearest * 1.509957989753729e-7f;
    const float s = r * r;
    const float odd = -1.6666656732559204e-1f + s * (8.333016186952591e-3f + s * (-1.9806546333711594e-4f + s * 2.5999027e-6f));
    const float even = 4.1666656732559204e-2f +
                       s * (-1.3888567918911576e-3f + s * (2.4769240553723648e-5f + s * -2.6192478230768756e-7f));
    *sine = with_sign(r + r * s * odd, sign);
    *cosine = with_sign(1.0f - 0.5f * s + s * s * even, sign);
}

/* Sines and cosines of w t + b. */
INLINE void swing(const float *w, const float *b, float t, int64_t n, float *sine, float *cosine) {
    float angle[CHUNK], largest = 0.0f;
#pragma omp simd reduction(max : largest)
    for (int64_t j = 0; j < n; ++j) {
        angle[j] = w[j] * t + b[j];
        largest = fabsf(angle[j]) > largest ? fabsf(angle[j]) : largest;
    }
    if (largest <= LARGEST_ANGLE) {
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) sine_cosine(angle[j], sine + j, cosine + j);
    } else
        for (int64_t j = 0; j < n; ++j) sine[j] = sinf(angle[j]), cosine[j] = cosf(angle[j]);
}

INLINE float dot(const float *a, const float *b, int64_t width) {
    lanes sums = {0};
    int64_t j = 0;
    for (; j + LANES <= width; j += LANES) sums += *(const lanes *)(a + j) * *(const lanes *)(b + j);
    float sum = sum_of_lanes(&sums);
    for (; j < width; ++j) sum += a[j] * b[j];
    return sum;
}

/* Rows come in no order that the processor could see: those to come are fetched. */
enum { AHEAD = 4 };

INLINE void fetch(const float *row, int64_t width) {
    for (int64_t j = 0; j < width; j += 16) PREFETCH(row + j);
}

INLINE void fetch_rows(const struct formula *by, int64_t row) {
    fetch(by->e + row * by->width, by->width);
    if (by->kind == HYPERPLANE) return;
    fetch(by->w + row * by->channels, by->channels);
    fetch(by->b + row * by->channels, by->channels);
}

INLINE void fetch_gradients(const struct formula *by, int64_t row, const struct gradients *out) {
    fetch(out->e + row * by->width, by->width);
    if (by->kind == HYPERPLANE) return;
    fetch(out->w + row * by->channels, by->channels);
    fetch(out->b + row * by->channels, by->channels);
}

/* The vector of a row at step s. Its sines and cosines, [2, channels], are kept if there is a place for them. */
INLINE void write_vector(const struct formula *by, int64_t row, int64_t s, float *restrict z, float *restrict kept) {
    const int64_t width = by->width, channels = by->channels;
    const float *e = by->e + row * width;
    if (by->kind == HYPERPLANE) {
        const float *n = by->normals + s * width, along = dot(e, n, width);
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) z[j] = e[j] - along * n[j];
        return;
    }
    float sines[CHUNK], cosines[CHUNK];
    for (int64_t from = 0; from < channels; from += CHUNK) {
        const int64_t count = at_most(CHUNK, channels - from), at = row * channels + from;
        float *const sine = kept ? kept + from : sines, *const cosine = kept ? kept + channels + from : cosines;
        swing(by->w + at, by->b + at, by->when[s], count, sine, cosine);
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) z[from + j] = e[from + j] * sine[j];
    }
    memcpy(z + channels, e + channels, sizeof(float) * (size_t)(width - channels));
}

/* Adds to the gradients of a row, and of the normal of step s, what follows from the gradient g of its vector. Sines and
   cosines that were kept are not computed again. */
INLINE void add_vector_gradient(const struct formula *by, int64_t row, int64_t s, const float *g,
                                const struct gradients *out, float *restrict grad_normal, const float *kept) {
    const int64_t width = by->width, channels = by->channels;
    const float *e = by->e + row * width;
    float *restrict grad_e = out->e + row * width;
    if (by->kind == HYPERPLANE) {
        const float *n = by->normals + s * width, by_along = dot(g, n, width), along = dot(e, n, width);
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
            grad_e[j] += g[j] - by_along * n[j];
            grad_normal[j] -= g[j] * along + e[j] * by_along;
        }
        return;
    }
    float sines[CHUNK], cosines[CHUNK];
    const float t = by->when[s];
    for (int64_t from = 0; from < channels; from += CHUNK) {
        const int64_t count = at_most(CHUNK, channels - from), at = row * channels + from;
        float *restrict grad_w = out->w + at, *restrict grad_b = out->b + at;
        const float *const sine = kept ? kept + from : sines, *const cosine = kept ? kept + channels + from : cosines;
        if (!kept) swing(by->w + at, by->b + at, t, count, sines, cosines);
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) {
            const float by_angle = g[from + j] * cosine[j] * e[from + j];
            grad_e[from + j] += g[from + j] * sine[j];
            grad_b[j] += by_angle;
            grad_w[j] += by_angle * t;
        }
    }
#pragma omp simd
    for (int64_t j = channels; j < width; ++j) grad_e[j] += g[j];
}

#endif
