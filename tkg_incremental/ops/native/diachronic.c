/* Diachronic vectors of many entities at many steps, e · sin(w t + b) beside what stands still, and their gradients. */
#include <math.h>
#include <string.h>

#include "common.h"

/* Past this, three parts of π/2 no longer take all of the turns out of an angle. */
#define LARGEST_ANGLE 4096.0f
/* Channels at a time: their angles, sines and cosines stay in the first cache. */
#define CHUNK 64

/* Sine and cosine to about one unit in the last place, in arithmetic that compilers turn into vectors. */
INLINE void sine_cosine(float x, float *sine, float *cosine) {
    const float turns = x * 0.636619772367581f; /* 2/π */
    const float nearest = floorf(turns + 0.5f);
    const int quarter = (int)nearest;
    /* π/2 in three parts; the first two have so few bits that their products are exact. */
    float r = x - nearest * 1.5703125f;
    r = r - nearest * 4.837512969970703e-4f;
    r = r - nearest * 7.549789948768648e-8f;
    const float s = r * r;
    const float odd = r + r * s * (-1.6666654611e-1f + s * (8.3321608736e-3f + s * -1.9515295891e-4f));
    const float even =
        1.0f - 0.5f * s + s * s * (4.166664568298827e-2f + s * (-1.388731625493765e-3f + s * 2.443315711809948e-5f));
    const int swapped = quarter & 1;
    const float a = swapped ? even : odd, b = swapped ? odd : even;
    *sine = quarter & 2 ? -a : a;
    *cosine = (quarter + 1) & 2 ? -b : b;
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

FOR_EVERY_CPU
static void vectors_of(const float *e, const float *w, const float *b, const int64_t *steps, const int64_t *sizes,
                       int64_t count, int64_t entity, int64_t width, int64_t channels, float *out) {
    float sine[CHUNK], cosine[CHUNK];
    for (int64_t s = 0; s < count; out += sizes[s++] * width) {
        if (entity >= sizes[s]) continue;
        float *z = out + entity * width;
        for (int64_t from = 0; from < channels; from += CHUNK) {
            const int64_t n = at_most(CHUNK, channels - from);
            swing(w + from, b + from, (float)steps[s], n, sine, cosine);
            for (int64_t j = 0; j < n; ++j) z[from + j] = e[from + j] * sine[j];
        }
        memcpy(z + channels, e + channels, sizeof(float) * (size_t)(width - channels));
    }
}

FOR_EVERY_CPU
static void gradients_of(const float *e, const float *w, const float *b, const int64_t *steps, const int64_t *sizes,
                         int64_t count, int64_t entity, int64_t width, int64_t channels, const float *grad,
                         float *restrict grad_e, float *restrict grad_w, float *restrict grad_b) {
    float sine[CHUNK], cosine[CHUNK];
    for (int64_t s = 0; s < count; grad += sizes[s++] * width) {
        if (entity >= sizes[s]) continue;
        const float *g = grad + entity * width;
        const float t = (float)steps[s];
        for (int64_t from = 0; from < channels; from += CHUNK) {
            const int64_t n = at_most(CHUNK, channels - from);
            swing(w + from, b + from, t, n, sine, cosine);
#pragma omp simd
            for (int64_t j = 0; j < n; ++j) {
                const float by_angle = g[from + j] * cosine[j] * e[from + j];
                grad_e[from + j] += g[from + j] * sine[j];
                grad_b[from + j] += by_angle;
                grad_w[from + j] += by_angle * t;
            }
        }
        for (int64_t j = channels; j < width; ++j) grad_e[j] += g[j];
    }
}

INLINE int64_t largest_of(const int64_t *sizes, int64_t count) {
    int64_t largest = 0;
    for (int64_t s = 0; s < count; ++s) largest = sizes[s] > largest ? sizes[s] : largest;
    return largest;
}

/* The first sizes[s] entities of `order`, as rows of the tables, at steps[s]; one step after the other. */
EXPORT void diachronic_vectors(const float *vectors, const float *frequency, const float *phase, const int64_t *order,
                               const int64_t *steps, const int64_t *sizes, int64_t count, int64_t width,
                               int64_t channels, float *out, int64_t threads) {
    const int64_t entities = largest_of(sizes, count);
#pragma omp parallel for num_threads((int)threads) schedule(static)
    for (int64_t i = 0; i < entities; ++i) {
        const int64_t row = order[i];
        vectors_of(vectors + row * width, frequency + row * channels, phase + row * channels, steps, sizes, count, i,
                   width, channels, out);
    }
}

/* The gradients of the tables, of which each of the `entities` has rows of its own: zero for those at no step. */
EXPORT void diachronic_gradients(const float *vectors, const float *frequency, const float *phase,
                                 const int64_t *order, const int64_t *steps, const int64_t *sizes, int64_t count,
                                 int64_t entities, int64_t width, int64_t channels, const float *grad,
                                 float *grad_vectors, float *grad_frequency, float *grad_phase, int64_t threads) {
#pragma omp parallel for num_threads((int)threads) schedule(dynamic, 256)
    for (int64_t i = 0; i < entities; ++i) {
        const int64_t row = order[i];
        float *grad_e = grad_vectors + row * width;
        float *grad_w = grad_frequency + row * channels, *grad_b = grad_phase + row * channels;
        memset(grad_e, 0, sizeof(float) * (size_t)width);
        memset(grad_w, 0, sizeof(float) * (size_t)channels);
        memset(grad_b, 0, sizeof(float) * (size_t)channels);
        gradients_of(vectors + row * width, frequency + row * channels, phase + row * channels, steps, sizes, count, i,
                     width, channels, grad, grad_e, grad_w, grad_b);
    }
}
