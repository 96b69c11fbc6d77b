/*
 * meet.c: the thread that serves one listening socket and all control connections of this process;
 * opened and closed by engine.c. Each iteration begins rounds that have arrived, carries out orders
 * and deadlines, waits for events, and hands them to handshake.c.
 *
 * A stranger (a connection that has not sent HELLO yet) costs little: few strangers are connected
 * at a time, each for a short time, and base/door.h chooses which stranger is closed when a new one
 * comes.
 */
#include "collectives/meet/meet.h"

#include "base/mem.h"
#include "base/time.h"
#include "collectives/link/socket.h"
#include "collectives/meet/meet_internal.h"
#include "os/clock.h"
#include "os/source.h"
#include "os/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/* Without a free descriptor the listener is not polled for REST_US. After STARVED_US without one,
 * the peers that must dial this process count as missed. */
#define REST_US          (50 * TIME_MS)
#define STARVED_US       TIME_S

#define ACCEPTED_AT_ONCE 64            /* how many at a time: then members are served */
#define CROWD_TOLD_US    (10 * TIME_S) /* time between two reports of a crowded port */

/* Begins the rounds that were joined since the last iteration. false: the thread must end. */
static bool take_arrivals(struct meet *meet, int64_t now_us)
{
    struct list arrived = LIST_INIT(arrived);
    bool closing;

    /* move the rounds to the list `arrived`, because the mutex is not held while a round begins */
    pthread_mutex_lock(&meet->mutex);
    while (!list_empty(&meet->arrivals)) {
        struct list *it = meet->arrivals.next;

        list_remove(it);
        list_append(&arrived, it);
    }
    closing = meet->closing;
    pthread_mutex_unlock(&meet->mutex);
    while (!list_empty(&arrived)) {
        struct meet_round *round = CONTAINER_OF(arrived.next, struct meet_round, place);

        list_remove(&round->place);
        list_append(&meet->rounds, &round->place);
        handshake_begin(round, now_us);
    }
    return !closing;
}

/* true: in this state the connection waits for its deadline_us too: the next dial, or its end. */
static bool has_deadline(const struct meet_conn *conn)
{
    return conn->state == CONN_WAITS || conn->state == CONN_STRANGER || conn->state == CONN_PARKED;
}

/* Waits until a descriptor is ready or the next deadline has passed. false: no descriptor is ready.
 * `rests`: no descriptor is free, so the listener is not polled (rests_until_us). */
static bool wait_for_events(struct meet *meet, int64_t now_us)
{
    bool rests = now_us < meet->rests_until_us;
    int64_t next_us = rests ? meet->rests_until_us : INT64_MAX;
    nfds_t count = 2; /* `wake` and the listener have the entries 0 and 1 */
    int wait_ms = -1;

    meet->polled.items[0] = (struct pollfd){ .fd = meet->wake, .events = POLLIN };
    meet->polled.items[1] = (struct pollfd){ .fd = rests ? -1 : meet->listener, .events = POLLIN };
    LIST_EACH (it, &meet->conns) {
        struct meet_conn *conn = CONTAINER_OF(it, struct meet_conn, place);

        if (has_deadline(conn) && conn->deadline_us < next_us)
            next_us = conn->deadline_us;
        conn->polled = conn->fd < 0 ? 0 : count;
        if (conn->polled)
            meet->polled.items[count++] =
                (struct pollfd){ .fd = conn->fd, .events = handshake_events(conn) };
    }
    LIST_EACH (it, &meet->rounds) {
        const struct meet_round *round = CONTAINER_OF(it, struct meet_round, place);

        if (round->left && round->deadline_us < next_us)
            next_us = round->deadline_us;
    }

    /* rounded up, so that the deadline has passed when poll returns */
    if (next_us != INT64_MAX)
        wait_ms = next_us <= now_us ? 0 : (int)((next_us - now_us + 999) / 1000);
    return poll(meet->polled.items, count, wait_ms) > 0;
}

/* Closes strangers until a new one from this source may enter (base/door.h), and tells the owner of
 * meet from where most strangers come. A stranger whose bytes wait in the kernel counts as one that
 * has spoken. */
