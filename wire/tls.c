/*
 * tls.c: TLS 1.3 with pre-shared keys. Called by the programs, which create one struct tls for each
 * purpose, and by conn_stream.c for each connection. Invariant: one version, one cipher, no
 * certificate: a handshake succeeds only if both sides have the same key. A struct tls is used by
 * one thread.
 */
#include "wire/tls_session.h"

#include "base/mem.h"
#include "base/vec.h"
#include "seal/seal.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

/* The only cipher is AES_128 with SHA256. A pre-shared key belongs to one hash, so a second cipher
 * would need a second key. */
#define CIPHER         "TLS_AES_128_GCM_SHA256"
#define IDENTITY_BYTES 16

/* A key, and the identity under which TLS looks it up. */
struct tls_secret {
    uint8_t identity[IDENTITY_BYTES];
    uint8_t key[TLS_KEY_BYTES];
};

/* A key with which peers are accepted, and what conn_proved says of a peer that has proved it. */
struct tls_accepted {
    struct tls_secret secret;
    char *name;
    uint64_t number;
};

struct tls {
    SSL_CTX *server;
    SSL_CTX *client;
    struct tls_secret own;
    bool dials; /* `own`, the key with which this process dials, is set */
    struct VEC(struct tls_accepted *) accepted; /* keys of peers, sorted by tls_place */
};

static const unsigned char cipher_id[] = { 0x13, 0x01 }; /* the number of CIPHER in TLS */

/* Returns the number by which the accepted keys are sorted: the first 8 bytes of a key's identity.
 * Identities look random, so hardly any two have the same number. */
static uint64_t tls_place(const void *item)
{
    uint64_t place;

    memcpy(&place, (*(struct tls_accepted *const *)item)->secret.identity, sizeof(place));
    return place;
}

/* Derives the identity of a key, and puts both into *ret_secret. */
static int tls_make_secret(const uint8_t *key, struct tls_secret *ret_secret)
{
    int rc = seal_derive(key, TLS_KEY_BYTES, "hvd tls identity", "", 0, ret_secret->identity,
                         IDENTITY_BYTES);

    memcpy(ret_secret->key, key, TLS_KEY_BYTES);
    return rc;
}

