/*
 * meet_wire.c: frames of control connections as bytes, and contacts as text. Bytes that come from a
 * network are checked here; a frame that has a byte too few or too many is refused.
 */
#include "collectives/meet/meet_wire.h"

#include "base/hex.h"
#include "base/text.h"
#include "collectives/link/tcp_wire.h"

#include <stdio.h>
#include <string.h>

/*
 * A frame is a head and a body. Numbers are little-endian; (n) is the length of a field in bytes.
 *
 *     head      kind (1), length of the body (2)
 *     CHALLENGE version (2), nonce (16)
 *     HELLO     version (2), nonce (16), round (8), from (8), to (8), roster (8),
 *               address (all other bytes of the body), gate (32), proof (32)
 *     WELCOME   address (all other bytes of the body), proof (32)
 *     REFUSED   code (4, negative), rank (4), text (all other bytes of the body), proof (32)
 *     NOTICE    the fields of REFUSED
 *     BYE       proof (32)
 *
 * Roster is a hash of all members of the round. Gate and proof are the tail of a frame, made of the
 * head and the body before the tail: the gate shows that the sender has the receiver's contact; the
 * proof shows that the sender is a member of the round. The proof of a REFUSED shows only that the
 * sender has the contact.
 */
#define HEAD_BYTES 3

/* A frame that is being written. Every frame fits: only its address can be too long. */
struct writer {
    uint8_t bytes[MEET_FRAME_MAX];
    size_t length;
};

/* Appends bytes to the frame. */
static void writer_put(struct writer *writer, const void *bytes, size_t length)
{
    memcpy(writer->bytes + writer->length, bytes, length);
    writer->length += length;
}

/* Appends a number of `bytes` bytes to the frame, little-endian. */
static void writer_put_number(struct writer *writer, uint64_t value, size_t bytes)
{
    wire_put(writer->bytes + writer->length, value, bytes);
    writer->length += bytes;
}

/* How many bytes the tail of a frame has: the gate, if the kind has one, and the proof. */
static size_t frame_tail_bytes(enum meet_kind kind)
{
    if (kind == MEET_CHALLENGE)
        return 0;
    return kind == MEET_HELLO ? 2 * (size_t)SEAL_PROOF_BYTES : SEAL_PROOF_BYTES;
}

/* Writes the frame without its tail (gate and proof). */
static int writer_put_frame(struct writer *writer, const struct meet_frame *frame)
{
    size_t body;

    if (frame->address_length > MEET_ADDRESS_MAX)
        return HVD_E_LIMIT;
    writer->length = HEAD_BYTES;
    switch (frame->kind) {
    case MEET_CHALLENGE:
        writer_put_number(writer, MEET_VERSION, 2);
        writer_put(writer, frame->nonce, sizeof(frame->nonce));
        break;
    case MEET_HELLO:
        writer_put_number(writer, MEET_VERSION, 2);
        writer_put(writer, frame->nonce, sizeof(frame->nonce));
        writer_put_number(writer, frame->round, 8);
        writer_put_number(writer, frame->from, 8);
        writer_put_number(writer, frame->to, 8);
        writer_put_number(writer, frame->roster, 8);
        writer_put(writer, frame->address, frame->address_length);
        break;
    case MEET_WELCOME: writer_put(writer, frame->address, frame->address_length); break;
    case MEET_REFUSED:
    case MEET_NOTICE:
        writer_put_number(writer, (uint32_t)frame->code, 4);
        writer_put_number(writer, frame->rank, 4);
        writer_put(writer, frame->text, strnlen(frame->text, sizeof(frame->text) - 1));
        break;
    case MEET_BYE: break;
    }
    body = writer->length - HEAD_BYTES + frame_tail_bytes(frame->kind);
    writer->bytes[0] = (uint8_t)frame->kind;
    writer->bytes[1] = (uint8_t)body;
    writer->bytes[2] = (uint8_t)(body >> 8);
    return 0;
}

