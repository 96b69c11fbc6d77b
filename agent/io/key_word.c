/*
 * key_word.c: the key of a host as text. Called by the agent's options, by main.c and by loop.c.
 * Invariant: a text that is no key leaves the caller's key as it is.
 */
#include "agent/io/key_word.h"

#include "base/hex.h"
#include "base/text.h"
#include "seal/seal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Reads a key of two hexadecimal digits a byte; HVD_E_INVAL: the text is no key. */
int key_digits(const char *text, uint8_t ret_key[TLS_KEY_BYTES])
{
    uint8_t key[TLS_KEY_BYTES];

    if (strlen(text) != 2 * (size_t)TLS_KEY_BYTES || !hex_read_typed(text, TLS_KEY_BYTES, key))
        return HVD_E_INVAL;
    memcpy(ret_key, key, sizeof(key));
    seal_wipe(key, sizeof(key));
    return 0;
}

/* Writes "key=EPOCH:DIGITS", two hexadecimal digits for each byte of the key. */
void key_word_write(uint64_t epoch, const uint8_t key[TLS_KEY_BYTES], char word[KEY_WORD_MAX])
{
    size_t length = (size_t)snprintf(word, KEY_WORD_MAX, KEY_WORD "%" PRIu64 ":", epoch);

    hex_write(key, TLS_KEY_BYTES, word + length);
}

/* Reads "key=EPOCH:DIGITS"; HVD_E_INVAL: the text has another form. The epoch is the number of the
 * key: a later key has a higher one. */
int key_word_read(const char *text, uint64_t *ret_epoch, uint8_t ret_key[TLS_KEY_BYTES])
{
    const char *digits = strchr(text, ':');
    struct span number;
    uint64_t epoch;
    int rc;

    if (strncmp(text, KEY_WORD, strlen(KEY_WORD)) != 0 || !digits)
        return HVD_E_INVAL;
    number.at = text + strlen(KEY_WORD);
    number.length = (size_t)(digits - number.at);
    rc = text_parse_u64(number, 0, UINT64_MAX, "the epoch", &epoch, NULL);
    if (!rc)
        rc = key_digits(digits + 1, ret_key);
    if (!rc)
        *ret_epoch = epoch;
    return rc ? HVD_E_INVAL : 0;
}

/* Derives the id of a job from its key, for an agent whose driver has sent no id. The id says
 * nothing about the key. */
int key_job(const uint8_t key[TLS_KEY_BYTES], char id[KEY_JOB_MAX])
{
    uint8_t bytes[(KEY_JOB_MAX - 1) / 2];
    int rc = seal_derive(key, TLS_KEY_BYTES, "hvd job", "", 0, bytes, sizeof(bytes));

    if (!rc)
        hex_write(bytes, sizeof(bytes), id);
    return rc;
}
