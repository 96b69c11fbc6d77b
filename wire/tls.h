/*
 * tls.h: TLS 1.3 with pre-shared keys, as both ends of a connection use it. No certificates: a
 * process proves by its key who it is, and a process without an accepted key does not get past the
 * handshake.
 *
 * The identity under which a key is looked up is derived from the key: it looks random, and says
 * nothing about job, host or key. A peer with an unknown identity and a peer with a wrong key get
 * the same alert.
 */
#ifndef WIRE_TLS_H
#define WIRE_TLS_H

#include "base/err.h"
#include "base/limits.h"

#define TLS_KEY_BYTES  32
#define TLS_NAME_BYTES LIMIT_HOST_NAME_BYTES

/* The reason of a failed handshake on the side that has dialled: the peer does not accept the key
 * of this side, or does not know it yet. */
#define TLS_REFUSED "the peer has another key, and refuses the key of this side"

/* The same on the side that was dialled, whose log has it. */
#define TLS_OTHER_KEY "the peer has another key"

struct tls;

/* The peer at the other end: the name and the number of the key that it has proved. */
struct tls_peer {
    char name[TLS_NAME_BYTES + 1]; /* "": this side has dialled, or nothing is proved yet */
    uint64_t number;
};

/* Makes the TLS settings of a process. With a key, the process dials with this key, and accepts
 * peers that have it; such a peer is `name` with number 0 (conn_proved). key NULL: the process does
 * not dial. Key and name are copied. */
int tls_create(const char *name, const uint8_t *key, struct tls **ret_tls,
               struct hvd_err *err) MUST_CHECK;

/* From now on accepts peers that have this key; conn_proved returns `name` and `number` for them. A
 * key that is accepted already keeps its name. HVD_E_NOMEM; HVD_E_LIMIT: more than
 * LIMIT_TLS_KEYS. */
int tls_accept_key(struct tls *tls, const char *name, uint64_t number,
                   const uint8_t key[TLS_KEY_BYTES]) MUST_CHECK;

/* Stops accepting peers that have the key with this name and number. Open connections stay open. */
void tls_refuse_key(struct tls *tls, const char *name, uint64_t number);

/* Sets the key with which this process dials from now on. HVD_E_NOMEM: the process still dials with
 * the earlier key. */
int tls_dial_with(struct tls *tls, const uint8_t key[TLS_KEY_BYTES]) MUST_CHECK;

/* Wipes the keys and frees the settings. Called after every listener and connection that uses them
 * was freed. */
void tls_free(struct tls *tls);

#endif