static void meet_make_room(struct meet *meet, uint64_t source, int64_t now_us)
{
    char shown[SOURCE_TEXT_MAX], text[ERR_TEXT_MAX];
    struct door_report report;
    struct door_guest *guest;
    meet_crowd_fn *crowded;

    while ((guest = door_next_leaver(&meet->door, source)) != NULL) {
        struct meet_conn *conn = CONTAINER_OF(guest, struct meet_conn, guest);

        if (!guest->spoke && source_has_spoken(conn->fd)) {
            door_spoke(guest);
            continue;
        }
        door_turn_away(&meet->door, guest, now_us);
        meet_conn_free(conn);
    }
    /* A crowd of the past is not told when a member comes later. */
    if (meet->door.crowded_us != now_us ||
        !door_report(&meet->door, now_us, CROWD_TOLD_US, &report))
        return;
    pthread_mutex_lock(&meet->mutex);
    crowded = meet->crowded;
    /* The text is the same for the same source, because the driver logs a repeated equal text only
     * once. */
    snprintf(text, sizeof(text),
             "unknown connections crowd the port at which this worker meets other workers (%s:%u), "
             "most from %s; members of the job are still met",
             meet->contact.host, meet->contact.port, source_show(report.source, shown));
    pthread_mutex_unlock(&meet->mutex);
    if (crowded)
        crowded(meet->crowded_arg, text);
}

/* Accepts waiting connections as strangers, at most ACCEPTED_AT_ONCE, so that many strangers do not
 * delay the connections of members. Each gets a challenge. */
static void meet_accept_strangers(struct meet *meet, int64_t now_us)
{
    for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
        uint64_t source;
        int fd = socket_accept(meet->listener, &source);
        struct meet_conn *conn, *victim;
        struct door_guest *guest;

        if (fd < 0 && source_is_starved(meet->listener, errno)) {
            /* Close the stranger that base/door.h chooses, to get its descriptor; without strangers
             * close the oldest parked connection, whose peer dials again. An old member of the job
             * can park connections, so parked connections must not keep members out. */
            guest = door_any_leaver(&meet->door);
            victim = guest ? CONTAINER_OF(guest, struct meet_conn, guest) : NULL;
            LIST_EACH (it, &meet->conns) {
                conn = CONTAINER_OF(it, struct meet_conn, place);
                if (!victim && conn->state == CONN_PARKED)
                    victim = conn;
            }
            if (victim) {
                meet_conn_free(victim);
                continue;
            }
            /* the listener rests: the new connection waits in the kernel */
            meet->rests_until_us = now_us + REST_US;
            if (!meet->starves_since_us)
                meet->starves_since_us = now_us;
            if (now_us < meet->starves_since_us + STARVED_US)
                return;
            LIST_EACH (it, &meet->rounds) {
                meet_round_starves(CONTAINER_OF(it, struct meet_round, place));
            }
            return;
        }
        meet->starves_since_us = 0;
        if (fd < 0)
            return;
        meet_make_room(meet, source, now_us);
        conn = meet_conn_create(meet, CONN_STRANGER, fd);
        if (!conn)
            continue;
        conn->deadline_us = now_us + LIMIT_GREETING_US;
        door_enter(&meet->door, &conn->guest, source);
        handshake_challenge(conn);
    }
}

/* Main function of meet's thread. In each iteration it begins new rounds, carries out orders, acts
 * on deadlines that have passed, and serves the ready connections. */
static void *meet_work(void *arg)
{
    struct meet *meet = arg;
    eventfd_t ignored;
    short events;

    while (take_arrivals(meet, clock_now_us())) {
        int64_t now_us = clock_now_us();

        /* carry out the orders of the rounds' owners, and act on deadlines that have passed */
        LIST_EACH_SAFE (it, after, &meet->rounds) {
            struct meet_round *round = CONTAINER_OF(it, struct meet_round, place);

            meet_round_obey(round, now_us);
            meet_round_end(round, now_us);
        }
        LIST_EACH_SAFE (it, after, &meet->conns) {
            struct meet_conn *conn = CONTAINER_OF(it, struct meet_conn, place);

            if (has_deadline(conn) && conn->deadline_us <= now_us)
                handshake_due(conn, now_us);
        }

        if (!wait_for_events(meet, clock_now_us()))
            continue;
        if (meet->polled.items[0].revents)
            (void)eventfd_read(meet->wake, &ignored);
        /* Serves the ready connections. The search begins anew after each, because serving one
         * connection may free another connection of the same peer. */
        do {
            events = 0;
            LIST_EACH (it, &meet->conns) {
                struct meet_conn *conn = CONTAINER_OF(it, struct meet_conn, place);

                events = conn->polled ? meet->polled.items[conn->polled].revents : 0;
                conn->polled = 0;
                if (events) {
                    handshake_ready(conn, events, clock_now_us());
                    break;
                }
            }
        } while (events);
        if (meet->polled.items[1].revents) /* the listener */
            meet_accept_strangers(meet, clock_now_us());
    }
    return NULL;
}

/* Frees meet, of which parts may be missing. The thread of meet does not run, and no round is left.
 */