/* Appends the whole frame to the buffer: head, body, and the tail with the gate and the proof.
 * HVD_E_LIMIT: the address is too long; or the code of buf_append. */
int meet_frame_append(const struct meet_frame *frame, struct buf *buf)
{
    struct writer writer;
    int rc = writer_put_frame(&writer, frame);

    if (rc)
        return rc;
    if (frame->kind == MEET_HELLO)
        writer_put(&writer, frame->gate, sizeof(frame->gate));
    if (frame->kind != MEET_CHALLENGE)
        writer_put(&writer, frame->proof, sizeof(frame->proof));
    return buf_append(buf, writer.bytes, writer.length);
}

/* Makes the proof of a frame: over its bytes without the tail, and over `number`, which counts the
 * proofs made with this key. So the receiver notices a frame that is repeated or missing. */
int meet_frame_prove(const struct meet_frame *frame, const uint8_t key[SEAL_KEY_BYTES],
                     uint64_t number, uint8_t ret_proof[SEAL_PROOF_BYTES])
{
    struct writer writer;
    int rc = writer_put_frame(&writer, frame);

    return rc ? rc : seal_prove(key, number, writer.bytes, writer.length, ret_proof);
}

/* Reads the fields of a body. A read past the end sets `bad` (the frame is refused), and gives 0.
 */
struct reader {
    const uint8_t *at;
    size_t left;
    bool bad;
};

/* Takes the next `length` bytes. Too few bytes set `bad`, which meet_frame_read checks later. */
static void reader_get(struct reader *reader, void *bytes, size_t length)
{
    if (reader->left < length) {
        reader->bad = true;
        return;
    }
    if (length)
        memcpy(bytes, reader->at, length);
    reader->at += length;
    reader->left -= length;
}

/* Takes a number of `bytes` bytes; 0 if the body is too short, and then `bad` is set. */
static uint64_t reader_get_number(struct reader *reader, size_t bytes)
{
    uint8_t raw[8] = { 0 };

    reader_get(reader, raw, bytes);
    return wire_get(raw, bytes);
}

/* Takes all bytes before the tail, at most `max`. Returns how many; 0 also if there are more, or if
 * the tail is not whole, and then `bad` is set. */
static size_t reader_get_rest(struct reader *reader, size_t tail, void *bytes, size_t max)
{
    size_t length = reader->left - tail;

    if (reader->left < tail || length > max) {
        reader->bad = true;
        return 0;
    }
    reader_get(reader, bytes, length);
    return length;
}

/* Reads one frame from the beginning of the bytes. 1: *ret_frame is the frame, and it takes
 * *ret_used bytes; 0: the frame is not complete yet; HVD_E_PROTO: the bytes are no frame;
 * HVD_E_VERSION: the peer speaks another version. */
