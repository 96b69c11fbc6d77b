#include "wire/tls_session.h"

#include "tests/lib/wire_side.h"
#include "wire/listener_state.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wire wire;

static const uint8_t key[TLS_KEY_BYTES] = "the key of these tests, 32 bytes";
static const uint8_t other_key[TLS_KEY_BYTES] = "quite another key, of 32 bytes..";

/* A job goes on while somebody with this name and key dials it. */
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
    CHECK_HAS(t, wire.client.why, "refuses ours");
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

static void another_key_is_turned_away(struct test *t)
{
    is_turned_away(t, "job", other_key, "it has another key");
}

static void another_job_is_turned_away(struct test *t)
{
    is_turned_away(t, "jobs", key, "it has no key of this job");
}

/* What is said before anything is proved is TLS or nothing: one line, and nobody hears of it. */
static void rubbish_is_turned_away(struct test *t)
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
    CHECK_INT(t, wire.listener->stranger_count, ==, 0);
out:
    for (size_t i = 0; i < ARRAY_SIZE(rubbish); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    wire_end(&wire);
}

static void silence_is_turned_away(struct test *t)
{
    int fd = -1;

    CHECK(t, wire_begin(&wire));
    CHECK_OK(t, wire_listen(&wire));
    wire.listener->greeting_us = 1000;
    fd = wire_stranger(&wire);
    WIRE_UNTIL(&wire, wire.log_lines);
    CHECK_INT(t, wire_logged(&wire, "no handshake in time"), ==, 1);
    CHECK_INT(t, wire.listener->stranger_count, ==, 0);
out:
    if (fd >= 0)
        close(fd);
    wire_end(&wire);
}

/* Both ends of a handshake in one thread; true when the one that is ours believes the other. */
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

/* Each against a stranger with a certificate, and against one of its own. */
static void shake_with(struct test *t, bool server, bool stranger)
{
    SSL_CTX *context = certified();
    struct tls *tls = NULL;
    SSL *ours = NULL;
    SSL *theirs = NULL;

    CHECK(t, context);
    CHECK_OK(t, tls_create("job", key, &tls, NULL));
    ours = tls_session(tls, server);
    theirs = stranger ? SSL_new(context) : tls_session(tls, !server);
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

static void a_server_believes_the_key(struct test *t)
{
    shake_with(t, true, false);
}

static void a_client_believes_the_key(struct test *t)
{
    shake_with(t, false, false);
}

static void a_server_believes_no_certificate(struct test *t)
{
    shake_with(t, true, true);
}

static void a_client_believes_no_certificate(struct test *t)
{
    shake_with(t, false, true);
}

static void keys_have_names(struct test *t)
{
    struct tls *one = NULL;
    struct tls *other = NULL;
    char name[TLS_NAME_MAX];
    char second[TLS_NAME_MAX];

    CHECK_OK(t, tls_create("job", key, &one, NULL));
    CHECK_OK(t, tls_create("job", other_key, &other, NULL));
    CHECK_OK(t, tls_name(one, name));
    CHECK_OK(t, tls_name(other, second));
    CHECK_INT(t, strlen(name), ==, TLS_NAME_MAX - 1);
    CHECK(t, strcmp(name, second) != 0);
    CHECK_OK(t, tls_name(one, second));
    CHECK_TEXT(t, name, second);
out:
    tls_free(one);
    tls_free(other);
}

TESTS(CASE(keys_have_names), CASE(another_key_is_turned_away), CASE(another_job_is_turned_away),
      CASE(rubbish_is_turned_away), CASE(silence_is_turned_away), CASE(a_server_believes_the_key),
      CASE(a_client_believes_the_key), CASE(a_server_believes_no_certificate),
      CASE(a_client_believes_no_certificate))
