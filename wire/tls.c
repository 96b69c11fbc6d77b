#include "wire/tls_session.h"

#include "base/mem.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

/* The hash of the cipher is the hash that the key is bound to, so there is one cipher only. */
#define CIPHER "TLS_AES_128_GCM_SHA256"

struct tls {
    SSL_CTX *server;
    SSL_CTX *client;
    uint8_t key[TLS_KEY_BYTES];
    size_t identity_length;
    unsigned char identity[]; /* the job's name */
};

static const unsigned char cipher_id[] = { 0x13, 0x01 };

/* A session that was never held: this is how OpenSSL wants to be told a key. */
static SSL_SESSION *key_session(SSL *ssl)
{
    struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_id);
    SSL_SESSION *session = SSL_SESSION_new();

    if (session && cipher && SSL_SESSION_set1_master_key(session, tls->key, TLS_KEY_BYTES) &&
        SSL_SESSION_set_cipher(session, cipher) &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* The server: a name that is not the job's has no key, and without a certificate to fall back on
 * the handshake then fails. */
static int find_session(SSL *ssl, const unsigned char *identity, size_t length,
                        SSL_SESSION **ret_session)
{
    const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    *ret_session = NULL;
    if (length != tls->identity_length || memcmp(identity, tls->identity, length) != 0)
        return 1;
    *ret_session = key_session(ssl);
    return *ret_session != NULL;
}

static int use_session(SSL *ssl, const EVP_MD *md, const unsigned char **ret_identity,
                       size_t *ret_length, SSL_SESSION **ret_session)
{
    const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    (void)md; /* that of the only cipher */
    *ret_session = key_session(ssl);
    if (!*ret_session)
        return 0;
    *ret_identity = tls->identity;
    *ret_length = tls->identity_length;
    return 1;
}

static SSL_CTX *new_context(struct tls *tls, const SSL_METHOD *method)
{
    char groups[] = "X25519:P-256"; /* the macro below casts const away */
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
    /* A process that dies says no farewell; what it left unfinished shows in the frames. */
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                     SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_clear_options(context, SSL_OP_ALLOW_NO_DHE_KEX);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return context;
}

int tls_create(const char *job, const uint8_t key[TLS_KEY_BYTES], struct tls **ret_tls,
               struct hvd_err *err)
{
    size_t length = strlen(job);
    struct tls *tls = mem_zalloc(sizeof(*tls) + length);

    if (!tls)
        return err_set(err, HVD_E_NOMEM, "TLS: %s", err_text(HVD_E_NOMEM));
    memcpy(tls->key, key, TLS_KEY_BYTES);
    memcpy(tls->identity, job, length);
    tls->identity_length = length;
    tls->server = new_context(tls, TLS_server_method());
    tls->client = new_context(tls, TLS_client_method());
    if (!tls->server || !tls->client) {
        unsigned long error = ERR_peek_last_error();

        tls_free(tls);
        return err_set(err, HVD_E_UNSUPPORTED, "TLS 1.3 with %s: %s; is OpenSSL 3 set up?", CIPHER,
                       tls_reason(error));
    }
    SSL_CTX_set_psk_find_session_callback(tls->server, find_session);
    SSL_CTX_set_psk_use_session_callback(tls->client, use_session);
    /* No authority is trusted: a server that answers with a certificate is none of ours. */
    SSL_CTX_set_verify(tls->client, SSL_VERIFY_PEER, NULL);
    *ret_tls = tls;
    return 0;
}

int tls_name(const struct tls *tls, char name[TLS_NAME_MAX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];

    if (!EVP_Digest(tls->key, TLS_KEY_BYTES, digest, NULL, EVP_sha256(), NULL))
        return HVD_E_NOMEM;
    for (size_t i = 0; i < TLS_NAME_MAX / 2; i++)
        snprintf(name + 2 * i, 3, "%02x", digest[i]);
    return 0;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->server);
    SSL_CTX_free(tls->client);
    OPENSSL_cleanse(tls->key, sizeof(tls->key));
    mem_free(tls);
}

SSL *tls_session(struct tls *tls, bool server)
{
    ERR_clear_error(); /* what is left of others must not be taken for this one's */
    return SSL_new(server ? tls->server : tls->client);
}

bool tls_proved(const SSL *session)
{
    return SSL_session_reused(session) && SSL_version(session) == TLS1_3_VERSION;
}

const char *tls_reason(unsigned long error)
{
    const char *text;

    switch (ERR_GET_REASON(error)) {
    case SSL_R_BINDER_DOES_NOT_VERIFY: return "it has another key";
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER: return "it has another key, and refuses ours";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE: return "it is of another job, and refuses ours";
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return "it has no key of this job";
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_RECORD_LENGTH_MISMATCH: return "it does not speak TLS 1.3";
    default: break;
    }
    text = error ? ERR_reason_error_string(error) : NULL;
    return text ? text : "no reason is known";
}
