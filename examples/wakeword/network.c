/* The network in plain C, with the integers of tflite-micro: plain_c.py writes network.h. */
#include "plain.h"

#include <string.h>

/* x * multiplier * 2^(exponent - 31), rounded twice: to an integer at 2^exponent, then by the shift. */
static int32_t rescaled(int32_t x, int32_t multiplier, int exponent)
{
    int32_t left = exponent > 0 ? x * (1 << exponent) : x, mask, rest, high;
    int64_t product = (int64_t)left * multiplier;
    int right = exponent > 0 ? 0 : -exponent;
    product += product >= 0 ? 1 << 30 : 1 - (1 << 30);
    high = (int32_t)((product + (product < 0 ? 0x7FFFFFFF : 0)) >> 31); /* toward zero */
    mask = (int32_t)((1u << right) - 1);
    rest = high & mask;
    return (high >> right) + (rest > (mask >> 1) + (high < 0));
}

static int8_t code(int32_t sum, int32_t multiplier, int exponent, int lowest, int zero)
{
    int32_t y = rescaled(sum, multiplier, exponent) + zero;
    return (int8_t)(y < lowest ? lowest : y > 127 ? 127 : y);
}

static void copy(const int8_t *x, int x_row, int8_t *y, int y_row, int rows, int bytes)
{
    for (int row = 0; row < rows; row++) memcpy(y + row * y_row, x + row * x_row, (size_t)bytes);
}

/* A convolution over rows, or a dense layer: each row of `out` results has a window `step` codes later. */
static void layer(const int8_t *x, int step, const int8_t *weights, int window, const int32_t *bias,
                  const int32_t *multipliers, const int8_t *exponents, int8_t *y, int rows, int out, int lowest, int zero)
{
    for (int row = 0; row < rows; row++, x += step) {
        const int8_t *w = weights;
        for (int n = 0; n < out; n++) {
            int32_t sum = bias[n];
            for (int i = 0; i < window; i++) sum += x[i] * *w++;
            *y++ = code(sum, multipliers[n], exponents[n], lowest, zero);
        }
    }
}

/* One result a channel, from all rows. */
static void depthwise(const int8_t *x, const int8_t *weights, int rows, const int32_t *bias, const int32_t *multipliers,
                      const int8_t *exponents, int8_t *y, int channels, int lowest, int zero)
{
    for (int n = 0; n < channels; n++) {
        int32_t sum = bias[n];
        for (int row = 0; row < rows; row++) sum += x[row * channels + n] * weights[row * channels + n];
        y[n] = code(sum, multipliers[n], exponents[n], lowest, zero);
    }
}

static void look_up(const int8_t *x, const int8_t *table, int8_t *y, int count)
{
    for (int i = 0; i < count; i++) y[i] = table[x[i] + 128];
}

#include "network.h"

uint8_t plain_probability(const int8_t *input) { return plain_frame(input); }
