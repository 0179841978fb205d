/* Firmware: frames of speech through the core, then some of them on the processor alone. Every probability is compared
   with tflite-micro's, which stands after each frame. */
#include "board.h"
#include "okay_nabu.h"
#include "plain.h"
#include "settings.h" /* FRAMES, PLAIN_FRAMES, WINDOW, CUTOFF: the least sum of WINDOW probabilities, in 256ths */

#define FRAME_MS 30
#define VECTOR_BYTES (OKAY_NABU_INPUT_ELEMENTS + 4) /* codes, the probability, 3 bytes to fill a word */

extern const uint8_t vectors[];
static uint8_t in[OKAY_NABU_INPUT_BYTES] __attribute__((aligned(64)));
static uint8_t out[OKAY_NABU_OUTPUT_BYTES] __attribute__((aligned(64)));

static void text(const char *characters)
{
    while (*characters) put(*characters++);
}

static void number(uint32_t value)
{
    char digits[10];
    int count = 0;
    do digits[count++] = (char)('0' + value % 10); while (value /= 10);
    while (count) put(digits[--count]);
}

static void field(const char *name, uint32_t value)
{
    text(name);
    number(value);
}

static const int8_t *codes_of(int frame) { return (const int8_t *)vectors + frame * VECTOR_BYTES; }
static uint8_t expected(int frame) { return vectors[frame * VECTOR_BYTES + OKAY_NABU_INPUT_ELEMENTS]; }

/* The probability by the core; the first frame starts the sequence. Returns 0 if all went well. */
static uint32_t core_probability(int frame, uint8_t *probability)
{
    const void *const inputs[] = {in};
    void *const outputs[] = {out};
    okay_nabu_input_code input_codes[OKAY_NABU_INPUT_ELEMENTS];
    okay_nabu_output_code output_codes[OKAY_NABU_OUTPUT_ELEMENTS];
    uint32_t status;
    okay_nabu_head(codes_of(frame), input_codes);
    okay_nabu_pack(input_codes, in);
    status = run_frames(inputs, outputs, 1, frame == 0);
    okay_nabu_unpack(out, output_codes);
    okay_nabu_tail(output_codes, probability);
    return status;
}

int main(void)
{
    uint8_t last[WINDOW] = {0};
    uint32_t wrong = 0, sum = 0, with_core = 0, in_core = 0, alone = 0;
    for (int frame = 0; frame < FRAMES; frame++) {
        uint8_t probability;
        uint32_t start = cycles(), before = sum, status = core_probability(frame, &probability);
        int equal = probability == expected(frame) && status == 0;
        with_core += cycles() - start;
        in_core += job_cycles();
        wrong += !equal;
        sum += probability - last[frame % WINDOW];
        last[frame % WINDOW] = probability;
        field("frame ", (uint32_t)frame), field(": probability ", probability), field("/256, mean ", sum / WINDOW);
        text(equal ? "/256; equal\n" : "/256; DIFFERENT\n");
        if (before < CUTOFF && sum >= CUTOFF) field("okay nabu at ", (uint32_t)(frame + 1) * FRAME_MS), text(" ms\n");
    }
    for (int frame = 0; frame < PLAIN_FRAMES; frame++) {
        uint32_t start = cycles();
        uint8_t probability = plain_probability(codes_of(frame));
        alone += cycles() - start;
        wrong += probability != expected(frame);
    }
    field("cycles a frame: with the core ", with_core / FRAMES), field(" (in the core ", in_core / FRAMES);
    field("), processor alone ", alone / PLAIN_FRAMES), field(" (mean of ", PLAIN_FRAMES), text(" frames)\n");
    field("probabilities ", FRAMES + PLAIN_FRAMES), field(", differences ", wrong), text("\n");
    finish(wrong != 0);
    return 0;
}
