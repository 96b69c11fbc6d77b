#include "collectives/meet/meet.h"

#include "base/mem.h"
#include "base/time.h"
#include "collectives/meet/inside.h"
#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/* Without a descriptor for who knocks: so long it is left to knock, and after so much of that the
 * peers that are awaited are given up. */
#define REST_US    (50 * TIME_MS)
#define STARVED_US TIME_S

/* ---- one turn of the thread ---- */

/* False: it is to end. */
static bool take_arrivals(struct meet *meet, int64_t now_us)
{
    struct list arrived = LIST_INIT(arrived);
    bool closing;

    pthread_mutex_lock(&meet->mutex);
    while (!list_empty(&meet->arrivals)) {
        struct list *it = meet->arrivals.next;

        list_remove(it);
        list_append(&arrived, it);
    }
    closing = meet->closing;
    pthread_mutex_unlock(&meet->mutex);
    while (!list_empty(&arrived)) {
        struct meet_party *party = CONTAINER_OF(arrived.next, struct meet_party, place);

        list_remove(&party->place);
        list_append(&meet->parties, &party->place);
        party_begin(party, now_us);
    }
    return !closing;
}

static void serve_parties(struct meet *meet, int64_t now_us)
{
    LIST_EACH_SAFE (it, after, &meet->parties) {
        struct meet_party *party = CONTAINER_OF(it, struct meet_party, place);

        party_obey(party, now_us);
        if (party_is_done(party, now_us))
            party_end(party);
    }
}

static bool has_deadline(const struct meet_line *line)
{
    return line->stage == LINE_WAITS || line->stage == LINE_STRANGER || line->stage == LINE_PARKED;
}

static void serve_deadlines(struct meet *meet, int64_t now_us)
{
    LIST_EACH_SAFE (it, after, &meet->lines) {
        struct meet_line *line = CONTAINER_OF(it, struct meet_line, place);

        if (has_deadline(line) && line->deadline_us <= now_us)
            line_due(line, now_us);
    }
}

/* In milliseconds from now, rounded up; -1: nothing is due. */
static int next_deadline(struct meet *meet, int64_t now_us)
{
    int64_t next_us = now_us < meet->rests_until_us ? meet->rests_until_us : INT64_MAX;

    LIST_EACH (it, &meet->lines) {
        const struct meet_line *line = CONTAINER_OF(it, struct meet_line, place);

        if (has_deadline(line) && line->deadline_us < next_us)
            next_us = line->deadline_us;
    }
    LIST_EACH (it, &meet->parties) {
        const struct meet_party *party = CONTAINER_OF(it, struct meet_party, place);

        if (party->left && party->deadline_us < next_us)
            next_us = party->deadline_us;
    }
    if (next_us == INT64_MAX)
        return -1;
    return next_us <= now_us ? 0 : (int)((next_us - now_us + 999) / 1000);
}

/* Strangers cost nothing: there are only so many at a time, the oldest goes first. */
static void drop_oldest_stranger(struct meet *meet)
{
    LIST_EACH (it, &meet->lines) {
        struct meet_line *line = CONTAINER_OF(it, struct meet_line, place);

        if (line->stage == LINE_STRANGER) {
            line_free(line);
            return;
        }
    }
}

static bool needs_descriptors(int fault)
{
    return fault == EMFILE || fault == ENFILE || fault == ENOBUFS || fault == ENOMEM;
}

/* Whoever knocks goes on knocking: it is looked at again after a rest, not all the time. */
static void rest(struct meet *meet, int64_t now_us)
{
    meet->rests_until_us = now_us + REST_US;
    if (!meet->starves_since_us)
        meet->starves_since_us = now_us;
    if (now_us < meet->starves_since_us + STARVED_US)
        return;
    LIST_EACH (it, &meet->parties) {
        party_starves(CONTAINER_OF(it, struct meet_party, place));
    }
}

static void accept_all(struct meet *meet, int64_t now_us)
{
    for (;;) {
        int fd = meet_accept(meet->listener);
        struct meet_line *line;

        if (fd < 0 && needs_descriptors(errno) && meet->stranger_count) {
            drop_oldest_stranger(meet);
            continue;
        }
        if (fd < 0 && needs_descriptors(errno)) {
            rest(meet, now_us);
            return;
        }
        meet->starves_since_us = 0;
        if (fd < 0)
            return;
        if (meet->stranger_count >= LIMIT_STRANGERS)
            drop_oldest_stranger(meet);
        line = line_create(meet, LINE_STRANGER, fd);
        if (line)
            line->deadline_us = now_us + LIMIT_GREETING_US;
    }
}

