/*
 * fuzz_codec.c: any body for any message. The codec refuses it with a reason, or decodes a message
 * that is the same after it was encoded and decoded again. The first two bytes are the number of
 * the message.
 */
#include "base/limits.h"
#include "base/panic.h"
#include "proto/catalog.h"
#include "proto/codec.h"
#include "tests/lib/fuzz_input.h"
#include "tests/lib/msg_random.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Encodes the message, decodes the frame, and stops the program if the second message differs. */
static void sends_on_unchanged(const struct msg *msg)
{
    struct frame_reader reader;
    struct hvd_err err = { 0 };
    struct msg back = { 0 };
    const uint8_t *at;
    struct frame frame;
    struct buf wire;
    size_t length;

    buf_init(&wire, LIMIT_FRAME_BODY_BYTES + FRAME_HEADER_BYTES);
    frame_reader_init(&reader, LIMIT_FRAME_BODY_BYTES);
    if (msg_encode(msg, &wire, &err))
        PANIC("%s", err.text);
    at = (const uint8_t *)wire.data;
    length = wire.length;
    ASSERT(frame_feed(&reader, &at, &length, &frame, &err) == 1 && length == 0);
    if (msg_decode(&frame, &back, &err))
        PANIC("%s", err.text);
    if (msg_difference(msg, &back))
        PANIC("%s differs", msg_difference(msg, &back));
    msg_release(&back);
    frame_reader_release(&reader);
    buf_release(&wire);
}

/* A body that is decoded without copying must give the same message, or the same refusal. */
static void is_the_same_in_place(const struct frame *frame, int expected, const struct msg *msg)
{
    struct hvd_err err = { 0 };
    struct msg there = { 0 };
    int rc = msg_decode_in_place(frame, &there, &err);

    ASSERT(rc == expected);
    if (rc)
        return;
    if (msg_difference(msg, &there))
        PANIC("%s differs in place", msg_difference(msg, &there));
    msg_release(&there);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hvd_err err = { 0 };
    struct msg msg = { 0 };
    struct frame frame;
    char text[256];
    struct fuzz_input in = { data, size };
    uint16_t type = fuzz_number(&in);
    int rc;

    if (size < 2 || !msg_kind(type))
        return 0;
    frame = (struct frame){ .type = type, .body = in.at, .length = in.left };
    rc = msg_decode(&frame, &msg, &err);
    is_the_same_in_place(&frame, rc, &msg);
    if (rc) {
        ASSERT(rc == HVD_E_PROTO || rc == HVD_E_LIMIT);
        ASSERT(err.text[0]);
        return 0;
    }
    ASSERT(strlen(msg_describe(&msg, text, sizeof(text))) < sizeof(text));
    sends_on_unchanged(&msg);
    msg_release(&msg);
    return 0;
}
