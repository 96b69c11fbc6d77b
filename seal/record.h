/*
 * record.h: a stream of bytes as sealed records. To seal a record means to give it its tags, and to
 * encrypt its data if the mode is ENCRYPTED; to open it means to verify the tags, and to decrypt
 * the data. Each record is numbered, and the number is not sent: a record that was changed,
 * dropped, repeated, moved, or made by another sender does not open.
 *
 *     head (length, its tag)   data, its tag            a record without data is its head alone
 *
 * AUTHENTICATED: AES-256-GMAC, the data travel in clear. ENCRYPTED: AES-256-GCM. The head has a tag
 * of its own, so no changed length makes the receiver wait for bytes that never come.
 */
#ifndef SEAL_RECORD_H
#define SEAL_RECORD_H

#include "seal/seal.h"

enum seal_mode { SEAL_PLAIN, SEAL_AUTHENTICATED, SEAL_ENCRYPTED, SEAL_MODE_COUNT };

#define RECORD_TAG_BYTES  16
#define RECORD_HEAD_BYTES (4 + RECORD_TAG_BYTES)
#define RECORD_DATA_BYTES ((size_t)64 * 1024) /* the most data of one record */
#define RECORD_MAX        (RECORD_HEAD_BYTES + RECORD_DATA_BYTES + RECORD_TAG_BYTES)

/* The number of records after which a key is replaced. They have at most 2^34 blocks of AES, which
 * is the bound that TLS 1.3 sets for one key. */
#define RECORD_REKEY ((uint64_t)1 << 22)

/* The records of one direction of a connection, with the present key. A stream that has failed once
 * must not be used again. */
struct record_stream;

/* mode: AUTHENTICATED or ENCRYPTED. seals: true for the sender, which seals records; false for the
 * receiver, which opens records. rekey: RECORD_REKEY; tests pass less. Fails with HVD_E_NOMEM. */
int record_stream_create(const uint8_t key[SEAL_KEY_BYTES], enum seal_mode mode, bool seals,
                         uint64_t rekey, struct record_stream **ret_stream) MUST_CHECK;
void record_stream_free(struct record_stream *stream); /* NULL is allowed */
/* the number of the next record, counted from 0 */
uint64_t record_stream_number(const struct record_stream *stream);

/* Seals in place the data at record + RECORD_HEAD_BYTES. The RECORD_TAG_BYTES behind the data must
 * be free. *ret_bytes: the length of the whole record. Fails with HVD_E_NOMEM. */
int record_seal(struct record_stream *stream, uint8_t *record, size_t length,
                size_t *ret_bytes) MUST_CHECK;

/* Open a record in two steps, as its bytes arrive: first its head; then, unless *ret_length is 0,
 * the data and their tag, in place. HVD_E_PROTO: this is not the next record of the peer;
 * HVD_E_NOMEM. */
int record_open_head(struct record_stream *stream, const uint8_t head[RECORD_HEAD_BYTES],
                     size_t *ret_length) MUST_CHECK;
int record_open_data(struct record_stream *stream, uint8_t *data, size_t length) MUST_CHECK;

#endif