static nfds_t fill_polled(struct meet *meet, int64_t now_us)
{
    bool rests = now_us < meet->rests_until_us;
    nfds_t count = 2;

    meet->polled.items[0] = (struct pollfd){ .fd = meet->wake, .events = POLLIN };
    meet->polled.items[1] = (struct pollfd){ .fd = rests ? -1 : meet->listener, .events = POLLIN };
    LIST_EACH (it, &meet->lines) {
        struct meet_line *line = CONTAINER_OF(it, struct meet_line, place);

        line->polled = 0;
        if (line->fd < 0)
            continue;
        line->polled = count;
        meet->polled.items[count++] =
            (struct pollfd){ .fd = line->fd, .events = line_events(line) };
    }
    return count;
}

/* A line may free another one of its peer: each looks again from the list. */
static void serve_lines(struct meet *meet, int64_t now_us)
{
    bool again = true;

    while (again) {
        again = false;
        LIST_EACH (it, &meet->lines) {
            struct meet_line *line = CONTAINER_OF(it, struct meet_line, place);
            short events = line->polled ? meet->polled.items[line->polled].revents : 0;

            line->polled = 0;
            if (!events)
                continue;
            line_ready(line, events, now_us);
            again = true;
            break;
        }
    }
}

static void *serve(void *arg)
{
    struct meet *meet = arg;
    eventfd_t ignored;
    nfds_t count;

    while (take_arrivals(meet, clock_now_us())) {
        serve_parties(meet, clock_now_us());
        serve_deadlines(meet, clock_now_us());
        count = fill_polled(meet, clock_now_us());
        if (poll(meet->polled.items, count, next_deadline(meet, clock_now_us())) <= 0)
            continue;
        if (meet->polled.items[0].revents)
            (void)eventfd_read(meet->wake, &ignored);
        serve_lines(meet, clock_now_us());
        if (meet->polled.items[1].revents)
            accept_all(meet, clock_now_us());
    }
    return NULL;
}

/* ---- opening and closing ---- */

static void release(struct meet *meet)
{
    while (!list_empty(&meet->lines))
        line_free(CONTAINER_OF(meet->lines.next, struct meet_line, place));
    if (meet->listener >= 0)
        close(meet->listener);
    if (meet->wake >= 0)
        close(meet->wake);
    VEC_RELEASE(&meet->polled);
    pthread_cond_destroy(&meet->changed);
    pthread_mutex_destroy(&meet->mutex);
    mem_free(meet);
}

static int prepare(struct meet *meet, const char *host, struct hvd_err *err)
{
    size_t length = strlen(host);
    int rc;

    if (length >= sizeof(meet->contact.host))
        return err_set(err, HVD_E_INVAL, "\"%s\" is no numeric address", host);
    memcpy(meet->contact.host, host, length + 1);
    if (getrandom(meet->contact.secret, MEET_SECRET_BYTES, 0) != MEET_SECRET_BYTES)
        return err_set(err, HVD_E_IO, "the kernel gives no random bytes");
    rc = meet_listen(&meet->contact, &meet->listener, err);
    if (rc)
        return rc;
    meet_contact_write(&meet->contact, meet->contact_text);
    meet->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (meet->wake < 0)
        return err_set(err, HVD_E_LIMIT, "no descriptor is left; raise the limit (ulimit -n)");
    if (VEC_RESERVE(&meet->polled, 2, LIMIT_WORKERS))
        return err_set(err, HVD_E_NOMEM, "out of memory");
    return 0;
}

int meet_open(const char *host, struct meet **ret_meet, struct hvd_err *err)
{
    struct meet *meet = mem_zalloc(sizeof(*meet));
    int rc;

    if (!meet)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    meet->listener = -1;
    meet->wake = -1;
    list_init(&meet->lines);
    list_init(&meet->parties);
    list_init(&meet->arrivals);
    pthread_mutex_init(&meet->mutex, NULL);
    pthread_cond_init(&meet->changed, NULL);
    rc = prepare(meet, host, err);
    if (!rc && thread_start(&meet->thread, 0, serve, meet))
        rc = err_set(err, HVD_E_NOMEM,
                     "cannot start a thread; raise the limit of processes (ulimit -u)");
    if (rc) {
        release(meet);
        return rc;
    }
    *ret_meet = meet;
    return 0;
}

void meet_close(struct meet *meet)
{
    if (!meet)
        return;
    pthread_mutex_lock(&meet->mutex);
    meet->closing = true;
    pthread_mutex_unlock(&meet->mutex);
    (void)eventfd_write(meet->wake, 1);
    pthread_join(meet->thread, NULL);
    release(meet);
}

const char *meet_contact(const struct meet *meet)
{
    return meet->contact_text;
}
