/*
 * test_tls.c: wire/tls: the server and the client refuse another key, another job, rubbish and
 * silence.
 */
#include "wire/tls_session.h"

#include "seal/seal.h"
#include "tests/lib/wire_side.h"
#include "wire/listener_internal.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wire wire;

static const uint8_t key[TLS_KEY_BYTES] = "the key of these tests, 32 bytes";
static const uint8_t other_key[TLS_KEY_BYTES] = "quite another key, of 32 bytes..";

/* A peer with this job name and key connects and is refused; the job's connection goes on. */
static void is_turned_away(struct test *t, const char *job, const uint8_t *with, const char *said)
{
    struct tls *tls = NULL;
    struct wire_side member = { 0 };

    CHECK(t, wire_begin(&wire));
    CHECK(t, wire_connect(&wire));
    member = wire.client;
    CHECK_OK(t, tls_create(job, with, &tls, NULL));
    wire.client = (struct wire_side){ .wire = &wire };
    conn_own(member.conn, &wire_side_ops, &member);
    CHECK_OK(t, wire_dial(&wire, tls));
    WIRE_UNTIL(&wire, wire.client.closed && wire.log_lines);
    CHECK_INT(t, wire.client.closed, ==, 1);
    CHECK_INT(t, wire.client.opened, ==, 0);
    CHECK_HAS(t, wire.client.why, "refuses the key of this");
    CHECK_INT(t, wire.log_lines, ==, 1);
    CHECK_INT(t, wire_logged(&wire, said), ==, 1);
    CHECK_INT(t, wire.accepted, ==, 1);
    CHECK_OK(t, wire_send_beat(&member, 1));
    WIRE_UNTIL(&wire, wire.server.messages || member.closed);
    CHECK_INT(t, wire.server.messages, ==, 1);
    CHECK_INT(t, member.closed, ==, 0);
out:
    if (member.conn != wire.client.conn)
        wire_drop(&member);
    wire_end(&wire);
    tls_free(tls);
}

TEST(another_key_is_turned_away)
{
    is_turned_away(t, "job", other_key, "the peer has another key");
}

/* Bytes before the proof must be TLS: otherwise one line is logged, and no owner hears of them. */
TEST(rubbish_is_turned_away)
{
    static const char *const rubbish[] = { "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                           "hvdE\1\0\x65\0\0\0\0\0 and so on and so on",
                                           "\x16\x03\x01\x00\x05hello there, all of you", "\n" };
    int fds[ARRAY_SIZE(rubbish)] = { -1, -1, -1, -1 };

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen(&wire));
    for (size_t i = 0; i < ARRAY_SIZE(rubbish); i++) {
        fds[i] = wire_stranger(&wire);
        CHECK(t, write(fds[i], rubbish[i], strlen(rubbish[i])) > 0);
        shutdown(fds[i], SHUT_WR);
    }
    WIRE_UNTIL(&wire, wire.log_lines == ARRAY_SIZE(rubbish));
    CHECK_INT(t, wire_logged(&wire, "turned away"), ==, ARRAY_SIZE(rubbish));
    CHECK_INT(t, wire.accepted, ==, 0);
    CHECK_INT(t, wire.listener->door.count, ==, 0);
out:
    for (size_t i = 0; i < ARRAY_SIZE(rubbish); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    wire_end(&wire);
}

TEST(silence_is_turned_away)
{
    int fd = -1;

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen(&wire));
    wire.listener->greeting_us = 1000;
    fd = wire_stranger(&wire);
    WIRE_UNTIL(&wire, wire.log_lines);
    CHECK_INT(t, wire_logged(&wire, "did not end the handshake in time"), ==, 1);
    CHECK_INT(t, wire.listener->door.count, ==, 0);
out:
    if (fd >= 0)
        close(fd);
    wire_end(&wire);
}

/* Makes a handshake in one thread. true: `ours` accepts `theirs`. */
static bool shake(SSL *ours, SSL *theirs)
{
    BIO *left = NULL;
    BIO *right = NULL;
    int done = 0;

    if (!BIO_new_bio_pair(&left, 0, &right, 0))
        return false;
    SSL_set_bio(ours, left, left);
    SSL_set_bio(theirs, right, right);
    for (int i = 0; i < 20 && done != 1; i++) {
        done = SSL_do_handshake(ours);
        (void)SSL_do_handshake(theirs);
    }
    return done == 1 && tls_proved(ours);
}

static SSL_CTX *certified(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();

    if (context && pair && certificate) {
        X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
        X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
        X509_set_pubkey(certificate, pair);
        X509_sign(certificate, pair, EVP_sha256());
        SSL_CTX_use_certificate(context, certificate);
        SSL_CTX_use_PrivateKey(context, pair);
    }
    X509_free(certificate);
    EVP_PKEY_free(pair);
    return context;
}

/* Each side against a stranger with a certificate, and against a peer of its own job. */
static void shake_with(struct test *t, bool server, bool stranger)
{
    SSL_CTX *context = certified();
    struct tls *tls = NULL;
    SSL *ours = NULL;
    SSL *theirs = NULL;

    CHECK(t, context);
    CHECK_OK(t, tls_create("job", key, &tls, NULL));
    ours = tls_session(tls, server, NULL);
    theirs = stranger ? SSL_new(context) : tls_session(tls, !server, NULL);
    CHECK(t, ours && theirs);
    if (server) {
        SSL_set_accept_state(ours);
        SSL_set_connect_state(theirs);
    } else {
        SSL_set_connect_state(ours);
        SSL_set_accept_state(theirs);
    }
    CHECK(t, shake(ours, theirs) == !stranger);
out:
    SSL_free(ours);
    SSL_free(theirs);
    tls_free(tls);
    SSL_CTX_free(context);
}

