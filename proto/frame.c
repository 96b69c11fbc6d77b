#include "proto/frame.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/text.h"
#include "proto/catalog.h"

#include <string.h>

/* A body buffer larger than this is given back after its frame: large ones are rare. */
#define KEPT_BODY_BYTES (64 * 1024)

static const uint8_t magic[4] = { 'h', 'v', 'd', 'E' };

void frame_reader_init(struct frame_reader *reader, size_t body_max)
{
    ASSERT(body_max <= LIMIT_FRAME_BODY_BYTES);
    *reader = (struct frame_reader){ .body_max = body_max };
    buf_init(&reader->body, LIMIT_FRAME_BODY_BYTES);
}

void frame_reader_release(struct frame_reader *reader)
{
    if (reader)
        buf_release(&reader->body);
}

void frame_reader_set_max(struct frame_reader *reader, size_t body_max)
{
    ASSERT(body_max <= LIMIT_FRAME_BODY_BYTES);
    reader->body_max = body_max;
}

void frame_reader_keep(struct frame_reader *reader)
{
    reader->keeps = true;
}

bool frame_reader_midway(const struct frame_reader *reader)
{
    return reader->header_have > 0 && !reader->complete;
}

static uint16_t header_type(const uint8_t *header)
{
    return (uint16_t)(header[6] | header[7] << 8);
}

static uint32_t header_length(const uint8_t *header)
{
    return (uint32_t)header[8] | (uint32_t)header[9] << 8 | (uint32_t)header[10] << 16 |
           (uint32_t)header[11] << 24;
}

static bool is_skipped(const struct frame_reader *reader)
{
    return !msg_kind(header_type(reader->header)) && (reader->header[5] & FRAME_MAY_SKIP);
}

/* Everything a header can be refused for, before a byte of the body is kept. */
static int judge_header(const struct frame_reader *reader, struct hvd_err *err)
{
    const uint8_t *header = reader->header;
    const struct msg_kind *kind = msg_kind(header_type(header));
    uint32_t length = header_length(header);
    char quoted[TEXT_QUOTE_MAX];

    if (memcmp(header, magic, sizeof(magic)) != 0)
        return err_set(err, HVD_E_PROTO, "%s: not a frame of hvd-elastic; is this its port?",
                       text_quote((const char *)header, FRAME_HEADER_BYTES, quoted));
    if (header[4] != PROTO_MAJOR)
        return err_set(err, HVD_E_VERSION,
                       "the other side speaks protocol %u, this program %u; install the same "
                       "version of hvd-elastic on both",
                       header[4], PROTO_MAJOR);
    if (!kind && !is_skipped(reader))
        return err_set(err, HVD_E_PROTO, "message %u is unknown", header_type(header));
    if (length > reader->body_max || (kind && length > kind->body_max))
        return err_set(err, HVD_E_LIMIT, "%s of %u bytes; at most %zu are accepted here",
                       kind ? kind->name : "a skipped message", length,
                       kind && kind->body_max < reader->body_max ? kind->body_max
                                                                 : reader->body_max);
    return 0;
}

static size_t take(const uint8_t **bytes, size_t *length, size_t wanted)
{
    size_t taken = wanted < *length ? wanted : *length;

    *bytes += taken;
    *length -= taken;
    return taken;
}

/* The header's bytes, then its judgement; 1 when it is whole and good. */
static int feed_header(struct frame_reader *reader, const uint8_t **bytes, size_t *length,
                       struct hvd_err *err)
{
    const uint8_t *from = *bytes;
    size_t taken = take(bytes, length, FRAME_HEADER_BYTES - reader->header_have);
    int rc;

    if (taken)
        memcpy(reader->header + reader->header_have, from, taken);
    reader->header_have += taken;
    if (reader->header_have < FRAME_HEADER_BYTES)
        return 0;
    rc = judge_header(reader, err);
    if (rc)
        return rc;
    reader->body_length = header_length(reader->header);
    buf_clear(&reader->body);
    return 1;
}

static void start_over(struct frame_reader *reader)
{
    reader->header_have = 0;
    reader->body_length = 0;
    reader->complete = false;
    if (reader->body.capacity > KEPT_BODY_BYTES && !reader->keeps)
        buf_release(&reader->body);
}

/* 1: the frame is whole. */
static int feed_body(struct frame_reader *reader, const uint8_t **bytes, size_t *length)
{
    const uint8_t *from = *bytes;
    size_t taken;
    int rc;

    if (is_skipped(reader)) {
        /* its bytes are counted down, not kept */
        reader->body_length -= take(bytes, length, reader->body_length);
        return reader->body_length == 0;
    }
    taken = take(bytes, length, reader->body_length - reader->body.length);
    rc = buf_append(&reader->body, from, taken);
    if (rc)
        return rc;
    return reader->body.length == reader->body_length;
}

int frame_feed(struct frame_reader *reader, const uint8_t **bytes, size_t *length,
               struct frame *ret_frame, struct hvd_err *err)
{
    int rc = 0;

    if (reader->broken)
        return err_set(err, reader->broken, "the connection is broken: %s",
                       err_text(reader->broken));
    if (reader->complete)
        start_over(reader);
    while (*length > 0 || reader->header_have == FRAME_HEADER_BYTES) {
        if (reader->header_have < FRAME_HEADER_BYTES) {
            rc = feed_header(reader, bytes, length, err);
            if (rc <= 0)
                break;
        }
        rc = feed_body(reader, bytes, length);
        if (rc < 0)
            err_set(err, rc, "no memory for a frame of %zu bytes", reader->body_length);
        if (rc <= 0)
            break;
        if (!is_skipped(reader)) {
            reader->complete = true;
            *ret_frame = (struct frame){ .type = header_type(reader->header),
                                         .flags = reader->header[5],
                                         .body = (const uint8_t *)buf_text(&reader->body),
                                         .length = reader->body_length };
            return 1;
        }
        start_over(reader);
        rc = 0;
    }
    if (rc < 0)
        reader->broken = rc;
    return rc;
}

static bool is_in_body(const struct frame_reader *reader)
{
    return reader->header_have == FRAME_HEADER_BYTES && !reader->complete && !reader->broken &&
           !is_skipped(reader);
}

bool frame_reader_is_whole(const struct frame_reader *reader)
{
    return is_in_body(reader) && reader->body.length == reader->body_length;
}

uint8_t *frame_body_room(struct frame_reader *reader, size_t most, size_t *ret_room)
{
    size_t left = is_in_body(reader) ? reader->body_length - reader->body.length : 0;
    size_t room = left < most ? left : most;

    if (room == 0 || buf_reserve(&reader->body, room))
        return NULL;
    *ret_room = room;
    return (uint8_t *)reader->body.data + reader->body.length;
}

void frame_body_add(struct frame_reader *reader, size_t length)
{
    reader->body.length += length;
    ASSERT(reader->body.length <= reader->body_length);
    reader->body.data[reader->body.length] = '\0';
}

void frame_write_header(uint8_t header[FRAME_HEADER_BYTES], uint16_t type, uint8_t flags,
                        uint32_t length)
{
    memcpy(header, magic, sizeof(magic));
    header[4] = PROTO_MAJOR;
    header[5] = flags;
    header[6] = (uint8_t)(type & 0xff);
    header[7] = (uint8_t)(type >> 8);
    for (int i = 0; i < 4; i++)
        header[8 + i] = (uint8_t)(length >> 8 * i);
}
