/*
 * host_keys.h: a key for each host, and which of these keys the driver accepts.
 *
 * A host's key is a function of the job's key, the host's name and a version, so that a driver that
 * takes over can compute it. The core decides which versions a host may use, and the journal has
 * the version before an agent gets its key (driver/core/keys.c). An agent gets the key of its host
 * and no other.
 */
#ifndef DRIVER_IO_HOST_KEYS_H
#define DRIVER_IO_HOST_KEYS_H

#include "wire/tls.h"

#define HOST_KEYS_JOB_MAX 17 /* bytes of the job's id: 16 digits and the NUL */

struct host_keys;

/* Derives the key of a host in a version from `job_key`, the job's key. Returns 0 or HVD_E_NOMEM.
 */
int host_keys_derive(const uint8_t job_key[TLS_KEY_BYTES], const char *host, uint64_t version,
                     uint8_t ret_key[TLS_KEY_BYTES]) MUST_CHECK;

/* Creates an empty table of accepted keys. `job_key` is the job's key; `tls` is told which keys of
 * agents it accepts. Both are borrowed. Returns 0 or HVD_E_NOMEM. */
int host_keys_create(const uint8_t *job_key, struct tls *tls,
                     struct host_keys **ret_keys) MUST_CHECK;
void host_keys_free(struct host_keys *keys);

/* From host_keys_admit on, the driver accepts the key of this host and version. From host_keys_end
 * on, it does not accept that key any more. */
int host_keys_admit(struct host_keys *keys, const char *host, uint64_t version) MUST_CHECK;
void host_keys_end(struct host_keys *keys, const char *host, uint64_t version);

/* From now on the driver accepts connections that prove this token, a text "ID KEY", with which
 * hosts may join. HVD_E_INVAL: the text is no token. HVD_E_NOMEM, HVD_E_LIMIT. */
int host_keys_accept_token(struct host_keys *keys, const char *text) MUST_CHECK;

/* Sets *ret_key and *ret_version to the newest key that the host may use. HVD_E_NOTFOUND: the host
 * has no key. */
int host_keys_newest(const struct host_keys *keys, const char *host, uint8_t ret_key[TLS_KEY_BYTES],
                     uint64_t *ret_version) MUST_CHECK;

/* Derives the secret of a round (PROTOCOL.md, ROUND) from the job's key and the round's number. So
 * a message that is sent again has the same secret, even from the driver after a takeover. Returns
 * 0 or HVD_E_NOMEM. */
int host_keys_round(const struct host_keys *keys, uint64_t round,
                    uint8_t ret_secret[LIMIT_ROUND_SECRET_BYTES]) MUST_CHECK;

/* Derives the key with which agents fetch state from each other during a round. Returns 0 or
 * HVD_E_NOMEM. */
int host_keys_state(const struct host_keys *keys, uint64_t round,
                    uint8_t ret_key[STATE_KEY_BYTES]) MUST_CHECK;

/* Returns 16 hexadecimal digits that identify the job, because two jobs may have the same name. The
 * digits reveal nothing about the job's key. */
const char *host_keys_job(const struct host_keys *keys);

#endif
