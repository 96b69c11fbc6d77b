/*
 * test_seal.c: keys and proofs against values that another implementation of HKDF and HMAC has made
 * (Python's hmac and hashlib).
 */
#include "base/limits.h"
#include "seal/seal.h"
#include "tests/lib/test.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_hex(const uint8_t *bytes, size_t length, const char *hex)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < length; i++) {
        if (hex[2 * i] != digits[bytes[i] >> 4] || hex[2 * i + 1] != digits[bytes[i] & 15])
            return false;
    }
    return !hex[2 * length];
}

TEST(known_values)
{
    uint8_t secret[22], key[SEAL_KEY_BYTES], keys[64], proof[SEAL_PROOF_BYTES];
    struct hvd_err err = { .text = "" };

    CHECK_OK(t, seal_check_openssl(&err));
    memset(secret, 0x0b, sizeof(secret));
    memset(key, 'k', sizeof(key));
    CHECK_OK(t, seal_derive(secret, sizeof(secret), "label", "context", 7, keys, sizeof(keys)));
    CHECK(t, is_hex(keys, sizeof(keys),
                    "8329ad6c1de6797ef6cb03b5cedc10dcca9a632811ec89758bf7ba7d7483dedb"
                    "5e58419d7de54bf27ceb6ef49076b26885a4348de42123912050c7300823f40d"));
    CHECK_OK(t, seal_prove(key, 7, "what is proved", 14, proof));
    CHECK(t, is_hex(proof, sizeof(proof),
                    "599542ce93bb8398630bd6a1f36435b210a56557d0d2bf24eddd3e6173ba8722"));
out:
    return;
}

/* A label that runs on into the context must not give the keys of another label. */
TEST(labels_and_contexts_differ)
{
    static const struct {
        const char *label, *context;
    } of[] = {
        {"hvd meet",   "a" },
        { "hvd meet",  "b" },
        { "hvd gate",  "a" },
        { "hvd meet",  "ab"},
        { "hvd meeta", ""  },
        { "hvd meet",  ""  },
    };
    uint8_t keys[ARRAY_SIZE(of)][SEAL_KEY_BYTES];
    const uint8_t secret[SEAL_KEY_BYTES] = "secret";

    for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
        CHECK_OK(t, seal_derive(secret, sizeof(secret), of[i].label, of[i].context,
                                strlen(of[i].context), keys[i], sizeof(keys[i])));
        for (size_t k = 0; k < i; k++)
            CHECK(t, !seal_same(keys[i], keys[k], SEAL_KEY_BYTES));
    }
out:
    return;
}

TEST(a_context_that_is_too_long)
{
    uint8_t context[300] = { 0 }, key[SEAL_KEY_BYTES] = { 7 };
    const uint8_t secret[SEAL_KEY_BYTES] = "secret";

    CHECK_CODE(
        t, seal_derive(secret, sizeof(secret), "label", context, sizeof(context), key, sizeof(key)),
        HVD_E_LIMIT);
    CHECK_INT(t, key[0], ==, 7); /* a failure writes nothing */
out:
    return;
}

TEST(wiped_and_random)
{
    uint8_t one[32] = { 1 }, other[32] = { 1 };

    CHECK(t, seal_same(one, other, sizeof(one)));
    CHECK(t, !seal_random(one, sizeof(one)) && !seal_random(other, sizeof(other)));
    CHECK(t, !seal_same(one, other, sizeof(one)));
    seal_wipe(one, sizeof(one));
    seal_wipe(other, sizeof(other));
    CHECK(t, seal_same(one, other, sizeof(one)) && !one[0]);
out:
    return;
}

/* ---- a process that exits -------------------------------------------------------------------- */

static pthread_t prover;
static sem_t proves; /* posted after each proof */
static atomic_bool exits;

/* Makes proofs as a thread of the library does, until some were made after the handlers of OpenSSL
 * have run. */
static void *prove(void *arg)
{
    uint8_t key[SEAL_KEY_BYTES] = "key", keys[64], proof[SEAL_PROOF_BYTES];

    for (int left = 100; left; left -= atomic_load(&exits)) {
        if (!seal_prove(key, 1, "bytes", 5, proof))
            sem_post(&proves);
        if (seal_derive(key, sizeof(key), "label", "", 0, keys, sizeof(keys)))
            continue;
    }
    return arg;
}

/* Runs last of all handlers, because it was added first. OpenSSL's handler has forgotten what it
 * allocated for the thread, so nothing may look for leaks after it. */
static void wait_for_prover(void)
{
    atomic_store(&exits, true);
    pthread_join(prover, NULL);
    _exit(0);
}

/* The child: exits while its thread makes proofs. openssl_first: the program has used OpenSSL
 * before the library. */
static void exit_while_proving(bool openssl_first)
{
    struct hvd_err err;

    atexit(wait_for_prover);
    if (openssl_first)
        OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS, NULL);
    if (sem_init(&proves, 0, 0) || seal_check_openssl(&err) ||
        pthread_create(&prover, NULL, prove, NULL))
        _exit(2);
    sem_wait(&proves);
    exit(3);
}

TEST_FLAGS(a_thread_outlives_main, TEST_NO_TORTURE)
{
    int status;
    pid_t child;

    for (int openssl_first = 0; openssl_first < 2; openssl_first++) {
        child = fork();
        if (!child)
            exit_while_proving(openssl_first);
        CHECK_INT(t, waitpid(child, &status, 0), ==, child);
        CHECK_INT(t, status, ==, 0);
    }
out:
    return;
}
