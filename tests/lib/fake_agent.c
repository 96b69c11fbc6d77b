/*
 * fake_agent.c: an agent for tests of the worker library: a thread that listens on a socket, plays
 * a script of messages with the worker, and notes every message that it receives.
 */
#include "tests/lib/fake_agent.h"

#include "base/panic.h"
#include "proto/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* the code with which the agent's thread ends a script that is done */
#define ENOUGH 1

/* ---- notes for the test ---------------------------------------------------------------------- */

PRINTF_LIKE(2, 3) static int fails(struct fake_agent *fake, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&fake->lock);
    va_start(args, format);
    if (!fake->failed)
        vsnprintf(fake->why, sizeof(fake->why), format, args);
    va_end(args);
    fake->failed = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return ENOUGH;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* true: the message is a STALLED that differs from the one before only in the time. A worker
 * repeats STALLED while it waits, which on a busy machine is more than the notes can hold. */
static bool is_repeated(struct fake_agent *fake, const struct msg *msg, const char *line)
{
    const char *of = msg->type == MSG_STALLED ? strstr(line, " operation=") : NULL;
    bool same;

    if (!of)
        return false;
    same = fake->stalled_round == msg->round && !strcmp(fake->stalled, of);
    fake->stalled_round = msg->round;
    snprintf(fake->stalled, sizeof(fake->stalled), "%s", of);
    return same;
}

/* Keeps the fields of a message that later steps of the script answer with. */
static void keep(struct fake_agent *fake, const struct msg *msg)
{
    char line[512];

    if (msg->type == MSG_READY) {
        for (size_t i = 0; i < msg->u.ready.addresses.count; i++) {
            const char *text = msg->u.ready.addresses.items[i];

            if (i == 0)
                snprintf(fake->contact, sizeof(fake->contact), "%s", text);
            if (strncmp(text, "gpu=", 4) == 0)
                snprintf(fake->gpu, sizeof(fake->gpu), "%s", text);
        }
    }
    if (msg->type == MSG_NEXT_CHECK)
        fake->check = msg->u.next_check.check;
    if (msg->type == MSG_SNAPSHOT)
        fake->asked = msg->u.snapshot;
    if (msg->type == MSG_FETCH) {
        fake->fetch = msg->u.fetch.number;
        fake->commit = msg->u.fetch.commit;
    }
    /* Appends the message to the notes that the test reads, and wakes a test that waits for it.
     * Heartbeats are left out, and so is a STALLED that is repeated. The fields above are set
     * before, because the test that wakes may read them at once. */
    msg_describe(msg, line, sizeof(line));
    if (msg->type == MSG_BEAT || is_repeated(fake, msg, line))
        return;
    pthread_mutex_lock(&fake->lock);
    fake->length += (size_t)snprintf(fake->heard + fake->length, sizeof(fake->heard) - fake->length,
                                     "%s\n", line);
    ASSERT(fake->length < sizeof(fake->heard));
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

/* Waits for the socket; 0: there may be something to read. */
static int wait_for_worker(struct fake_agent *fake, int patience_ms)
{
    struct pollfd fds[] = {
        {.fd = fake->link.fd,  .events = POLLIN},
        { .fd = fake->stop_fd, .events = POLLIN}
    };
    int count = poll(fds, ARRAY_SIZE(fds), patience_ms);

    if (count == 0)
        return fails(fake, "the wait has no end");
    return count > 0 && !fds[0].revents ? ENOUGH : 0;
}

/* Receives until a message of this type has come whose line contains `part` (NULL: any line). Type
 * 0: until the worker closes the connection. */
static int hear(struct fake_agent *fake, enum msg_type type, const char *part)
{
    struct hvd_err err;
    struct msg msg;
    int rc;

    for (;;) {
        char line[512];

        memset(&msg, 0, sizeof(msg));
        rc = agent_link_receive(&fake->link, &msg, &err);
        if (rc < 0 && type)
            return fails(fake, "the worker is gone before message %d", (int)type);
        if (rc < 0)
            return ENOUGH;
        if (rc == 0) {
            if (wait_for_worker(fake, type ? FAKE_PATIENCE_MS : -1))
                return ENOUGH;
            continue;
        }
        rc = msg.type == type && (!part || strstr(msg_describe(&msg, line, sizeof(line)), part));
        if (type && type != MSG_RECOVERING && msg.type == MSG_RECOVERING &&
            msg.u.recovering.text[0])
            rc = fails(fake, "the worker gives up: %s", msg.u.recovering.text);
        keep(fake, &msg);
        msg_release(&msg);
        if (rc)
            return fake->failed ? ENOUGH : 0;
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Sends the bytes. A worker that has closed the connection is noticed at the next receive. */
static int send_bytes(struct fake_agent *fake, void *bytes, size_t length, int fd)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = { .space = { 0 } };
    struct iovec part = { bytes, length };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };

    if (fd >= 0) {
        header.msg_control = &control;
        header.msg_controllen = sizeof(control);
        control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS,
                                          .cmsg_len = CMSG_LEN(sizeof(int)) };
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&header)), &fd, sizeof(fd));
    }
    (void)sendmsg(fake->link.fd, &header, MSG_NOSIGNAL);
    return 0;
}