int meet_frame_read(const uint8_t *bytes, size_t length, struct meet_frame *ret_frame,
                    size_t *ret_used)
{
    struct meet_frame frame = { .rank = MEET_NOBODY };
    struct reader reader;
    size_t body, tail;

    if (length < HEAD_BYTES)
        return 0;
    body = (size_t)bytes[1] | (size_t)bytes[2] << 8;
    if (bytes[0] < MEET_HELLO || bytes[0] > MEET_CHALLENGE || body > MEET_FRAME_MAX - HEAD_BYTES)
        return HVD_E_PROTO;
    if (length < HEAD_BYTES + body)
        return 0;
    frame.kind = (enum meet_kind)bytes[0];
    tail = frame_tail_bytes(frame.kind);
    reader = (struct reader){ bytes + HEAD_BYTES, body, false };
    if ((frame.kind == MEET_CHALLENGE || frame.kind == MEET_HELLO) &&
        reader_get_number(&reader, 2) != MEET_VERSION && !reader.bad)
        return HVD_E_VERSION;
    switch (frame.kind) {
    case MEET_CHALLENGE: reader_get(&reader, frame.nonce, sizeof(frame.nonce)); break;
    case MEET_HELLO:
        reader_get(&reader, frame.nonce, sizeof(frame.nonce));
        frame.round = reader_get_number(&reader, 8);
        frame.from = reader_get_number(&reader, 8);
        frame.to = reader_get_number(&reader, 8);
        frame.roster = reader_get_number(&reader, 8);
        frame.address_length = reader_get_rest(&reader, tail, frame.address, sizeof(frame.address));
        reader_get(&reader, frame.gate, sizeof(frame.gate));
        break;
    case MEET_WELCOME:
        frame.address_length = reader_get_rest(&reader, tail, frame.address, sizeof(frame.address));
        break;
    case MEET_REFUSED:
    case MEET_NOTICE:
        frame.code = (int)(int32_t)(uint32_t)reader_get_number(&reader, 4);
        frame.rank = (uint32_t)reader_get_number(&reader, 4);
        frame.text[reader_get_rest(&reader, tail, frame.text, sizeof(frame.text) - 1)] = '\0';
        reader.bad = reader.bad || frame.code >= 0; /* error codes are negative */
        break;
    case MEET_BYE: break;
    }
    if (frame.kind != MEET_CHALLENGE)
        reader_get(&reader, frame.proof, sizeof(frame.proof));
    if (reader.bad || reader.left)
        return HVD_E_PROTO;
    *ret_frame = frame;
    *ret_used = HEAD_BYTES + body;
    return 1;
}

/* Reads the contact of a worker, "IP:PORT/SECRET": how other members dial that worker, and the
 * secret without which that worker refuses them. */
int meet_contact_read(const char *text, struct meet_contact *ret_contact, struct hvd_err *err)
{
    struct meet_contact contact = { .port = 0 };
    const char *slash = strrchr(text, '/');
    const char *colon = slash ? slash : text;
    char quoted[TEXT_QUOTE_MAX];
    struct span host;
    bool is_secret;
    uint64_t port;

    /* The port follows the last colon. An address that itself has colons (IPv6) is in brackets. */
    while (colon > text && *colon != ':')
        colon--;
    host = (struct span){ text, (size_t)(colon - text) };
    if (host.length > 2 && host.at[0] == '[' && colon[-1] == ']')
        host = (struct span){ host.at + 1, host.length - 2 };
    else if (memchr(host.at, ':', host.length))
        host.length = 0;
    /* The secret follows the slash, as hexadecimal digits. */
    is_secret = slash && strlen(slash + 1) == 2 * (size_t)MEET_SECRET_BYTES &&
                hex_read(slash + 1, MEET_SECRET_BYTES, contact.secret);
    if (is_secret && *colon == ':' && host.length && host.length < sizeof(contact.host) &&
        strspn(host.at, "0123456789abcdefABCDEF.:") >= host.length &&
        !text_parse_u64((struct span){ colon + 1, (size_t)(slash - colon - 1) }, 1, UINT16_MAX,
                        "port", &port, NULL)) {
        memcpy(contact.host, host.at, host.length);
        contact.port = (uint16_t)port;
        *ret_contact = contact;
        return 0;
    }
    /* the end of the text is the secret, which an error must not show */
    return err_set(err, HVD_E_INVAL,
                   "%s is not the contact of a worker; a contact is IP:PORT/SECRET",
                   text_quote(text, strcspn(text, "/"), quoted));
}

/* Writes the contact as meet_contact_read reads it. An IPv6 address gets brackets, because it has
 * colons itself. */
void meet_contact_write(const struct meet_contact *contact, char text[MEET_CONTACT_MAX])
{
    bool colons = strchr(contact->host, ':') != NULL;
    int at = snprintf(text, MEET_CONTACT_MAX, "%s%s%s:%u/", colons ? "[" : "", contact->host,
                      colons ? "]" : "", (unsigned)contact->port);

    hex_write(contact->secret, MEET_SECRET_BYTES, text + at);
}
