/*
 * meet_wire.h: the frames that peers send over a control connection. A frame is a kind, a length,
 * and that many bytes.
 *
 *     the side that accepts: CHALLENGE ──►    ◄── HELLO :the side that dials
 *                            WELCOME or REFUSED ──►
 *     then both sides, as long as the round lives:
 *         NOTICE (why the round is over for the sender), BYE (the sender makes no further call)
 *
 * Every frame after the CHALLENGE ends in a proof: an HMAC of its bytes and of its number on this
 * connection, under a key for one direction of this connection (proof.h). No secret is in a frame.
 */
#ifndef COLLECTIVES_MEET_WIRE_H
#define COLLECTIVES_MEET_WIRE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "seal/seal.h"

#define MEET_VERSION      2
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
    MEET_CHALLENGE = 6,
};

/* A frame, read or to be written; the comment of a field names the kinds of frames that have it. */
struct meet_frame {
    enum meet_kind kind;
    uint8_t nonce[SEAL_NONCE_BYTES]; /* CHALLENGE, HELLO: random bytes of the sender */
    /* HELLO: the round, the incarnations of sender and receiver, and a hash of the whole roster */
    uint64_t round, from, to, roster;
    uint8_t address[MEET_ADDRESS_MAX]; /* HELLO, WELCOME: where the sender's segment and link are */
    size_t address_length;
    int code;                        /* REFUSED, NOTICE: an error code */
    uint32_t rank;                   /* NOTICE: the rank that caused the failure, or MEET_NOBODY */
    char text[MEET_TEXT_MAX];        /* REFUSED, NOTICE: the reason */
    uint8_t gate[SEAL_PROOF_BYTES];  /* HELLO: the sender has the contact */
    uint8_t proof[SEAL_PROOF_BYTES]; /* the sender is a member of the round; in a REFUSED: the
                                      * sender has the contact; none in a CHALLENGE */
};
#define MEET_NOBODY UINT32_MAX

/* Appends the bytes of the frame to `buf`. HVD_E_NOMEM: no memory is left; HVD_E_LIMIT: the frame's
 * address is too long. */
int meet_frame_append(const struct meet_frame *frame, struct buf *buf) MUST_CHECK;

/* Makes the proof for a frame. `number`: how many frames were proved with `key` before this one.
 * HVD_E_NOMEM: no memory is left; HVD_E_LIMIT: the frame's address is too long. */
int meet_frame_prove(const struct meet_frame *frame, const uint8_t key[SEAL_KEY_BYTES],
                     uint64_t number, uint8_t ret_proof[SEAL_PROOF_BYTES]) MUST_CHECK;

/* Reads a frame from the beginning of the bytes. 1: *ret_frame is the frame, and it took *ret_used
 * bytes; 0: the frame is not complete yet; HVD_E_PROTO: the bytes are no frame; HVD_E_VERSION: the
 * sender has another version. */
int meet_frame_read(const uint8_t *bytes, size_t length, struct meet_frame *ret_frame,
                    size_t *ret_used) MUST_CHECK;

/* A contact: where a worker listens, and the secret that a peer must prove. As text:
 * "10.0.0.7:4002/SECRET", "[fe80::1]:4002/SECRET". */
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
