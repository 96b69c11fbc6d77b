/*
 * fuzz_tls.c: what a peer without the key may send to the driver's port. The peer must never become
 * a connection. The first byte says into what pieces the rest is cut, and whether it is wrapped as
 * a handshake record, so that more than the record layer is tested.
 */
#include "base/panic.h"
#include "wire/conn_internal.h"
#include "wire/tls.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_BYTES 5

static int shaken;

static void on_shaken(void *arg, struct conn *conn, const char *why)
{
    (void)arg;
    ASSERT(why && why[0]); /* no input guesses a key */
    shaken++;
    conn_drop(conn);
}

static void send_all(struct event_base *base, int fd, const uint8_t *data, size_t size, size_t step)
{
    for (size_t at = 0; at < size && !shaken; at += step) {
        size_t length = size - at < step ? size - at : step;

        if (send(fd, data + at, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break;
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t key[TLS_KEY_BYTES] = "the key that the fuzzer has not ";
    static struct event_base *base;
    static struct tls *tls;
    struct conn *conn;
    int fds[2];

    if (size < 1 || size > 16000)
        return 0;
    if (!base) {
        signal(SIGPIPE, SIG_IGN);
        base = event_base_new();
        ASSERT(base && !tls_create("job", key, &tls, NULL));
    }
    shaken = 0;
    ASSERT(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
    conn = conn_create(base, tls);
    ASSERT(conn && !conn_attach_tls(conn, fds[1], true, on_shaken, NULL));
    event_base_loop(base, EVLOOP_NONBLOCK);
    if (data[0] & 1) {
        uint8_t record[RECORD_BYTES] = { 0x16, 3, 3, (uint8_t)((size - 1) >> 8),
                                         (uint8_t)(size - 1) };

        send_all(base, fds[0], record, sizeof(record), sizeof(record));
    }
    send_all(base, fds[0], data + 1, size - 1, (size_t)(data[0] >> 1) * 8 + 1);
    close(fds[0]);
    for (int i = 0; i < 8 && !shaken; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    ASSERT(shaken == 1);
    return 0;
}
