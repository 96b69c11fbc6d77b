/*
 * host_keys.c: derives the keys of hosts and rounds, and tells TLS which of them to accept. loop.c
 * calls it for the core's actions, starter.c for the key that a new agent gets. Invariant: TLS
 * accepts the keys of exactly the hosts and versions in the table.
 */
#include "driver/io/host_keys.h"

#include "base/hex.h"
#include "base/mem.h"
#include "base/vec.h"
#include "driver/core/event.h"
#include "seal/seal.h"
#include "wire/token.h"

#include <stdio.h>
#include <string.h>

#define JOB_BYTES ((HOST_KEYS_JOB_MAX - 1) / 2)

/* A key that TLS accepts; its bytes are derived when they are needed. */
struct host_key {
    char *host;
    uint64_t version;
};

struct host_keys {
    const uint8_t *job_key;
    struct tls *tls;
    struct VEC(struct host_key) table; /* a host has two entries while its key is changed */
    char job[HOST_KEYS_JOB_MAX];       /* the id of the job */
};

/* Derives the key of a host and version from the job's key. The same arguments always give the same
 * key, so keys need not be stored. The 8 bytes before the host's name are the version. */
int host_keys_derive(const uint8_t job_key[TLS_KEY_BYTES], const char *host, uint64_t version,
                     uint8_t ret_key[TLS_KEY_BYTES])
{
    uint8_t context[8 + LIMIT_HOST_NAME_BYTES];
    size_t length = strnlen(host, LIMIT_HOST_NAME_BYTES);

    for (size_t i = 0; i < 8; i++)
        context[i] = (uint8_t)(version >> 8 * i);
    memcpy(context + 8, host, length);
    return seal_derive(job_key, TLS_KEY_BYTES, "hvd agent key", context, 8 + length, ret_key,
                       TLS_KEY_BYTES);
}

/* Makes the table of keys, and derives the id of the job (`job`, in hexadecimal) from the job's
 * key, which is borrowed. */
int host_keys_create(const uint8_t *job_key, struct tls *tls, struct host_keys **ret_keys)
{
    struct host_keys *keys = mem_zalloc(sizeof(*keys));
    uint8_t job[JOB_BYTES];

    if (!keys)
        return HVD_E_NOMEM;
    keys->job_key = job_key;
    keys->tls = tls;
    if (seal_derive(job_key, TLS_KEY_BYTES, "hvd job", "", 0, job, sizeof(job))) {
        mem_free(keys);
        return HVD_E_NOMEM;
    }
    hex_write(job, sizeof(job), keys->job);
    *ret_keys = keys;
    return 0;
}

void host_keys_free(struct host_keys *keys)
{
    if (!keys)
        return;
    while (keys->table.count)
        mem_free(keys->table.items[--keys->table.count].host);
    VEC_RELEASE(&keys->table);
    mem_free(keys);
}

/* Returns the index of the entry, or table.count if there is no such entry. */
static size_t host_keys_find(const struct host_keys *keys, const char *host, uint64_t version)
{
    size_t i = 0;

    while (i < keys->table.count && (keys->table.items[i].version != version ||
                                     strcmp(keys->table.items[i].host, host) != 0))
        i++;
    return i;
}

/* From now on TLS accepts the key of this host and version. A key that is accepted already is no
 * error. */
int host_keys_admit(struct host_keys *keys, const char *host, uint64_t version)
{
    struct host_key entry = { .version = version };
    uint8_t key[TLS_KEY_BYTES];
    int rc;

    if (host_keys_find(keys, host, version) < keys->table.count)
        return 0;
    rc = VEC_RESERVE(&keys->table, 1, LIMIT_TLS_KEYS);
    if (!rc && !(entry.host = mem_strdup(host)))
        rc = HVD_E_NOMEM;
    if (!rc)
        rc = host_keys_derive(keys->job_key, host, version, key);
    if (!rc)
        rc = tls_accept_key(keys->tls, host, version, key);
    seal_wipe(key, sizeof(key));
    if (rc)
        mem_free(entry.host);
    else
        keys->table.items[keys->table.count++] = entry;
    return rc;
}

/* From now on TLS refuses the key of this host and version. The last entry of the table takes the
 * place of the removed one. */
void host_keys_end(struct host_keys *keys, const char *host, uint64_t version)
{
    size_t at = host_keys_find(keys, host, version);

    tls_refuse_key(keys->tls, host, version);
    if (at == keys->table.count) /* the key was not in the table */
        return;
    mem_free(keys->table.items[at].host);
    keys->table.items[at] = keys->table.items[--keys->table.count];
}

/* Derives the key of the host with its highest version, for an agent that is started.
 * HVD_E_NOTFOUND: the host has no key. */
int host_keys_newest(const struct host_keys *keys, const char *host, uint8_t ret_key[TLS_KEY_BYTES],
                     uint64_t *ret_version)
{
    uint64_t newest = 0;

    for (size_t i = 0; i < keys->table.count; i++)
        if (keys->table.items[i].version > newest && !strcmp(keys->table.items[i].host, host))
            newest = keys->table.items[i].version;
    if (!newest)
        return HVD_E_NOTFOUND;
    *ret_version = newest;
    return host_keys_derive(keys->job_key, host, newest, ret_key);
}

/* Derives a secret for one round and one use from the job's key; `label` names the use. */
static int host_keys_of_round(const struct host_keys *keys, const char *label, uint64_t round,
                              uint8_t *ret_key, size_t size)
{
    uint8_t context[8];

    for (size_t i = 0; i < sizeof(context); i++)
        context[i] = (uint8_t)(round >> 8 * i);
    return seal_derive(keys->job_key, TLS_KEY_BYTES, label, context, sizeof(context), ret_key,
                       size);
}

/* The secret by which the members of a round prove that they belong to it. */
int host_keys_round(const struct host_keys *keys, uint64_t round,
                    uint8_t ret_secret[LIMIT_ROUND_SECRET_BYTES])
{
    return host_keys_of_round(keys, "hvd round", round, ret_secret, LIMIT_ROUND_SECRET_BYTES);
}

/* The key with which agents fetch commits from each other during a round. */
int host_keys_state(const struct host_keys *keys, uint64_t round, uint8_t ret_key[STATE_KEY_BYTES])
{
    return host_keys_of_round(keys, "hvd state key", round, ret_key, STATE_KEY_BYTES);
}

const char *host_keys_job(const struct host_keys *keys)
{
    return keys->job;
}

/* Lets TLS accept a token: its key, under a name made of TOKEN_PEER and the token's id, which no
 * host has. */
int host_keys_accept_token(struct host_keys *keys, const char *text)
{
    char name[TLS_NAME_BYTES + 1];
    struct token token;
    int rc = token_parse(text, &token);

    if (rc)
        return rc;
    snprintf(name, sizeof(name), TOKEN_PEER "%s", token.id);
    rc = tls_accept_key(keys->tls, name, 0, token.key);
    seal_wipe(&token, sizeof(token));
    return rc;
}