/* Makes a session object without a handshake: OpenSSL takes a pre-shared key in this form. */
static SSL_SESSION *tls_key_session(SSL *ssl, const uint8_t key[TLS_KEY_BYTES])
{
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_id);
    SSL_SESSION *session = SSL_SESSION_new();

    if (session && cipher && SSL_SESSION_set1_master_key(session, key, TLS_KEY_BYTES) &&
        SSL_SESSION_set_cipher(session, cipher) &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* Returns the accepted key with this identity; NULL: none. The table is sorted by the first bytes
 * of the identity (tls_place), so of several keys with these first bytes each is compared. */
static const struct tls_accepted *tls_find(const struct tls *tls, const uint8_t *identity,
                                           size_t length)
{
    struct tls_accepted wanted = { .number = 0 }, *key = &wanted;
    size_t at;

    if (length != IDENTITY_BYTES)
        return NULL;
    memcpy(wanted.secret.identity, identity, IDENTITY_BYTES);
    at = VEC_PLACE(&tls->accepted, tls_place, tls_place(&key));
    for (; at < tls->accepted.count; at++) {
        const struct tls_accepted *accepted = tls->accepted.items[at];

        if (!memcmp(accepted->secret.identity, identity, IDENTITY_BYTES))
            return accepted;
        if (tls_place(&tls->accepted.items[at]) != tls_place(&key))
            break;
    }
    return NULL;
}

/* OpenSSL calls it on the server's side, to find the key for the identity that the client has
 * named. For an unknown identity a random key is made and used for this handshake alone, so that
 * the handshake fails in the same way as with a wrong key. Returns 1; 0: OpenSSL ends the
 * handshake, because no memory or no random bytes are left. */
static int tls_find_session(SSL *ssl, const unsigned char *identity, size_t length,
                            SSL_SESSION **ret_session)
{
    const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const struct tls_accepted *accepted = tls_find(tls, identity, length);
    struct tls_peer *peer = SSL_get_app_data(ssl);
    uint8_t thrown_away[TLS_KEY_BYTES];

    *ret_session = NULL;
    if (!accepted && seal_random(thrown_away, sizeof(thrown_away)))
        return 0;
    *ret_session = tls_key_session(ssl, accepted ? accepted->secret.key : thrown_away);
    if (accepted && peer) {
        snprintf(peer->name, sizeof(peer->name), "%s", accepted->name);
        peer->number = accepted->number;
    }
    return *ret_session != NULL;
}

/* OpenSSL calls it on the client's side, for the key with which this process dials. 0: there is no
 * such key, or no memory; 1: the key is set. */
static int tls_use_session(SSL *ssl, const EVP_MD *md, const unsigned char **ret_identity,
                           size_t *ret_length, SSL_SESSION **ret_session)
{
    const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    (void)md; /* md is always the hash of the only cipher */
    if (!tls->dials)
        return 0;
    *ret_session = tls_key_session(ssl, tls->own.key);
    if (!*ret_session)
        return 0;
    *ret_identity = tls->own.identity;
    *ret_length = IDENTITY_BYTES;
    return 1;
}

/* Creates an OpenSSL context with one protocol version, one cipher and no session tickets. */
static SSL_CTX *tls_new_context(struct tls *tls, const SSL_METHOD *method)
{
    char groups[] = "X25519:P-256"; /* not const, because the macro below casts const away */
    SSL_CTX *context = SSL_CTX_new(method);

    if (!context)
        return NULL;
    if (!SSL_CTX_set_app_data(context, tls) ||
        !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) ||
        !SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(context, CIPHER) || !SSL_CTX_set1_groups_list(context, groups) ||
        !SSL_CTX_set_num_tickets(context, 0) || !SSL_CTX_set_max_early_data(context, 0)) {
        SSL_CTX_free(context);
        return NULL;
    }
    /* A process that dies sends no close_notify, so the end of the stream without it is no error of
     * TLS (IGNORE_UNEXPECTED_EOF); the frames show whether a message is unfinished. */
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                     SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* each connection also exchanges fresh keys (DHE): who learns the pre-shared key later cannot
     * read its bytes */
    SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return context;
}

/* Makes the TLS settings of a process, for both sides of a connection. `key`: the process dials
 * with this key, and accepts peers that have it, under `name`. `key` NULL: the process has no key
 * yet. */
int tls_create(const char *name, const uint8_t *key, struct tls **ret_tls, struct hvd_err *err)
{
    struct tls *tls;
    int rc = seal_check_openssl(err);

    if (rc)
        return rc;
    tls = mem_zalloc(sizeof(*tls));
    if (!tls)
        return err_set(err, HVD_E_NOMEM, "TLS: %s", err_text(HVD_E_NOMEM));
    tls->server = tls_new_context(tls, TLS_server_method());
    tls->client = tls_new_context(tls, TLS_client_method());
    if (!tls->server || !tls->client) {
        unsigned long error = ERR_peek_last_error();

        tls_free(tls);
        return err_set(err, HVD_E_UNSUPPORTED,
                       "OpenSSL cannot prepare TLS 1.3 with %s: %s; install OpenSSL 3, and allow "
                       "this cipher in its configuration",
                       CIPHER, tls_reason(error));
    }
    SSL_CTX_set_psk_find_session_callback(tls->server, tls_find_session);
    SSL_CTX_set_psk_use_session_callback(tls->client, tls_use_session);
    /* No certificate authority is trusted: a server that answers with a certificate does not belong
     * to this job. */
    SSL_CTX_set_verify(tls->client, SSL_VERIFY_PEER, NULL);
    if (key)
        rc = tls_dial_with(tls, key);
    if (!rc && key)
        rc = tls_accept_key(tls, name, 0, key);
    if (rc) {
        tls_free(tls);
        return err_set(err, rc, "TLS: %s", err_text(rc));
    }
    *ret_tls = tls;
    return 0;
}

/* Dials with this key from now on. Open connections keep the key that they began with. */
int tls_dial_with(struct tls *tls, const uint8_t key[TLS_KEY_BYTES])
{
    struct tls_secret secret;
    int rc = tls_make_secret(key, &secret);

    if (!rc) {
        tls->own = secret;
        tls->dials = true;
    }
    seal_wipe(&secret, sizeof(secret));
    return rc;
}