static int say_raw(struct fake_agent *fake, const char *text)
{
    char bytes[256];

    snprintf(bytes, sizeof(bytes), "%s", text);
    return send_bytes(fake, bytes, strlen(bytes), -1);
}

/* Sends the message, with a descriptor if fd is not -1. 0, or the code of a message that cannot be
 * encoded. */
static int say(struct fake_agent *fake, const struct msg *msg, int fd)
{
    struct hvd_err err;
    struct buf frame;
    int rc;

    buf_init(&frame, LIMIT_FRAME_BODY_BYTES);
    rc = msg_encode(msg, &frame, &err);
    if (rc)
        fails(fake, "it cannot say that: %s", err.text);
    else
        send_bytes(fake, frame.data, frame.length, fd);
    buf_release(&frame);
    return rc;
}

static int make_page(struct fake_agent *fake, uint64_t incarnation, off_t bytes)
{
    struct page page = { .magic = PAGE_MAGIC, .version = PAGE_VERSION, .incarnation = incarnation };
    int fd = memfd_create("page", MFD_CLOEXEC);

    if (fd < 0 || pwrite(fd, &page, sizeof(page), 0) != (ssize_t)sizeof(page) ||
        ftruncate(fd, bytes))
        abort();
    if (fake->page_fd >= 0)
        close(fake->page_fd);
    return fake->page_fd = fd;
}

static int welcome(struct fake_agent *fake, int fd)
{
    return say(fake,
               &(struct msg){ .type = MSG_WELCOME_WORKER,
                              .incarnation = FAKE_INCARNATION,
                              .u.welcome_worker = fake->welcome },
               fd);
}

static const struct msg granted = { .type = MSG_GRANTED,
                                    .incarnation = FAKE_INCARNATION,
                                    .u.granted = { .text = "" } };

static int grant(struct fake_agent *fake)
{
    const struct msg_snapshot *asked = &fake->asked;
    const struct snapshot_shape shape = { asked->manifest, asked->replicated_bytes, asked->bytes };
    struct hvd_err err;

    if (!fake->snapshot && snapshot_create(&shape, &fake->snapshot, &err))
        return fails(fake, "it has no snapshot: %s", err.text);
    return say(fake, &granted, snapshot_fd(fake->snapshot));
}

/* Answers a fetch. Like a real agent, it writes the commit before it answers and nothing
 * afterwards, because from then on the worker writes. */
static int fetched(struct fake_agent *fake)
{
    const struct snapshot_shape *shape = snapshot_shape(fake->source);
    uint64_t bytes = fake->per_rank ? shape->bytes : shape->replicated_bytes;
    const uint8_t *from = snapshot_find(fake->source, fake->commit);
    const struct msg said = {
        .type = MSG_FETCHED,
        .incarnation = FAKE_INCARNATION,
        .u.fetched = {.number = fake->fetch,
                      .commit = fake->commit,
                      .code = from ? 0 : HVD_E_LOST,
                      .text = !from                ? "no holder has it"
                               : fake->fetched_text ? fake->fetched_text
                                                    : "",
                      .bytes = bytes,
                      .per_rank = fake->per_rank},
    };
    uint8_t *to;

    if (from && fake->fetched != fake->fetch) {
        to = snapshot_begin(fake->snapshot);
        memcpy(to, from, bytes);
        for (uint64_t i = 0; i < bytes / STATE_CHUNK_BYTES; i++)
            snapshot_set_sum(fake->snapshot, i, snapshot_chunk_sum(fake->source, fake->commit, i));
        fake->fetched = fake->fetch;
    }
    return say(fake, &said, -1);
}

static int switch_at(struct fake_agent *fake, const struct msg *like)
{
    struct msg msg = *like;

    msg.u.switch_at.check = fake->check + 1;
    return say(fake, &msg, -1);
}

/* ---- the script ------------------------------------------------------------------------------ */

static int hold(struct fake_agent *fake)
{
    bool go;

    pthread_mutex_lock(&fake->lock);
    while (!fake->go)
        pthread_cond_wait(&fake->changed, &fake->lock);
    go = fake->go;
    fake->go = false;
    pthread_mutex_unlock(&fake->lock);
    return go ? 0 : ENOUGH;
}

