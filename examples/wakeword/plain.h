/* The network on a processor alone: one frame after the other. */
#ifndef PLAIN_H
#define PLAIN_H
#include <stdint.h>

/* The probability, in 256ths, after a further frame of 3 x 40 codes. The first call starts the sequence. */
uint8_t plain_probability(const int8_t *input);

#endif
