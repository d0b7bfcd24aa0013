/* The exponential function. */
#ifndef TKG_INCREMENTAL_EXPONENTIAL_H
#define TKG_INCREMENTAL_EXPONENTIAL_H

#include <math.h>
#include <string.h>

#include "common.h"

/* e^x for x ≤ 0 to about one unit in the last place; zero below the smallest normal number. */
INLINE float exponential(float x) {
    const float low = x < -87.0f ? -87.0f : x;
    const float n = floorf(low * 1.44269504088896341f + 0.5f);
    /* ln 2 in two parts; the first has so few bits that its product is exact. */
    float r = low - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
    const int32_t bits = ((int32_t)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return x < -87.0f ? 0.0f : y * scale;
}

#endif