/* Wipes and frees a key with which peers were accepted. */
static void tls_forget(struct tls_accepted *accepted)
{
    seal_wipe(&accepted->secret, sizeof(accepted->secret));
    mem_free(accepted->name);
    mem_free(accepted);
}

/* Adds the key to the list of keys with which peers are accepted from now on. `name` and `number`
 * identify the key: conn_proved returns them for each connection whose peer has proved this key. A
 * key that is accepted already keeps its name and its number. */
int tls_accept_key(struct tls *tls, const char *name, uint64_t number,
                   const uint8_t key[TLS_KEY_BYTES])
{
    struct tls_accepted *accepted = mem_zalloc(sizeof(*accepted));
    size_t at;
    int rc = accepted ? tls_make_secret(key, &accepted->secret) : HVD_E_NOMEM;

    if (!rc && tls_find(tls, accepted->secret.identity, IDENTITY_BYTES)) {
        tls_forget(accepted);
        return 0;
    }
    if (!rc && !(accepted->name = mem_strdup(name)))
        rc = HVD_E_NOMEM;
    if (!rc)
        rc = VEC_RESERVE(&tls->accepted, 1, LIMIT_TLS_KEYS);
    if (rc) {
        if (accepted)
            tls_forget(accepted);
        return rc;
    }
    accepted->number = number;
    at = VEC_PLACE(&tls->accepted, tls_place, tls_place(&accepted));
    memmove(&tls->accepted.items[at + 1], &tls->accepted.items[at],
            (tls->accepted.count - at) * sizeof(*tls->accepted.items));
    tls->accepted.items[at] = accepted;
    tls->accepted.count++;
    return 0;
}

/* Accepts no further peer that has the key with this name and number. Open connections stay
 * open. */
void tls_refuse_key(struct tls *tls, const char *name, uint64_t number)
{
    size_t kept = 0;

    for (size_t i = 0; i < tls->accepted.count; i++) {
        struct tls_accepted *accepted = tls->accepted.items[i];

        if (accepted->number == number && !strcmp(accepted->name, name))
            tls_forget(accepted);
        else
            tls->accepted.items[kept++] = accepted;
    }
    tls->accepted.count = kept;
}

/* Wipes the keys and frees the settings; `tls` may be NULL. */
void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->server);
    SSL_CTX_free(tls->client);
    for (size_t i = 0; i < tls->accepted.count; i++)
        tls_forget(tls->accepted.items[i]);
    VEC_RELEASE(&tls->accepted);
    seal_wipe(&tls->own, sizeof(tls->own));
    mem_free(tls);
}

/* Makes the TLS session of one connection. `server` true: this side is the server, and its
 * handshake writes to *ret_peer which key the client has named. NULL: no memory is left. */
SSL *tls_session(struct tls *tls, bool server, struct tls_peer *ret_peer)
{
    SSL *session;

    /* OpenSSL's error queue is cleared, so that an older error is not taken for one of this
     * session */
    ERR_clear_error();
    session = SSL_new(server ? tls->server : tls->client);
    if (session)
        SSL_set_app_data(session, ret_peer);
    return session;
}

/* true: the handshake used the pre-shared key. For OpenSSL that is a session that was resumed; a
 * full handshake would be one with certificates. */
bool tls_proved(const SSL *session)
{
    return SSL_session_reused(session) && SSL_version(session) == TLS1_3_VERSION;
}

/* Returns the text of an OpenSSL error for an operator: whose fault the error is. An unknown error
 * keeps OpenSSL's own text. */
const char *tls_reason(unsigned long error)
{
    const char *text;

    switch (ERR_GET_REASON(error)) {
    case SSL_R_BINDER_DOES_NOT_VERIFY: return TLS_OTHER_KEY;
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER: return TLS_REFUSED;
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return "the peer is of another job, and refuses the key of this job";
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return "the peer has no key of this job";
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_RECORD_LENGTH_MISMATCH: return "the peer does not speak TLS 1.3";
    default: break;
    }
    text = error ? ERR_reason_error_string(error) : NULL;
    return text ? text : "OpenSSL gives no reason";
}
