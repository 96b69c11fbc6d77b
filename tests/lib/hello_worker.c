/*
 * hello_worker.c: a worker in a test of the agent. It connects to its agent's socket, prints the
 * messages that it gets, and carries out its arguments in their order:
 *
 *     hello [incarnation=N] [pid=N] [twice] [ready] [left] [wait] [snapshot=MANIFEST] [commit=N]
 *     [fetch=COMMIT]
 *
 * Its snapshot has CHUNKS chunks, all replicated. A commit's chunks begin with the number of the
 * commit. A fetch is from slot 0 of this host.
 */
#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"
#include "proto/codec.h"
#include "proto/page.h"
#include "state/snapshot/snapshot.h"
#include "state/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PARTING 77 /* its exit status when the agent closes the connection */
#define CHUNKS  3

static uint64_t incarnation;
static uint64_t pid;
static struct snapshot *snapshot;
static int beside = -1; /* a descriptor that came beside a message; -1: none */

static int dial(void)
{
    const char *name = getenv("HVD_AGENT");
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t length = name ? strlen(name) : 0;

    if (fd < 0 || length < 2 || length > sizeof(at.sun_path) || name[0] != '@')
        return -1;
    memcpy(at.sun_path + 1, name + 1, length - 1);
    if (connect(fd, (const struct sockaddr *)&at,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)))
        return -1;
    return fd;
}

static void say(int fd, const struct msg *msg)
{
    struct hvd_err err;
    struct buf frame;

    buf_init(&frame, 1024 * 1024);
    if (msg_encode(msg, &frame, &err) ||
        send(fd, frame.data, frame.length, MSG_NOSIGNAL) != (ssize_t)frame.length)
        _exit(PARTING);
    buf_release(&frame);
}

/* Receives bytes, and a descriptor that may come beside them. */
static ssize_t receive(int fd, struct iovec part, int *page)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr header = { .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes) };
    ssize_t got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
    struct cmsghdr *rights = got > 0 ? CMSG_FIRSTHDR(&header) : NULL;

    if (rights && rights->cmsg_type == SCM_RIGHTS)
        memcpy(page, CMSG_DATA(rights), sizeof(*page));
    return got;
}

/* Prints the agent's messages until one answers HELLO. */
static void hear(int fd)
{
    /* static, because it keeps what came beside the last message */
    static struct frame_reader reader;
    static const uint8_t *at;
    static uint8_t bytes[4096];
    static size_t left;
    struct frame frame;
    char text[1024];
    struct msg msg;

    if (!reader.body_max)
        frame_reader_init(&reader, LIMIT_FRAME_BODY_BYTES);
    while (frame_feed(&reader, &at, &left, &frame, NULL) != 1) {
        ssize_t got = receive(fd, (struct iovec){ bytes, sizeof(bytes) }, &beside);

        if (got <= 0) {
            printf("hung up on\n");
            fflush(stdout);
            _exit(PARTING);
        }
        at = bytes;
        left = (size_t)got;
    }
    if (msg_decode(&frame, &msg, NULL) == 0) {
        printf("%s\n", msg_describe(&msg, text, sizeof(text)));
        if (msg.type == MSG_WELCOME_WORKER) {
            const struct page *page;

            for (size_t i = 0; i < msg.u.welcome_worker.addresses.count; i++)
                printf("%s\n", msg.u.welcome_worker.addresses.items[i]);
            page =
                beside < 0 ? MAP_FAILED : mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, beside, 0);
            if (page == MAP_FAILED || page->magic != PAGE_MAGIC)
                printf("no page\n");
            else
                printf("page of %" PRIu64 "\n", page->incarnation);
        }
        fflush(stdout);
        msg_release(&msg);
    }
}

static void greet(int fd)
{
    say(fd, &(struct msg){
                .type = MSG_HELLO_WORKER,
                .incarnation = incarnation,
                .u.hello_worker = {.version = "test", .pid = pid}
    });
    hear(fd);
}

