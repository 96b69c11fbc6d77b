/*
 * fuzz_frame.c: any bytes, cut anywhere. The reader must return the same frames and end in the same
 * state as when it gets all bytes at once. The first byte chooses the cut, and the limit of the
 * frame size.
 */
#include "base/limits.h"
#include "base/panic.h"
#include "proto/catalog.h"
#include "proto/frame.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A digest of the frames, so that two different streams can be told apart. */
struct outcome {
    uint64_t digest;
    size_t frames;
    int rc;
};

static struct outcome read_all(const uint8_t *data, size_t size, size_t step, size_t body_max)
{
    struct outcome outcome = { 0 };
    struct frame_reader reader;

    frame_reader_init(&reader, body_max);
    for (size_t from = 0; from < size && outcome.rc >= 0; from += step) {
        const uint8_t *at = data + from;
        size_t length = size - from < step ? size - from : step;

        while (length > 0 && outcome.rc >= 0) {
            struct hvd_err err = { 0 };
            struct frame frame;

            outcome.rc = frame_feed(&reader, &at, &length, &frame, &err);
            if (outcome.rc == 1) {
                uint64_t digest = outcome.digest * 31 + frame.type + frame.flags;

                for (size_t i = 0; i < frame.length; i++)
                    digest = digest * 31 + frame.body[i];
                outcome.digest = digest;
                outcome.frames++;
                ASSERT(msg_kind(frame.type));
                ASSERT(frame.length <= msg_kind(frame.type)->body_max);
            } else if (outcome.rc < 0) {
                ASSERT(err.text[0]);
            }
            ASSERT(reader.body.capacity <= 2 * size + 4096);
        }
    }
    if (outcome.rc >= 0)
        outcome.rc = frame_reader_midway(&reader);
    frame_reader_release(&reader);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole;
    struct outcome cut;
    size_t body_max;
    size_t step;

    if (size < 2)
        return 0;
    step = (size_t)(data[0] >> 1) + 1;
    body_max = (data[0] & 1) ? LIMIT_FRAME_BODY_BYTES : 300;
    whole = read_all(data + 1, size - 1, size, body_max);
    cut = read_all(data + 1, size - 1, step, body_max);
    ASSERT(whole.rc == cut.rc);
    ASSERT(whole.frames == cut.frames);
    ASSERT(whole.digest == cut.digest);
    return 0;
}