TEST(a_server_believes_the_key)
{
    shake_with(t, true, false);
}

TEST(a_client_believes_the_key)
{
    shake_with(t, false, false);
}

TEST(a_server_believes_no_certificate)
{
    shake_with(t, true, true);
}

TEST(a_client_believes_no_certificate)
{
    shake_with(t, false, true);
}

/* ---- who is at the other end ------------------------------------------------------------------
 */

/* A server accepts several keys, and each connection proves the name and number of its own. */
TEST(a_key_proves_a_name)
{
    struct tls *dialler = NULL;

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, tls_accept_key(wire.tls, "host-b", 7, other_key));
    CHECK_OK(t, tls_create("unused", other_key, &dialler, NULL));
    CHECK_OK(t, wire_listen(&wire));
    CHECK_OK(t, wire_dial(&wire, dialler));
    WIRE_UNTIL(&wire, wire.client.opened && wire.accepted);
    CHECK_INT(t, wire.accepted, ==, 1);
    CHECK_TEXT(t, conn_proved(wire.server.conn)->name, "host-b");
    CHECK_INT(t, conn_proved(wire.server.conn)->number, ==, 7);
    CHECK_TEXT(t, conn_proved(wire.client.conn)->name, "");
out:
    wire_end(&wire);
    tls_free(dialler);
}

TEST(a_key_that_was_ended_is_turned_away)
{
    struct tls *dialler = NULL;

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, tls_accept_key(wire.tls, "host-b", 7, other_key));
    tls_refuse_key(wire.tls, "host-b", 6); /* another epoch of the same host */
    tls_refuse_key(wire.tls, "host-b", 7);
    CHECK_OK(t, tls_create("unused", other_key, &dialler, NULL));
    CHECK_OK(t, wire_listen(&wire));
    CHECK_OK(t, wire_dial(&wire, dialler));
    WIRE_UNTIL(&wire, wire.client.closed && wire.log_lines);
    CHECK_HAS(t, wire.client.why, TLS_REFUSED);
    CHECK_INT(t, wire.accepted, ==, 0);
out:
    wire_end(&wire);
    tls_free(dialler);
}

/* A process without a key opens no connection, not even to a peer whose key is all zeros. */
TEST_FLAGS(a_process_without_a_key_does_not_dial, TEST_NO_TORTURE)
{
    static const uint8_t zeros[TLS_KEY_BYTES] = { 0 };
    struct tls *dialler = NULL;

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, tls_accept_key(wire.tls, "zeros", 1, zeros));
    CHECK_OK(t, tls_create("", NULL, &dialler, NULL));
    CHECK_OK(t, wire_listen(&wire));
    CHECK_OK(t, wire_dial(&wire, dialler));
    WIRE_UNTIL(&wire, wire.client.closed);
    CHECK_INT(t, wire.client.opened, ==, 0);
    CHECK_INT(t, wire.accepted, ==, 0);
out:
    wire_end(&wire);
    tls_free(dialler);
}

/* An attacker's client says this in its handshake. */
static struct {
    uint8_t identity[16];
    size_t length;
    uint8_t key[TLS_KEY_BYTES];
} claim;

static int claim_session(SSL *ssl, const EVP_MD *md, const unsigned char **ret_identity,
                         size_t *ret_length, SSL_SESSION **ret_session)
{
    static const unsigned char cipher[] = { 0x13, 0x01 };
    SSL_SESSION *session = SSL_SESSION_new();

    (void)md;
    if (!session || !SSL_SESSION_set1_master_key(session, claim.key, sizeof(claim.key)) ||
        !SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, cipher)) ||
        !SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return 0;
    *ret_identity = claim.identity;
    *ret_length = claim.length;
    *ret_session = session;
    return 1;
}

static int alert;

static void on_alert(const SSL *ssl, int where, int value)
{
    (void)ssl;
    if (where == SSL_CB_READ_ALERT)
        alert = value;
}

/* Returns the alert that the server answers to `claim` with; 0: it gets in. */
static int alert_for(struct tls *tls)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *theirs = context ? SSL_new(context) : NULL, *ours = tls_session(tls, true, NULL);

    alert = 0;
    if (theirs && ours) {
        SSL_set_info_callback(theirs, on_alert);
        SSL_set_psk_use_session_callback(theirs, claim_session);
        SSL_set_ciphersuites(theirs, "TLS_AES_128_GCM_SHA256");
        SSL_set_accept_state(ours);
        SSL_set_connect_state(theirs);
        (void)shake(ours, theirs);
        (void)SSL_do_handshake(theirs); /* reads the alert */
    }
    SSL_free(theirs);
    SSL_free(ours);
    SSL_CTX_free(context);
    return alert;
}

/* An observer who tries identities learns nothing: an unknown one is refused as a wrong key is. */
TEST_FLAGS(all_refusals_are_alike, TEST_NO_TORTURE)
{
    struct tls *tls = NULL;
    int wrong_key;

    CHECK_OK(t, tls_create("job", key, &tls, NULL));
    CHECK_OK(t, seal_derive(key, sizeof(key), "hvd tls identity", "", 0, claim.identity, 16));
    claim.length = 16;
    memcpy(claim.key, key, sizeof(key));
    CHECK_INT(t, alert_for(tls), ==, 0); /* the client itself is right */
    memcpy(claim.key, other_key, sizeof(other_key));
    wrong_key = alert_for(tls);
    CHECK_INT(t, wrong_key, !=, 0);
    claim.identity[0] ^= 1;
    CHECK_INT(t, alert_for(tls), ==, wrong_key);
    claim.length = 3;
    CHECK_INT(t, alert_for(tls), ==, wrong_key);
out:
    tls_free(tls);
}
