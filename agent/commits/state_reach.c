/*
 * state_reach.c: early connections: connections to holders that are opened before a fetch needs
 * them (PROTOCOL.md, FETCH of commit 0 with sources). A joiner asks for them while its round is
 * prepared: at that time a slow network does not delay the members. Called by state_fetch.c, and by
 * state_source.c, which takes the connections over; all in the thread. Invariants: a connection in
 * thread->early has no other owner; the connection is closed when its worker has ended or has its
 * commit, or after KEPT_US.
 */
#include "agent/commits/state_fetch_internal.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

/* the most agents that are dialled for one worker */
#define REACH_AT_ONCE 8
#define EARLY_MAX     64       /* the most early connections for all workers of this host */
#define KEPT_US       TIME_MIN /* how long an open connection waits for a fetch that uses it */
/* How long an agent that does not answer, or refuses, is dialled again and again. */
#define PATIENCE_US     (5 * TIME_S)
#define REDIAL_US       (50 * TIME_MS) /* the wait after the first failed dial; it doubles */
#define REDIALS_DOUBLED 4              /* the wait doubles at most this many times */

/* A connection that is being dialled, or is open and waits for the fetch that takes it over. */
struct early_conn {
    struct list link; /* in thread->early */
    struct state_thread *thread;
    uint64_t requester; /* the worker connection for which `conn` is opened */
    char address[ADDRESS_TEXT_MAX];
    struct conn *conn;      /* NULL: the agent is dialled when `timer` fires */
    bool open;              /* the connection is made, and the agent has proved its key */
    unsigned tries;         /* dials that have failed */
    int64_t until_us;       /* no dial is repeated after this time */
    struct event *timer;    /* the next dial; open: the end of KEPT_US */
    char why[ERR_TEXT_MAX]; /* why the agent is not dialled any more */
};

static const struct conn_ops reach_conn_ops;

/* Closes an early connection, or ends its dial, and frees the entry. No fetch is answered here. */
static void reach_free(struct early_conn *early)
{
    list_remove(&early->link);
    if (early->conn)
        conn_drop(early->conn);
    if (early->timer)
        event_free(early->timer);
    mem_free(early);
}

/* Returns the entry that was made for the fetching worker and this address; NULL: none. */
static struct early_conn *reach_find(const struct fetch *fetch, const char *address)
{
    LIST_EACH (it, &fetch->thread->early) {
        struct early_conn *early = CONTAINER_OF(it, struct early_conn, link);

        if (early->requester == fetch->requester && !strcmp(early->address, address))
            return early;
    }
    return NULL;
}

/* Ends each fetch of commit 0 that can be answered: with success when one of its holders is
 * connected; with the reasons when no holder is connected or dialled. `lost`: an agent that could
 * not be reached, and is not dialled any more; NULL: none. */
static void reach_answer(struct state_thread *thread, const struct early_conn *lost)
{
    LIST_EACH_SAFE (it, after, &thread->running) {
        struct fetch *fetch = CONTAINER_OF(it, struct fetch, link);
        const struct msg_source_list *sources = &fetch->msg.u.fetch.sources;
        bool open = false, waits = false;
        char why[ERR_TEXT_MAX];

        if (fetch->msg.u.fetch.commit)
            continue;
        for (size_t i = 0; i < sources->count; i++) {
            const char *address = source_address_of(&sources->items[i]);
            const struct early_conn *early = address ? reach_find(fetch, address) : NULL;

            if (lost && address && lost->requester == fetch->requester &&
                !strcmp(lost->address, address))
                fetch_note(fetch, &sources->items[i], lost->why);
            open |= fetch_is_here(fetch, &sources->items[i]) || (early && early->open);
            waits |= early != NULL;
        }
        snprintf(why, sizeof(why), "%s",
                 fetch->answer.text[0] ? fetch->answer.text : "no holder has an address");
        if (open || !waits)
            fetch_end(fetch, open ? 0 : HVD_E_LOST, open ? "" : why);
    }
}

/* Sets the timer of an early connection. false: no memory is left; the caller then ends this early
 * connection. */
static bool reach_wait(struct early_conn *early, int64_t us)
{
    const struct timeval wait = clock_timeval(us);

    return !event_add(early->timer, &wait);
}

/* This agent is not dialled any more: answers the fetches for which it was the last hope, and frees
 * its entry. The entry leaves the list first, so that reach_answer does not count it. */
static void reach_give_up(struct early_conn *early, const char *why)
{
    snprintf(early->why, sizeof(early->why), "%s", why);
    list_remove(&early->link);
    reach_answer(early->thread, early);
    reach_free(early);
}

