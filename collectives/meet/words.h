/*
 * words.h: what peers say to each other where they meet, in frames: a kind, a length, and that
 * many bytes.
 *
 *     who dials: HELLO ──►            ◄── WELCOME or REFUSED :who is dialled
 *     then both, as long as the round lives: NOTICE (why it is over for me), BYE (I am done)
 */
#ifndef COLLECTIVES_MEET_WORDS_H
#define COLLECTIVES_MEET_WORDS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

#define MEET_VERSION      1
#define MEET_SECRET_BYTES 16
#define MEET_FRAME_MAX    1024
#define MEET_ADDRESS_MAX  384
#define MEET_TEXT_MAX     ERR_TEXT_MAX

enum meet_kind {
    MEET_HELLO = 1,
    MEET_WELCOME = 2,
    MEET_REFUSED = 3,
    MEET_NOTICE = 4,
    MEET_BYE = 5,
};

struct meet_frame {
    enum meet_kind kind;
    uint8_t secret[MEET_SECRET_BYTES]; /* HELLO: of who is dialled */
    uint64_t round, from, to, roster;  /* HELLO: incarnations, and a sum of the whole roster */
    uint8_t address[MEET_ADDRESS_MAX]; /* HELLO, WELCOME: how the sender is reached */
    size_t address_length;
    int code;                 /* REFUSED, NOTICE */
    uint32_t rank;            /* NOTICE: whose fault it is; MEET_NOBODY */
    char text[MEET_TEXT_MAX]; /* REFUSED, NOTICE */
};
#define MEET_NOBODY UINT32_MAX

/* Appends the frame: 0, HVD_E_NOMEM, HVD_E_LIMIT. */
int meet_frame_append(const struct meet_frame *frame, struct buf *buf) MUST_CHECK;

/* 1: *ret_frame, which took *ret_used bytes; 0: there must come more; HVD_E_PROTO, HVD_E_VERSION.
 */
int meet_frame_read(const uint8_t *bytes, size_t length, struct meet_frame *ret_frame,
                    size_t *ret_used) MUST_CHECK;

/* A contact: "10.0.0.7:4002/SECRET", "[fe80::1]:4002/SECRET". */
struct meet_contact {
    char host[64];
    uint16_t port;
    uint8_t secret[MEET_SECRET_BYTES];
};
#define MEET_CONTACT_MAX 128
int meet_contact_read(const char *text, struct meet_contact *ret_contact,
                      struct hvd_err *err) MUST_CHECK;
void meet_contact_write(const struct meet_contact *contact, char text[MEET_CONTACT_MAX]);

#endif