static void meet_release(struct meet *meet)
{
    while (!list_empty(&meet->conns))
        meet_conn_free(CONTAINER_OF(meet->conns.next, struct meet_conn, place));
    if (meet->listener >= 0)
        close(meet->listener);
    if (meet->wake >= 0)
        close(meet->wake);
    VEC_RELEASE(&meet->polled);
    pthread_cond_destroy(&meet->changed);
    pthread_mutex_destroy(&meet->mutex);
    mem_free(meet);
}

/* Listens at `host`, and starts the thread of meet (meet.h). `contact`, which peers need to dial
 * this process, gets the port and a random secret. */
int meet_open(const char *host, struct meet **ret_meet, struct hvd_err *err)
{
    struct meet *meet = mem_zalloc(sizeof(*meet));
    size_t length = strlen(host);
    struct endpoint endpoint = { .port = 0 };
    int rc = 0;

    if (!meet)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the port at which workers meet; free memory on this host");
    meet->listener = -1;
    meet->wake = -1;
    list_init(&meet->conns);
    door_init(&meet->door, LIMIT_STRANGERS, LIMIT_STRANGERS_EACH);
    list_init(&meet->rounds);
    list_init(&meet->arrivals);
    pthread_mutex_init(&meet->mutex, NULL);
    pthread_cond_init(&meet->changed, NULL);
    if (length >= sizeof(meet->contact.host) || endpoint_parse(host, 0, &endpoint))
        rc = err_set(err, HVD_E_INVAL,
                     "\"%s\" is no numeric address; give an IP address of this machine", host);
    else if (getrandom(meet->contact.secret, MEET_SECRET_BYTES, 0) != MEET_SECRET_BYTES)
        rc =
            err_set(err, HVD_E_IO,
                    "the kernel gives no random bytes; allow the call getrandom in this container");
    else if ((meet->listener = socket_listen(&endpoint)) < 0)
        rc = err_set(err, HVD_E_IO,
                     "this worker cannot listen on %s: %s; choose an address of this machine with "
                     "--network-interface",
                     host, strerror(errno));
    else if ((meet->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        rc = err_set(err, HVD_E_LIMIT,
                     "no file descriptor is left for the connections between workers; raise the "
                     "limit of open files (ulimit -n)");
    else if (VEC_RESERVE(&meet->polled, 2 /* the listener and `wake` */, LIMIT_WORKERS))
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory for the port at which workers meet; free memory on this host");
    if (!rc) {
        memcpy(meet->contact.host, host, length + 1);
        meet->contact.port = endpoint.port;
        meet_contact_write(&meet->contact, meet->contact_text);
        if (thread_start(&meet->thread, 0, meet_work, meet))
            rc = err_set(err, HVD_E_NOMEM,
                         "no thread can be started for the connections between workers; raise the "
                         "limit of processes (ulimit -u)");
    }
    if (rc)
        meet_release(meet);
    else
        *ret_meet = meet;
    return rc;
}

/* Puts `host` into the contact (meet.h). The thread of meet reads the contact's host for a remark,
 * under the mutex. */
int meet_announce(struct meet *meet, const char *host, struct hvd_err *err)
{
    struct endpoint endpoint;

    if (strlen(host) >= sizeof(meet->contact.host) || endpoint_parse(host, 0, &endpoint))
        return err_set(err, HVD_E_INVAL, "\"%s\" is no numeric address; give an IP address", host);
    pthread_mutex_lock(&meet->mutex);
    memcpy(meet->contact.host, host, strlen(host) + 1);
    meet_contact_write(&meet->contact, meet->contact_text);
    pthread_mutex_unlock(&meet->mutex);
    return 0;
}

/* Sets the owner's callback for a crowded port (meet.h); meet's thread reads it under the mutex. */
void meet_watch_crowd(struct meet *meet, meet_crowd_fn *crowded, void *arg)
{
    pthread_mutex_lock(&meet->mutex);
    meet->crowded = crowded;
    meet->crowded_arg = arg;
    pthread_mutex_unlock(&meet->mutex);
}

/* Ends meet's thread and frees everything. The caller has left all rounds (meet.h). */
void meet_close(struct meet *meet)
{
    if (!meet)
        return;
    pthread_mutex_lock(&meet->mutex);
    meet->closing = true;
    pthread_mutex_unlock(&meet->mutex);
    (void)eventfd_write(meet->wake, 1);
    pthread_join(meet->thread, NULL);
    meet_release(meet);
}

/* Returns the contact of this process as text: its address and the secret (meet_wire.h). */
const char *meet_contact(const struct meet *meet)
{
    return meet->contact_text;
}
