/*
 * tls.h: TLS 1.3 with a job's key, as both ends of a connection use it. No certificates: whoever
 * has the key belongs to the job, and nobody else gets past the handshake.
 */
#ifndef WIRE_TLS_H
#define WIRE_TLS_H

#include "base/err.h"

#define TLS_KEY_BYTES 32
#define TLS_NAME_MAX  17 /* with its NUL */

struct tls;

/* Both are copied. The job's name is the identity that the key goes by. */
int tls_create(const char *job, const uint8_t key[TLS_KEY_BYTES], struct tls **ret_tls,
               struct hvd_err *err) MUST_CHECK;

/* What tells one key from another, and nothing about it: 16 hexadecimal digits. HVD_E_NOMEM. */
int tls_name(const struct tls *tls, char name[TLS_NAME_MAX]) MUST_CHECK;

/* Outlives every listener and connection that was given it. Wipes the key. */
void tls_free(struct tls *tls);

#endif