static int do_step(struct fake_agent *fake, const struct fake_step *step)
{
    switch (step->deed) {
    case FAKE_OVER: hear(fake, 0, NULL); return ENOUGH;
    case FAKE_HEAR: return hear(fake, step->type, step->bytes);
    case FAKE_SAY: return say(fake, step->msg, -1);
    case FAKE_RAW: return say_raw(fake, step->bytes);
    case FAKE_WELCOME: return welcome(fake, make_page(fake, FAKE_INCARNATION, PAGE_BYTES));
    case FAKE_PAGELESS: return welcome(fake, -1);
    case FAKE_WRONG_PAGE: return welcome(fake, make_page(fake, FAKE_INCARNATION + 1, PAGE_BYTES));
    case FAKE_SHORT_PAGE: return welcome(fake, make_page(fake, FAKE_INCARNATION, 0));
    case FAKE_GRANT: return grant(fake);
    case FAKE_BARE_GRANT: return say(fake, &granted, -1);
    case FAKE_SWITCH_AT: return switch_at(fake, step->msg);
    case FAKE_FETCHED: return fetched(fake);
    case FAKE_HOLD: return hold(fake);
    case FAKE_CLOSE: break;
    }
    return ENOUGH;
}

static void *play(void *arg)
{
    struct fake_agent *fake = arg;
    struct pollfd fds[] = {
        {.fd = fake->listener, .events = POLLIN},
        { .fd = fake->stop_fd, .events = POLLIN}
    };

    if (poll(fds, ARRAY_SIZE(fds), -1) < 0 || !fds[0].revents)
        return NULL;
    fake->link.fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 0; i < fake->close_at && !do_step(fake, &fake->script[i]); i++) {
    }
    agent_link_close(&fake->link);
    return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static int listen_at(struct fake_agent *fake)
{
    static unsigned serial;
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    size_t length;

    snprintf(fake->name, sizeof(fake->name), "@hvd-fake-agent-%d-%u", (int)getpid(), serial++);
    length = strlen(fake->name);
    memcpy(at.sun_path + 1, fake->name + 1, length - 1);
    fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(fake->listener, (const struct sockaddr *)&at,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) ||
                   listen(fake->listener, 4)
               ? HVD_E_IO
               : 0;
}

int fake_agent_init(struct fake_agent *fake)
{
    char text[24];

    memset(fake, 0, sizeof(*fake));
    fake->close_at = SIZE_MAX;
    fake->page_fd = -1;
    fake->link.fd = fake->link.passed_fd = -1;
    fake->welcome = (struct msg_welcome_worker){ .version = "test",
                                                 .job = "test",
                                                 .host = "a",
                                                 .size = 1,
                                                 .local_size = 1,
                                                 .cross_size = 1,
                                                 .min_np = 1,
                                                 .max_np = 4 };
    pthread_mutex_init(&fake->lock, NULL);
    pthread_cond_init(&fake->changed, NULL);
    fake->stop_fd = eventfd(0, EFD_CLOEXEC);
    snprintf(text, sizeof(text), "%d", FAKE_INCARNATION);
    setenv("HVD_INCARNATION", text, 1);
    if (listen_at(fake))
        return HVD_E_IO;
    setenv("HVD_AGENT", fake->name, 1);
    return 0;
}

int fake_agent_start(struct fake_agent *fake, const struct fake_step *script)
{
    fake->script = script;
    frame_reader_init(&fake->link.reader, LIMIT_FRAME_BODY_BYTES);
    buf_init(&fake->link.unsent, LIMIT_FRAME_BODY_BYTES);
    if (pthread_create(&fake->thread, NULL, play, fake))
        return HVD_E_NOMEM;
    fake->started = true;
    return 0;
}

void fake_agent_go(struct fake_agent *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->go = true;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

bool fake_agent_stop(struct fake_agent *fake)
{
    const uint64_t one = 1;

    if (fake->started) {
        fake_agent_go(fake);
        (void)!write(fake->stop_fd, &one, sizeof(one));
        pthread_join(fake->thread, NULL);
        fake->started = false;
    }
    return !fake->failed;
}

void fake_agent_release(struct fake_agent *fake)
{
    fake_agent_stop(fake);
    snapshot_free(fake->snapshot);
    close(fake->listener);
    close(fake->stop_fd);
    if (fake->page_fd >= 0)
        close(fake->page_fd);
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->lock);
}

/* ---- for the test ---------------------------------------------------------------------------- */

size_t fake_agent_count(struct fake_agent *fake, const char *part)
{
    const char *at = fake->heard;
    size_t count = 0;

    pthread_mutex_lock(&fake->lock);
    while ((at = strstr(at, part)) != NULL) {
        at += strlen(part);
        count++;
    }
    pthread_mutex_unlock(&fake->lock);
    return count;
}

bool fake_agent_heard(struct fake_agent *fake, const char *part)
{
    return fake_agent_count(fake, part) > 0;
}

bool fake_agent_await(struct fake_agent *fake, const char *part)
{
    struct timespec until;
    bool heard;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAKE_PATIENCE_MS / 1000;
    pthread_mutex_lock(&fake->lock);
    while (!(heard = strstr(fake->heard, part) != NULL) && !fake->failed && !rc)
        rc = pthread_cond_timedwait(&fake->changed, &fake->lock, &until);
    pthread_mutex_unlock(&fake->lock);
    return heard;
}
