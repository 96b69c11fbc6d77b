/*
 * key_word.h: the key of a host as text: as an option of the agent, and as the word by which a new
 * agent hands a later key over to the agent that runs already (PROTOCOL.md, "Operators").
 */
#ifndef AGENT_IO_KEY_WORD_H
#define AGENT_IO_KEY_WORD_H

#include "wire/tls.h"

#define KEY_WORD "key=" /* the word begins with this; EPOCH:DIGITS follow */
/* 21: the longest number of 64 bits has 20 digits, then comes the colon */
#define KEY_WORD_MAX (sizeof(KEY_WORD) + 21 + 2 * (size_t)TLS_KEY_BYTES)
#define KEY_JOB_MAX  17 /* bytes of a job's id: 16 digits and the NUL */

/* Reads 64 hexadecimal digits; upper and lower case digits are equal. HVD_E_INVAL: the text is no
 * key. */
int key_digits(const char *text, uint8_t ret_key[TLS_KEY_BYTES]) MUST_CHECK;

/* Writes the epoch and the key as a word, for example "key=7:0123...". */
void key_word_write(uint64_t epoch, const uint8_t key[TLS_KEY_BYTES], char word[KEY_WORD_MAX]);

/* Reads a word that key_word_write has written. HVD_E_INVAL: the text is no such word. */
int key_word_read(const char *text, uint64_t *ret_epoch, uint8_t ret_key[TLS_KEY_BYTES]) MUST_CHECK;

/* Makes the id of a job from its key, as 16 hexadecimal digits. Used when the driver has sent no
 * id. HVD_E_NOMEM: no memory is left. */
int key_job(const uint8_t key[TLS_KEY_BYTES], char id[KEY_JOB_MAX]) MUST_CHECK;

#endif
