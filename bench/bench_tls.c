#include "bench/bench_tls.h"

#include "os/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CIPHER      "TLS_AES_128_GCM_SHA256"
#define PIECE_BYTES (256 * 1024)
#define READ_BYTES  (16 * 1024)

struct carry {
    uint64_t bytes;
    int sender;
    int receiver;
    bool sent;
};

static const unsigned char cipher_id[] = { 0x13, 0x01 };
static const unsigned char key[32] = { 1 };

static SSL_SESSION *session_of(SSL *ssl)
{
    SSL_SESSION *session = SSL_SESSION_new();

    if (session && SSL_SESSION_set1_master_key(session, key, sizeof(key)) &&
        SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, cipher_id)) &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static int find_key(SSL *ssl, const unsigned char *identity, size_t length,
                    SSL_SESSION **ret_session)
{
    (void)identity;
    (void)length;
    *ret_session = session_of(ssl);
    return *ret_session != NULL;
}

static int use_key(SSL *ssl, const EVP_MD *md, const unsigned char **ret_identity,
                   size_t *ret_length, SSL_SESSION **ret_session)
{
    (void)md;
    *ret_session = session_of(ssl);
    *ret_identity = key;
    *ret_length = 1;
    return *ret_session != NULL;
}

static SSL *shake(SSL_CTX *context, int fd, bool server)
{
    SSL *ssl = context ? SSL_new(context) : NULL;

    if (!ssl || !SSL_CTX_set_ciphersuites(context, CIPHER))
        return ssl;
    SSL_set_ciphersuites(ssl, CIPHER);
    if (server)
        SSL_set_psk_find_session_callback(ssl, find_key);
    else
        SSL_set_psk_use_session_callback(ssl, use_key);
    SSL_set_fd(ssl, fd);
    if ((server ? SSL_accept(ssl) : SSL_connect(ssl)) == 1)
        return ssl;
    SSL_free(ssl);
    return NULL;
}

static void *send_all(void *arg)
{
    static char piece[PIECE_BYTES];
    struct carry *carry = arg;
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    SSL *ssl = shake(context, carry->sender, true);
    uint64_t left = ssl ? carry->bytes : 0;
    int rc = 1;

    while (left > 0 && rc > 0) {
        rc = SSL_write(ssl, piece, PIECE_BYTES);
        left -= rc > 0 ? (uint64_t)rc : 0;
    }
    carry->sent = ssl && left == 0;
    SSL_free(ssl);
    SSL_CTX_free(context);
    shutdown(carry->sender, SHUT_RDWR);
    return NULL;
}

static bool connect_both(struct carry *carry)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t length = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    carry->receiver = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    carry->sender = -1;
    if (listener >= 0 && !bind(listener, (struct sockaddr *)&at, sizeof(at)) &&
        !listen(listener, 1) && !getsockname(listener, (struct sockaddr *)&at, &length) &&
        !connect(carry->receiver, (struct sockaddr *)&at, sizeof(at)))
        carry->sender = accept(listener, NULL, NULL);
    close(listener);
    return carry->sender >= 0;
}

static double receive_all(const struct carry *carry)
{
    static char piece[READ_BYTES];
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = shake(context, carry->receiver, false);
    int64_t begin_us = clock_now_us();
    uint64_t left = carry->bytes;
    int rc = ssl ? 1 : 0;

    while (left > 0 && rc > 0) {
        rc = SSL_read(ssl, piece, READ_BYTES);
        left -= rc > 0 ? (uint64_t)rc : 0;
    }
    SSL_free(ssl);
    SSL_CTX_free(context);
    return left == 0 ? (double)(clock_now_us() - begin_us) / 1e6 : -1;
}

double bench_tls_carry(uint64_t bytes)
{
    struct carry carry = { .bytes = bytes };
    pthread_t thread;
    double seconds = -1;

    if (connect_both(&carry) && !pthread_create(&thread, NULL, send_all, &carry)) {
        seconds = receive_all(&carry);
        shutdown(carry.receiver, SHUT_RDWR);
        pthread_join(thread, NULL);
    }
    close(carry.sender);
    close(carry.receiver);
    return carry.sent ? seconds : -1;
}
