/*
 * seal.c: derives keys and makes proofs, by OpenSSL's HKDF and HMAC. Called by the handshakes
 * of collectives/ and by the driver's loop. Invariant: a failure writes no key and no proof, and no
 * copy of a secret is left behind.
 *
 * A training program may end its main while a thread of the library makes a proof. OpenSSL frees
 * its global data when a process exits, and a thread that uses OpenSSL then crashes. So OpenSSL is
 * asked not to free its data. If the program has used OpenSSL before the library, it is too late to
 * ask: in that case seal_at_exit, which runs before OpenSSL's own handler, waits for calls that
 * run, and later calls fail.
 */
#include "seal/seal.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define INFO_MAX 256

static struct {
    pthread_once_t once;
    /* a thread holds it for reading as long as OpenSSL derives a key or makes a proof for it */
    pthread_rwlock_t lock;
    bool is_over; /* seal_at_exit was called */
} seal = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_RWLOCK_INITIALIZER };

/* Called when the process exits, before OpenSSL frees its global data: waits for the threads that
 * are inside OpenSSL, and makes later calls of this file fail with HVD_E_STATE. */
static void seal_at_exit(void)
{
    pthread_rwlock_wrlock(&seal.lock);
    seal.is_over = true;
    pthread_rwlock_unlock(&seal.lock);
}

/* Called once in a process. Handlers of exit run in the reverse order of their registration, so
 * seal_at_exit is registered after OpenSSL's own handler, and runs before it. */
static void seal_init(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    (void)atexit(seal_at_exit);
}

/* Begins a use of OpenSSL, which seal_leave ends. false: the process exits, and OpenSSL must not be
 * used any more; then seal_leave is not called. */
static bool seal_enter(void)
{
    bool may;

    pthread_once(&seal.once, seal_init);
    pthread_rwlock_rdlock(&seal.lock);
    may = !seal.is_over;
    if (!may)
        pthread_rwlock_unlock(&seal.lock);
    return may;
}

static void seal_leave(void)
{
    pthread_rwlock_unlock(&seal.lock);
}

/* Fetches each algorithm that the library uses, so that OpenSSL loads it now, and a configuration
 * of OpenSSL without one of the algorithms is reported before the first key is used. The fetched
 * objects are freed at once: each use of a key fetches its own. */
int seal_check_openssl(struct hvd_err *err)
{
    EVP_CIPHER *cipher;
    EVP_KDF *kdf;
    EVP_MAC *mac;
    EVP_MD *md;
    bool all;

    if (!seal_enter())
        return err_set(err, HVD_E_STATE,
                       "the process exits; do not call hvd-elastic in its exit handlers");
    kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    md = EVP_MD_fetch(NULL, "SHA256", NULL);
    cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    all = kdf && mac && md && cipher;
    EVP_KDF_free(kdf);
    EVP_MAC_free(mac);
    EVP_MD_free(md);
    EVP_CIPHER_free(cipher);
    seal_leave();
    if (all)
        return 0;
    return err_set(err, HVD_E_UNSUPPORTED,
                   "OpenSSL offers no HKDF, HMAC, SHA256 or AES-256-GCM; let the configuration of "
                   "OpenSSL (OPENSSL_CONF) load the default provider");
}

int seal_random(void *bytes, size_t length)
{
    return getrandom(bytes, length, 0) == (ssize_t)length ? 0 : HVD_E_IO;
}

/* Derives keys from a secret (HKDF). The label and the context say what the keys are for: another
 * label or context gives other keys. */
int seal_derive(const uint8_t *secret, size_t secret_length, const char *label, const void *context,
                size_t context_length, uint8_t *ret_keys, size_t ret_length)
{
    /* an array, not a constant, because OpenSSL's parameters take no pointer to const */
    char digest[] = "SHA256";
    /* the NUL belongs to the label in `info`: it separates the label from the context */
    size_t label_length = strlen(label) + 1;
    uint8_t info[INFO_MAX];
    EVP_KDF_CTX *deriving = NULL;
    OSSL_PARAM params[4];
    int rc = HVD_E_NOMEM;
    EVP_KDF *kdf;

    if (label_length > sizeof(info) || context_length > sizeof(info) - label_length)
        return HVD_E_LIMIT;
    if (!seal_enter())
        return HVD_E_STATE;
    memcpy(info, label, label_length);
    if (context_length)
        memcpy(info + label_length, context, context_length);
    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0);
    params[1] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret,
                                                  secret_length);
    params[2] =
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, label_length + context_length);
    params[3] = OSSL_PARAM_construct_end();
    kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    if (kdf)
        deriving = EVP_KDF_CTX_new(kdf);
    if (deriving && EVP_KDF_derive(deriving, ret_keys, ret_length, params) > 0)
        rc = 0;
    EVP_KDF_CTX_free(deriving);
    EVP_KDF_free(kdf);
    seal_leave();
    return rc;
}

/* Computes the proof (HMAC) that the sender of these bytes has the key. `number` is a part of it: a
 * proof for one number does not hold for another. */
int seal_prove(const uint8_t key[SEAL_KEY_BYTES], uint64_t number, const void *bytes, size_t length,
               uint8_t ret_proof[SEAL_PROOF_BYTES])
{
    char digest[] = "SHA256";
    EVP_MAC_CTX *proving;
    OSSL_PARAM params[2];
    uint8_t first[8];
    size_t proof_length;
    int rc = HVD_E_NOMEM;
    EVP_MAC *hmac;

    if (!seal_enter())
        return HVD_E_STATE;
    hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    proving = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
    for (size_t i = 0; i < sizeof(first); i++)
        first[i] = (uint8_t)(number >> (8 * i));
    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0);
    params[1] = OSSL_PARAM_construct_end();
    if (proving && EVP_MAC_init(proving, key, SEAL_KEY_BYTES, params) &&
        EVP_MAC_update(proving, first, sizeof(first)) && EVP_MAC_update(proving, bytes, length) &&
        EVP_MAC_final(proving, ret_proof, &proof_length, SEAL_PROOF_BYTES) &&
        proof_length == SEAL_PROOF_BYTES)
        rc = 0;
    EVP_MAC_CTX_free(proving);
    EVP_MAC_free(hmac);
    seal_leave();
    return rc;
}

bool seal_same(const uint8_t *left, const uint8_t *right, size_t length)
{
    return CRYPTO_memcmp(left, right, length) == 0;
}

void seal_wipe(void *bytes, size_t length)
{
    OPENSSL_cleanse(bytes, length);
}
