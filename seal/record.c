/*
 * record.c: seals and opens records (record.h) by OpenSSL's AES-256-GCM: encrypts and decrypts
 * them, or makes and verifies their tags alone. Called by collectives/link. A direction has one
 * context, whose key stays until `rekey` records have used it; each tag gets a nonce of its own.
 *
 * Invariant: under one key no nonce is used twice. The nonce is the stream's base nonce with the
 * number of the tag: record n has the tags 2n (head) and 2n + 1 (data).
 */
#include "seal/record.h"

#include "base/mem.h"

#include <openssl/evp.h>
#include <string.h>

#define NONCE_BYTES 12

struct record_stream {
    EVP_CIPHER_CTX *cipher;
    enum seal_mode mode;
    bool seals;
    uint64_t number; /* the number of the next record */
    /* rekey: a key is used for so many records. keyed: for how many the present key was used */
    uint64_t rekey, keyed;
    uint8_t nonce[NONCE_BYTES];
    uint8_t next[SEAL_KEY_BYTES]; /* the secret from which the next key is derived */
};

/* Derives a key, its nonce, and the secret from which stream_advance derives the key after it; all
 * three become the stream's. On failure the stream cannot be used any more. from: the stream's key,
 * or the secret that was derived with the key before. */
static int stream_take_key(struct record_stream *stream, const uint8_t *from)
{
    uint8_t keys[SEAL_KEY_BYTES + NONCE_BYTES + SEAL_KEY_BYTES];
    int rc = seal_derive(from, SEAL_KEY_BYTES, "hvd record", NULL, 0, keys, sizeof(keys));

    if (!rc && !EVP_CipherInit_ex(stream->cipher, NULL, NULL, keys, NULL, stream->seals))
        rc = HVD_E_NOMEM;
    /* the derived bytes are the key, then the nonce, then the secret of the next key */
    memcpy(stream->nonce, keys + SEAL_KEY_BYTES, NONCE_BYTES);
    memcpy(stream->next, keys + SEAL_KEY_BYTES + NONCE_BYTES, SEAL_KEY_BYTES);
    seal_wipe(keys, sizeof(keys));
    stream->keyed = 0;
    return rc;
}

/* Makes a stream: the records of one direction of a connection. `seals`: the stream seals the
 * records of the sender; else it opens those of the peer. `rekey`: the number of records after
 * which the key is replaced. */
int record_stream_create(const uint8_t key[SEAL_KEY_BYTES], enum seal_mode mode, bool seals,
                         uint64_t rekey, struct record_stream **ret_stream)
{
    struct record_stream *stream = mem_zalloc(sizeof(*stream));
    EVP_CIPHER *cipher;
    int rc = HVD_E_NOMEM;

    if (!stream)
        return HVD_E_NOMEM;
    *stream = (struct record_stream){ .mode = mode, .seals = seals, .rekey = rekey };
    stream->cipher = EVP_CIPHER_CTX_new();
    cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    if (stream->cipher && cipher &&
        EVP_CipherInit_ex2(stream->cipher, cipher, NULL, NULL, seals, NULL))
        rc = stream_take_key(stream, key);
    EVP_CIPHER_free(cipher);
    if (rc)
        record_stream_free(stream);
    else
        *ret_stream = stream;
    return rc;
}

/* Wipes the keys and frees the stream, which may be NULL. */
void record_stream_free(struct record_stream *stream)
{
    if (!stream)
        return;
    EVP_CIPHER_CTX_free(stream->cipher);
    seal_wipe(stream, sizeof(*stream));
    mem_free(stream);
}

uint64_t record_stream_number(const struct record_stream *stream)
{
    return stream->number;
}

/* Begins the tag with the number `tag`: the proof that bytes were not changed. The tag covers
 * `bytes`, which are sent in clear, and then the bytes that tag_cover adds. */
static bool tag_begin(struct record_stream *stream, uint64_t tag, const uint8_t *bytes,
                      size_t length)
{
    uint8_t nonce[NONCE_BYTES];
    int done;

    /* the nonce of a tag: the stream's base nonce, whose last 8 bytes are combined with the tag's
     * number */
    memcpy(nonce, stream->nonce, NONCE_BYTES);
    for (size_t i = 0; i < sizeof(tag); i++)
        nonce[NONCE_BYTES - 1 - i] ^= (uint8_t)(tag >> (8 * i));
    return EVP_CipherInit_ex(stream->cipher, NULL, NULL, NULL, nonce, stream->seals) &&
           (!length || EVP_CipherUpdate(stream->cipher, NULL, &done, bytes, (int)length));
}

