/*
 * frame.c: bytes in, whole frames out. Called by wire/, which owns the sockets, and by fuzzers. The
 * whole header is checked before memory is taken for the body (PROTOCOL.md, F1 to F4); after an
 * error the reader stays broken.
 */
#include "proto/frame.h"

#include "base/limits.h"
#include "base/panic.h"
#include "base/text.h"
#include "proto/catalog.h"

#include <string.h>

/* The reader's memory for a body is freed after a frame if it has grown beyond this size: large
 * frames are rare. */
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

/* true: a part of a frame has come, and not the whole frame: a stream must not end now. */
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

/* true: the frame whose header was read has a type that this process does not know, and its flags
 * say that such a receiver skips the frame. */
static bool is_skipped(const struct frame_reader *reader)
{
    return !msg_kind(header_type(reader->header)) && (reader->header[5] & FRAME_MAY_SKIP);
}

/* Checks all fields of the header that has come, before a byte of the body is kept. */
static int judge_header(const struct frame_reader *reader, struct hvd_err *err)
{
    const uint8_t *header = reader->header;
    const struct msg_kind *kind = msg_kind(header_type(header));
    uint32_t length = header_length(header);
    char quoted[TEXT_QUOTE_MAX];

    if (memcmp(header, magic, sizeof(magic)) != 0)
        return err_set(err, HVD_E_PROTO,
                       "%s: these bytes are no frame of hvd-elastic; check that the address and "
                       "port are those of hvd-elastic",
                       text_quote((const char *)header, FRAME_HEADER_BYTES, quoted));
    if (header[4] != PROTO_MAJOR)
        return err_set(err, HVD_E_VERSION,
                       FRAME_OTHER_MAJOR " %u, and this program speaks protocol %u; "
                                         "install the same version of hvd-elastic on both sides",
                       header[4], PROTO_MAJOR);
    if (!kind && !is_skipped(reader))
        return err_set(err, HVD_E_PROTO, MSG_UNKNOWN, header_type(header));
    if (length > reader->body_max || (kind && length > kind->body_max))
        return err_set(err, HVD_E_LIMIT, "%s has %u bytes; at most %zu bytes are accepted",
                       kind ? kind->name : "a skipped message", length,
                       kind && kind->body_max < reader->body_max ? kind->body_max
                                                                 : reader->body_max);
    return 0;
}

/* Takes at most `wanted` bytes off the front of the input, which is *bytes with *length. Returns
 * the number of bytes that were taken; the caller copies them. */
static size_t take_bytes(const uint8_t **bytes, size_t *length, size_t wanted)
{
    size_t taken = wanted < *length ? wanted : *length;

    *bytes += taken;
    *length -= taken;
    return taken;
}

/* Prepares the reader for the next frame. A large buffer is freed, unless the connection carries
 * many large frames (`keeps`). */
static void frame_start_over(struct frame_reader *reader)
{
    reader->header_have = 0;
    reader->body_length = 0;
    reader->complete = false;
    if (reader->body.capacity > KEPT_BODY_BYTES && !reader->keeps)
        buf_release(&reader->body);
}

/* Takes bytes off the input, which is *bytes with *length. 1: *ret_frame is a whole frame, which
 * lies in the reader until the next call; 0: more bytes are needed; negative: the input is no
 * frame, and the reader refuses all that follows. */
int frame_feed(struct frame_reader *reader, const uint8_t **bytes, size_t *length,
               struct frame *ret_frame, struct hvd_err *err)
{
    const uint8_t *from;
    size_t taken;
    int rc = 0;

    if (reader->broken)
        return err_set(err, reader->broken, "the connection is broken: %s",
                       err_text(reader->broken));
    if (reader->complete)
        frame_start_over(reader);
    /* The loop also runs without input if the header is whole: then the body may be whole too,
     * because it is empty, or because the caller has read it directly into the body's memory
     * (frame_body_room, frame_body_add). */
    while (*length > 0 || reader->header_have == FRAME_HEADER_BYTES) {
        if (reader->header_have < FRAME_HEADER_BYTES) {
            from = *bytes;
            taken = take_bytes(bytes, length, FRAME_HEADER_BYTES - reader->header_have);
            memcpy(reader->header + reader->header_have, from, taken);
            reader->header_have += taken;
            if (reader->header_have < FRAME_HEADER_BYTES)
                break;
            /* PROTOCOL.md, F1: the whole header is checked before memory is taken for the body. */
            rc = judge_header(reader, err);
            if (rc)
                break;
            reader->body_length = header_length(reader->header);
            buf_clear(&reader->body);
        }
        if (is_skipped(reader)) {
            /* the bytes of a frame that is skipped are counted down, not kept */
            reader->body_length -= take_bytes(bytes, length, reader->body_length);
            if (reader->body_length > 0)
                break;
            frame_start_over(reader);
            continue;
        }
        from = *bytes;
        taken = take_bytes(bytes, length, reader->body_length - reader->body.length);
        rc = buf_append(&reader->body, from, taken);
        if (rc)
            err_set(err, rc, "no memory for a frame of %zu bytes; free memory on this host",
                    reader->body_length);
        if (rc || reader->body.length < reader->body_length)
            break;
        reader->complete = true;
        *ret_frame = (struct frame){ .type = header_type(reader->header),
                                     .flags = reader->header[5],
                                     .body = (const uint8_t *)buf_text(&reader->body),
                                     .length = reader->body_length };
        return 1;
    }
    if (rc < 0)
        reader->broken = rc;
    return rc;
}

/* true: the header of a frame has come, and its body is being received and kept. */
static bool is_in_body(const struct frame_reader *reader)
{
    return reader->header_have == FRAME_HEADER_BYTES && !reader->complete && !reader->broken &&
           !is_skipped(reader);
}

/* true: all bytes of a frame have come, but frame_feed has not returned the frame yet. */
bool frame_reader_is_whole(const struct frame_reader *reader)
{
    return is_in_body(reader) && reader->body.length == reader->body_length;
}

/* Returns memory for the next bytes of the body, at most `most`: the caller reads them from the
 * socket directly into it, and then calls frame_body_add. *ret_room: how many bytes the memory has.
 * NULL: no body is being received, or no memory is left. */
uint8_t *frame_body_room(struct frame_reader *reader, size_t most, size_t *ret_room)
{
    size_t missing = is_in_body(reader) ? reader->body_length - reader->body.length : 0;
    size_t room = missing < most ? missing : most;

    if (room == 0 || buf_reserve(&reader->body, room))
        return NULL;
    *ret_room = room;
    return (uint8_t *)reader->body.data + reader->body.length;
}

/* Called when `length` bytes were written to the memory that frame_body_room has returned. */
void frame_body_add(struct frame_reader *reader, size_t length)
{
    reader->body.length += length;
    ASSERT(reader->body.length <= reader->body_length);
    reader->body.data[reader->body.length] = '\0';
}

/* Writes the header of a frame; PROTOCOL.md, section 2, has its fields. */
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
