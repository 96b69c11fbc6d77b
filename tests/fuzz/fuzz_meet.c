/*
 * fuzz_meet.c: what a stranger may send to the address at which workers meet, and what a contact
 * may contain. If the first byte is odd the rest is a contact; else it is frames.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "collectives/meet/meet_wire.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A frame that is read must be written as the same bytes, and must not be read before its last byte
 * is there. */
static size_t check_frame(const uint8_t *bytes, size_t length)
{
    struct meet_frame frame, untouched = { .kind = MEET_BYE, .round = 4711 };
    size_t used = 0, none = 0;
    struct buf again;
    int rc = meet_frame_read(bytes, length, &frame, &used);

    if (rc <= 0) {
        ASSERT(rc == 0 || rc == HVD_E_PROTO || rc == HVD_E_VERSION);
        return 0;
    }
    ASSERT(rc == 1 && used <= length && used <= MEET_FRAME_MAX);
    ASSERT(frame.address_length <= MEET_ADDRESS_MAX && frame.code <= 0);
    ASSERT(memchr(frame.text, '\0', sizeof(frame.text)));
    for (size_t cut = 0; cut < used; cut++)
        ASSERT(meet_frame_read(bytes, cut, &untouched, &none) == 0);
    ASSERT(untouched.round == 4711 && none == 0);
    buf_init(&again, MEET_FRAME_MAX);
    ASSERT(meet_frame_append(&frame, &again) == 0);
    /* a NUL in a text ends it */
    ASSERT(again.length == used ? !memcmp(again.data, bytes, used)
                                : frame.kind == MEET_NOTICE || frame.kind == MEET_REFUSED);
    buf_release(&again);
    return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t used = 0;

    if (size < 1)
        return 0;
    if (data[0] % 2) {
        char *text = mem_strndup((const char *)(data + 1), size - 1);
        char written[MEET_CONTACT_MAX], again[MEET_CONTACT_MAX];
        struct hvd_err err = { .text = "" };
        struct meet_contact contact;

        ASSERT(text);
        if (meet_contact_read(text, &contact, &err)) {
            ASSERT(err.code == HVD_E_INVAL && err.text[0]);
        } else {
            meet_contact_write(&contact, written);
            ASSERT(meet_contact_read(written, &contact, NULL) == 0);
            meet_contact_write(&contact, again);
            ASSERT(!strcmp(written, again));
        }
        mem_free(text);
        return 0;
    }
    for (size_t at = 1; at < size; at += used) {
        used = check_frame(data + at, size - at);
        if (!used)
            break;
    }
    return 0;
}