/* The dial has failed, or the connection is lost. A dial that failed is repeated a little later,
 * until its time is over. A connection that was open and is lost is given up at once. */
static void reach_failed(struct early_conn *early, const char *why)
{
    unsigned doubled = early->tries < REDIALS_DOUBLED ? early->tries : REDIALS_DOUBLED;

    early->conn = NULL;
    early->tries++;
    if (early->open || clock_now_us() >= early->until_us ||
        !reach_wait(early, REDIAL_US << doubled))
        reach_give_up(early, why);
}

/* The timer has fired: closes a connection that no fetch used for KEPT_US, or dials the agent. */
static void reach_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct early_conn *early = arg;
    struct state_thread *thread = early->thread;
    const char *address = early->address;
    const struct msg_texts addresses = { &address, 1 };
    struct hvd_err err = { 0 };

    (void)fd;
    (void)what;
    if (early->open)
        reach_free(early);
    else if (!early->conn && conn_dial(thread->base, &addresses, thread->config.tls,
                                       &reach_conn_ops, early, &early->conn, &err))
        reach_failed(early, err.text);
}

/* A holder is connected. The handshake has proved its key, so no further greeting follows, and
 * conn_greeted ends the time limit of the greeting. The fetches that wait for a holder are
 * answered. */
static void reach_on_opened(void *arg)
{
    struct early_conn *early = arg;

    early->open = true;
    conn_greeted(early->conn);
    if (!reach_wait(early, KEPT_US))
        reach_give_up(early, err_text(HVD_E_NOMEM));
    else
        reach_answer(early->thread, NULL); /* NULL: no agent was given up */
}

/* A holder that sends a message before it is asked breaks the protocol: its connection is
 * closed. */
static void reach_on_msg(void *arg, const struct msg *msg)
{
    (void)msg;
    reach_free(arg);
}

/* The connection to a holder could not be made, or is lost. */
static void reach_on_closed(void *arg, const char *why)
{
    reach_failed(arg, why);
}

static const struct conn_ops reach_conn_ops = { reach_on_opened, reach_on_msg, reach_on_closed,
                                                NULL };

/* Begins a fetch of commit 0, which fetches no bytes: dials up to REACH_AT_ONCE of the listed
 * holders. The next fetch of this worker asks the holders for the bytes of a commit over these
 * connections (reach_take), and need not wait for a dial. The fetch of commit 0 is answered when
 * one of the holders is connected, or when none can be. */
void reach_begin(struct fetch *fetch)
{
    const struct msg_source_list *sources = &fetch->msg.u.fetch.sources;
    struct state_thread *thread = fetch->thread;
    size_t dialled = 0;

    for (size_t i = 0; i < sources->count && dialled < REACH_AT_ONCE; i++) {
        const char *address = source_address_of(&sources->items[i]);
        struct early_conn *early = address ? reach_find(fetch, address) : NULL;

        if (!address || strlen(address) >= sizeof(early->address) ||
            fetch_is_here(fetch, &sources->items[i]))
            continue;
        /* a holder that was dialled for this worker before does not count for REACH_AT_ONCE */
        dialled += !early;
        if (early || list_length(&thread->early) >= EARLY_MAX)
            continue;
        early = mem_zalloc(sizeof(*early));
        if (early)
            early->timer = evtimer_new(thread->base, reach_on_timer, early);
        if (!early || !early->timer) {
            mem_free(early);
            break;
        }
        early->thread = thread;
        early->requester = fetch->requester;
        memcpy(early->address, address, strlen(address));
        early->until_us = clock_now_us() + PATIENCE_US;
        list_append(&thread->early, &early->link);
        /* the timer dials, so that the fetch does not end in this loop */
        if (!reach_wait(early, 0))
            reach_free(early);
    }
    reach_answer(thread, NULL /* no agent was lost */);
}

/* Hands an open connection over to the caller, who owns it from now on. NULL: no connection to this
 * address is open for this worker. */
struct conn *reach_take(struct fetch *fetch, const char *address)
{
    struct early_conn *early = reach_find(fetch, address);
    struct conn *conn;

    if (!early || !early->open)
        return NULL;
    conn = early->conn;
    early->conn = NULL;
    reach_free(early);
    return conn;
}

/* Closes the connections that were opened ahead of a fetch for one worker connection (`requester`).
 * `requester` 0 stands for all, which is used when the thread ends. */
void reach_drop(struct state_thread *thread, uint64_t requester)
{
    LIST_EACH_SAFE (it, after, &thread->early) {
        struct early_conn *early = CONTAINER_OF(it, struct early_conn, link);

        if (!requester || early->requester == requester)
            reach_free(early);
    }
}
