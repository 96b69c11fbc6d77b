/*
 * frame.h: bytes in, whole frames out. No socket: the reader of a socket feeds the bytes that came.
 *
 * A frame is a header of 12 bytes and a body, integers little-endian:
 *     0  magic    "hvdE"
 *     4  major    u8    PROTO_MAJOR
 *     5  flags    u8    bit 0: a receiver that does not know the type skips the frame
 *     6  type     u16   enum msg_type
 *     8  length   u32   bytes of the body
 *
 * The header is judged before anything is allocated for the body, and the memory for the body
 * grows with the bytes that arrive, not with the length that was claimed.
 */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include "base/buf.h"
#include "base/err.h"

#define FRAME_HEADER_BYTES 12
#define FRAME_MAY_SKIP     0x1u

/* The error about a frame of another major version begins so. */
#define FRAME_OTHER_MAJOR "the other side speaks protocol"

struct frame {
    uint16_t type;
    uint8_t flags;
    const uint8_t *body; /* borrowed from the reader until the next frame_feed */
    size_t length;
};

struct frame_reader {
    uint8_t header[FRAME_HEADER_BYTES];
    size_t header_have; /* bytes of the header that have come */
    struct buf body;
    /* the length that the header says; of a frame that is skipped: bytes still to come */
    size_t body_length;
    /* the longest body that this connection accepts now; a message of the catalogue may have a
     * lower limit */
    size_t body_max;
    int broken;    /* the error code of a stream that is no sequence of frames; 0: no error */
    bool complete; /* the last frame_feed returned a frame */
    /* true: the memory of a large body is kept for the next frame; set by a caller that expects
     * many large frames */
    bool keeps;
};

/* Initialises a reader that accepts no body longer than body_max bytes; see
 * frame_reader_set_max. */
void frame_reader_init(struct frame_reader *reader, size_t body_max);
void frame_reader_release(struct frame_reader *reader);

/* Changes the longest body that the reader accepts. A connection starts with a short one, and gets
 * LIMIT_FRAME_BODY_BYTES when the peer is known. */
void frame_reader_set_max(struct frame_reader *reader, size_t body_max);

/*
 * Takes bytes from the input (*bytes, with *length), and moves both along, until one frame is whole
 * or the input is used up. Returns 1 with *ret_frame filled, 0 when more bytes are needed, or a
 * negative code: HVD_E_PROTO (the bytes are no frame, or a message that the catalogue does not
 * have), HVD_E_VERSION, HVD_E_LIMIT, HVD_E_NOMEM. After an error the reader cannot tell where the
 * next frame begins: every later call returns the same code, and the connection must be closed. A
 * frame of an unknown type that may be skipped is passed over silently.
 */
int frame_feed(struct frame_reader *reader, const uint8_t **bytes, size_t *length,
               struct frame *ret_frame, struct hvd_err *err);

/* While a body is being received, the caller may write the next bytes directly into the body:
 * frame_body_room returns memory for `most` bytes or less, and frame_body_add says how many bytes
 * were written there. Such bytes are not passed to frame_feed. NULL: no body is being received now,
 * or memory is out. */
uint8_t *frame_body_room(struct frame_reader *reader, size_t most, size_t *ret_room);
void frame_body_add(struct frame_reader *reader, size_t length);

/* true: the next frame_feed returns a frame without further bytes. */
bool frame_reader_is_whole(const struct frame_reader *reader);

/* true: bytes of an unfinished frame are waiting, so an end of the stream now is a truncation. */
bool frame_reader_midway(const struct frame_reader *reader);

void frame_write_header(uint8_t header[FRAME_HEADER_BYTES], uint16_t type, uint8_t flags,
                        uint32_t length);

#endif