/* ---- its state ------------------------------------------------------------------------------- */

static void take_snapshot(int fd, uint64_t manifest)
{
    const struct snapshot_shape shape = { manifest, CHUNKS * STATE_CHUNK_BYTES,
                                          CHUNKS * STATE_CHUNK_BYTES };
    struct hvd_err err;

    snapshot_free(snapshot);
    snapshot = NULL;
    beside = -1;
    say(fd, &(struct msg){
                .type = MSG_SNAPSHOT,
                .incarnation = incarnation,
                .u.snapshot = {shape.manifest, shape.replicated_bytes, shape.bytes}
    });
    hear(fd);
    if (snapshot_open(beside, &shape, &snapshot, &err))
        printf("no snapshot: %s\n", err.text);
    else
        printf("snapshot holds %" PRIu64 "\n", snapshot_newest(snapshot));
    fflush(stdout);
}

static void commit(uint64_t number)
{
    uint8_t *at = snapshot_begin(snapshot);

    for (uint64_t i = 0; i < CHUNKS; i++) {
        uint8_t *chunk = at + i * STATE_CHUNK_BYTES;

        snapshot_set_sum(snapshot, i, SUM_NONE);
        memset(chunk, (int)i, STATE_CHUNK_BYTES);
        memcpy(chunk, &number, sizeof(number));
        snapshot_set_sum(snapshot, i, sum_of(chunk, STATE_CHUNK_BYTES));
    }
    snapshot_end(snapshot, number);
    printf("snapshot holds %" PRIu64 "\n", snapshot_newest(snapshot));
    fflush(stdout);
}

/* Asks the agent to fetch a commit, and prints whether the right bytes have come. */
static void fetch(int fd, uint64_t number)
{
    const struct msg_source source = { .incarnation = 1, .host = getenv("HVD_HOST") };
    const uint8_t *at = snapshot_begin(snapshot);
    bool right = true;
    uint64_t has;

    say(fd, &(struct msg){
                .type = MSG_FETCH,
                .incarnation = incarnation,
                .u.fetch = {.number = number, .commit = number, .sources = { &source, 1 }}
    });
    hear(fd);
    for (uint64_t i = 0; i < CHUNKS; i++) {
        memcpy(&has, at + i * STATE_CHUNK_BYTES, sizeof(has));
        right = right && has == number;
    }
    printf("%s\n", right ? "fetched it" : "fetched something else");
    fflush(stdout);
}

/* ---- the arguments --------------------------------------------------------------------------- */

static uint64_t number_of(const char *text)
{
    uint64_t number = 0;

    if (!text ||
        text_parse_u64((struct span){ text, strlen(text) }, 0, UINT64_MAX, "", &number, NULL))
        return 0;
    return number;
}

int main(int argc, char **argv)
{
    int fd = dial();

    incarnation = number_of(getenv("HVD_INCARNATION"));
    pid = (uint64_t)getpid();
    if (fd < 0)
        return PARTING;
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "incarnation=", 12))
            incarnation = number_of(argv[i] + 12);
        else if (!strncmp(argv[i], "pid=", 4))
            pid = number_of(argv[i] + 4);
        else if (!strcmp(argv[i], "hello"))
            greet(fd);
        else if (!strcmp(argv[i], "ready"))
            say(fd, &(struct msg){ .type = MSG_READY, .incarnation = incarnation });
        else if (!strcmp(argv[i], "left"))
            say(fd, &(struct msg){ .type = MSG_LEFT, .incarnation = incarnation });
        else if (!strncmp(argv[i], "snapshot=", 9))
            take_snapshot(fd, number_of(argv[i] + 9));
        else if (!strncmp(argv[i], "commit=", 7))
            commit(number_of(argv[i] + 7));
        else if (!strncmp(argv[i], "fetch=", 6))
            fetch(fd, number_of(argv[i] + 6));
        else if (!strcmp(argv[i], "wait"))
            for (;;)
                hear(fd);
    }
    return 0;
}