/* Ends a tag and writes it. The cipher has got all data before, so the last call of the cipher
 * writes no bytes to `none`. */
static bool tag_write(struct record_stream *stream, uint8_t *ret_tag)
{
    uint8_t none[RECORD_TAG_BYTES];
    int done;

    return EVP_CipherFinal_ex(stream->cipher, none, &done) &&
           EVP_CIPHER_CTX_ctrl(stream->cipher, EVP_CTRL_AEAD_GET_TAG, RECORD_TAG_BYTES, ret_tag);
}

/* Ends a tag and compares it with the tag that came with the record. true: the record is unchanged.
 * The tag is copied first, because OpenSSL takes no pointer to const. */
static bool tag_holds(struct record_stream *stream, const uint8_t *tag)
{
    uint8_t none[RECORD_TAG_BYTES], copy[RECORD_TAG_BYTES];
    int done;

    memcpy(copy, tag, sizeof(copy));
    return EVP_CIPHER_CTX_ctrl(stream->cipher, EVP_CTRL_AEAD_SET_TAG, RECORD_TAG_BYTES, copy) &&
           EVP_CipherFinal_ex(stream->cipher, none, &done) > 0;
}

/* Passes the data of a record through the cipher. SEAL_ENCRYPTED: the data are encrypted or
 * decrypted in place. Otherwise the tag covers the data, which do not change. */
static bool tag_cover(struct record_stream *stream, uint8_t *data, size_t length)
{
    uint8_t *to = stream->mode == SEAL_ENCRYPTED ? data : NULL;
    int done;

    return EVP_CipherUpdate(stream->cipher, to, &done, data, (int)length);
}

/* Called when a record is sealed or opened: the record after it has the next number, and perhaps
 * another key. */
static int stream_advance(struct record_stream *stream)
{
    uint8_t from[SEAL_KEY_BYTES];
    int rc;

    stream->number++;
    if (++stream->keyed < stream->rekey)
        return 0;
    memcpy(from, stream->next, sizeof(from));
    rc = stream_take_key(stream, from);
    seal_wipe(from, sizeof(from));
    return rc;
}

/* Seals a record in place: its head with the first tag, then its data with the second tag. A record
 * without data is its head alone. */
int record_seal(struct record_stream *stream, uint8_t *record, size_t length, size_t *ret_bytes)
{
    uint64_t tag = 2 * stream->number;
    uint8_t *data = record + RECORD_HEAD_BYTES;
    int rc;

    for (size_t i = 0; i < 4; i++)
        record[i] = (uint8_t)(length >> (8 * i));
    /* the first tag covers the length of the data, which the first 4 bytes of the record hold */
    if (!tag_begin(stream, tag, record, 4) || !tag_write(stream, record + 4))
        return HVD_E_NOMEM;
    if (length && (!tag_begin(stream, tag + 1, NULL, 0) || !tag_cover(stream, data, length) ||
                   !tag_write(stream, data + length)))
        return HVD_E_NOMEM;
    rc = stream_advance(stream);
    if (!rc)
        *ret_bytes = RECORD_HEAD_BYTES + length + (length ? RECORD_TAG_BYTES : 0);
    return rc;
}

/* Verifies the head of a record and returns the length of its data. Length 0: the record has no
 * data and is done. A length that is too large is refused before any data are awaited. */
int record_open_head(struct record_stream *stream, const uint8_t head[RECORD_HEAD_BYTES],
                     size_t *ret_length)
{
    size_t length = 0;

    for (size_t i = 0; i < 4; i++)
        length |= (size_t)head[i] << (8 * i);
    if (length > RECORD_DATA_BYTES || !tag_begin(stream, 2 * stream->number, head, 4) ||
        !tag_holds(stream, head + 4))
        return HVD_E_PROTO;
    *ret_length = length;
    return length ? 0 : stream_advance(stream);
}

/* Verifies the data of the record whose head was opened last, and decrypts them in place if the
 * mode is SEAL_ENCRYPTED. The tag of the data is behind them. */
int record_open_data(struct record_stream *stream, uint8_t *data, size_t length)
{
    if (!tag_begin(stream, 2 * stream->number + 1, NULL, 0) || !tag_cover(stream, data, length) ||
        !tag_holds(stream, data + length))
        return HVD_E_PROTO;
    return stream_advance(stream);
}
