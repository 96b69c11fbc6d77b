/*
 * seal.h: keys that are derived from keys, proofs that a sender has a key, and comparisons
 * whose duration tells an attacker nothing. OpenSSL does the cryptography. Callers: the workers'
 * connections (collectives/), and the driver, which makes the secret of each round. A thread may
 * call these functions also while the process exits: they then work, or fail with HVD_E_STATE.
 */
#ifndef SEAL_SEAL_H
#define SEAL_SEAL_H

#include "base/err.h"

#define SEAL_KEY_BYTES   32 /* a key, and a secret from which keys are derived */
#define SEAL_NONCE_BYTES 16 /* random bytes that are used once; not secret */
#define SEAL_PROOF_BYTES 32

/* Checks that OpenSSL has the algorithms, and loads them, which takes about a millisecond once in a
 * process; later calls are quick. HVD_E_UNSUPPORTED: OpenSSL lacks one of the algorithms, and the
 * err says what to do. */
int seal_check_openssl(struct hvd_err *err) MUST_CHECK;

/* Fills the bytes from the kernel's random source. HVD_E_IO: the kernel gives none. */
int seal_random(void *bytes, size_t length) MUST_CHECK;

/* Derives `ret_length` bytes by HKDF-SHA256. label: what the keys are for; context: what the keys
 * are bound to. Keys that are derived with another label or context reveal nothing about these
 * keys. Fails with HVD_E_NOMEM. */
int seal_derive(const uint8_t *secret, size_t secret_length, const char *label, const void *context,
                size_t context_length, uint8_t *ret_keys, size_t ret_length) MUST_CHECK;

/* Makes the HMAC-SHA256 of the number and the bytes. Fails with HVD_E_NOMEM. */
int seal_prove(const uint8_t key[SEAL_KEY_BYTES], uint64_t number, const void *bytes, size_t length,
               uint8_t ret_proof[SEAL_PROOF_BYTES]) MUST_CHECK;

/* Compares two keys or proofs. true: the bytes are the same. A comparison takes the same time for
 * all inputs of one length, so its duration tells an attacker nothing. */
bool seal_same(const uint8_t *left, const uint8_t *right, size_t length);

/* Zeroes the bytes of a secret. A compiler does not remove this call, as it may remove a memset of
 * memory that is not read again. */
void seal_wipe(void *bytes, size_t length);

#endif
