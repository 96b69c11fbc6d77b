/*
 * state_thread.c: the thread in which commits travel, and the lists between this thread and the
 * agent's loop. Called by agent/io/loop_commits.c; the thread's own calls come from its event loop.
 * Invariants: a fetch is in exactly one list, and every list is used under the mutex; the thread
 * never calls the agent, but wakes the agent's loop by an eventfd.
 */
#include "agent/commits/state_fetch_internal.h"
#include "agent/commits/state_internal.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* How long the agent's loop waits for the address at which the thread serves commits. The thread
 * usually answers at once. */
#define LISTEN_PATIENCE_US TIME_S
#define LISTENERS_MAX      16      /* a host has few addresses from which it reaches drivers */
#define ROUND_KEY          "round" /* the TLS name of a round's key; its number is the round */

/* Returns the oldest fetch of a list; NULL: the list is empty. */
static struct fetch *thread_first_of(struct list *fetches)
{
    return list_empty(fetches) ? NULL : CONTAINER_OF(fetches->next, struct fetch, link);
}

/* Listens on `host` and sets ret_address to the listener's address, or to "" when listening failed:
 * then other agents cannot fetch commits from this host, and training goes on. */
static void thread_listen_at(struct state_thread *thread, const char *host, char *ret_address)
{
    struct listener *listener = NULL;
    struct hvd_err err = { 0 };
    int rc;

    /* The thread may listen on this host already: "10.0.0.7:4001", or "[::1]:4001" for "::1". */
    for (size_t i = 0; i < thread->listeners.count; i++) {
        const char *address = listener_address(thread->listeners.items[i]);
        bool brackets = address[0] == '[';
        size_t length = (size_t)(strrchr(address, ':') - address) - (brackets ? 2 : 0);

        if (strlen(host) != length || memcmp(address + brackets, host, length) != 0)
            continue;
        snprintf(ret_address, ADDRESS_TEXT_MAX, "%s", address);
        return;
    }
    ret_address[0] = '\0';
    rc = VEC_RESERVE(&thread->listeners, 1, LISTENERS_MAX);
    if (rc)
        err_set(&err, rc, "%s", err_text(rc));
    else
        rc = listener_tcp(thread->base, &(struct listener_place){ host, 0, thread->config.tls },
                          serve_accepted, thread, &listener, &err);
    if (rc) {
        log_error(STATE, "other hosts cannot fetch the commits of this host: %s", err.text);
        return;
    }
    thread->listeners.items[thread->listeners.count++] = listener;
    snprintf(ret_address, ADDRESS_TEXT_MAX, "%s", listener_address(listener));
    log_info(STATE, "the agent serves commits at %s", ret_address);
}

/* Takes the key of a new round. The key of the previous round is accepted for `key_us` more,
 * because a puller may learn of a round a little later than its holder (PROTOCOL.md, STATE_KEY). */
static void thread_take_key(struct state_thread *thread)
{
    const struct timeval later = clock_timeval(thread->config.key_us);
    uint8_t key[STATE_KEY_BYTES];
    uint64_t round;
    bool failed;

    pthread_mutex_lock(&thread->mutex);
    round = thread->key_round;
    memcpy(key, thread->key, sizeof(key));
    explicit_bzero(thread->key, sizeof(thread->key));
    thread->key_round = 0;
    pthread_mutex_unlock(&thread->mutex);
    if (round <= thread->round)
        return;
    failed = tls_accept_key(thread->config.tls, ROUND_KEY, round, key) ||
             tls_dial_with(thread->config.tls, key) || event_add(thread->old_keys, &later);
    explicit_bzero(key, sizeof(key));
    if (failed) {
        log_error(STATE,
                  "no memory for the key of round %" PRIu64 ": until the next round fetches of "
                  "commits from this host and to it may fail; free memory on this host",
                  round);
        return;
    }
    /* Only the newest key and the key before it are accepted. Still older keys are refused here,
     * because the timer that refuses keys begins anew with each key and would come late. */
    if (thread->kept_round)
        tls_refuse_key(thread->config.tls, ROUND_KEY, thread->kept_round);
    thread->kept_round = thread->round;
    thread->round = round;
    serve_end(thread, thread->kept_round);
}

/* The time of the previous round's key is over: the key is refused, and connections that used it
 * are closed. */
static void thread_on_old_keys(evutil_socket_t fd, short what, void *arg)
{
    struct state_thread *thread = arg;

    (void)fd;
    (void)what;
    if (thread->kept_round)
        tls_refuse_key(thread->config.tls, ROUND_KEY, thread->kept_round);
    thread->kept_round = 0;
    serve_end(thread, thread->round);
}

/* The agent's loop has woken this thread; the fields and lists of `thread` say why: a new round
 * key, the end, another address to listen at, workers that are gone (`gone`), fetches that were
 * forgotten, or new fetches. One wake-up may have several of these reasons. */
static void thread_on_woken(evutil_socket_t fd, short what, void *arg)
{
    struct state_thread *thread = arg;
    char host[ADDRESS_TEXT_MAX], address[ADDRESS_TEXT_MAX];
    eventfd_t ignored; /* the value does not matter: fields and lists say what to do */
    struct fetch *fetch;
    bool stopping;

    (void)what;
    (void)eventfd_read(fd, &ignored);
    pthread_mutex_lock(&thread->mutex);
    stopping = thread->stopping;
    memcpy(host, thread->wanted, sizeof(host));
    pthread_mutex_unlock(&thread->mutex);
    thread_take_key(thread);
    if (stopping) {
        event_base_loopbreak(thread->base);
        return;
    }
    if (host[0]) {
        thread_listen_at(thread, host, address);
        pthread_mutex_lock(&thread->mutex);
        memcpy(thread->address, address, sizeof(address));
        /* the agent's loop may have asked for still another address meanwhile: that stays */
        if (!strcmp(host, thread->wanted))
            thread->wanted[0] = '\0';
        pthread_cond_broadcast(&thread->listened);
        pthread_mutex_unlock(&thread->mutex);
    }
    pthread_mutex_lock(&thread->mutex);
    for (; thread->gone.count; thread->gone.count--)
        reach_drop(thread, thread->gone.items[thread->gone.count - 1]);
    pthread_mutex_unlock(&thread->mutex);
    /* Only this thread removes fetches from the list of running ones, so it may read the list
     * without the lock. */
    LIST_EACH_SAFE (it, after, &thread->running) {
        fetch = CONTAINER_OF(it, struct fetch, link);
        fetch_look(fetch);
    }
    for (;;) {
        struct fetch *before = NULL;

        /* An earlier fetch of the same worker may still run: it is ended below. */
        pthread_mutex_lock(&thread->mutex);
        fetch = thread_first_of(&thread->asked);
        if (fetch) {
            LIST_EACH (it, &thread->running) {
                struct fetch *running = CONTAINER_OF(it, struct fetch, link);

                if (running->requester == fetch->requester)
                    before = running;
            }
            list_remove(&fetch->link);
            list_append(&thread->running, &fetch->link);
        }
        pthread_mutex_unlock(&thread->mutex);
        if (!fetch)
            return;
        if (before)
            fetch_end(before, HVD_E_REVOKED, "the worker has asked for another fetch");
        fetch_begin(fetch);
    }
}

/* Frees all that belongs to the thread's event loop, connections included. */
static void thread_release_base(struct state_thread *thread)
{
    for (size_t i = 0; i < thread->listeners.count; i++)
        listener_free(thread->listeners.items[i]);
    VEC_RELEASE(&thread->listeners);
    /* all connections are closed: every round is below UINT64_MAX, and the requester 0 stands for
     * all workers */
    serve_end(thread, UINT64_MAX);
    reach_drop(thread, 0 /* of all workers */);
    if (thread->woken)
        event_free(thread->woken);
    if (thread->old_keys)
        event_free(thread->old_keys);
    if (thread->base)
        event_base_free(thread->base);
}

/* The thread: runs its event loop until the agent ends, then ends the fetches that still run. */
static void *state_thread_main(void *arg)
{
    struct state_thread *thread = arg;

    /* On a busy host the agent's loop must run in time, so the thread that moves gigabytes gets the
     * usual priority (0), which is lower than the agent's. A thread that has it already, or that
     * cannot know its priority, changes nothing. */
    errno = 0;
    if (getpriority(PRIO_PROCESS, 0) < 0 && !errno)
        (void)setpriority(PRIO_PROCESS, 0, 0);
    if (event_base_dispatch(thread->base))
        log_error(
            STATE,
            "the event loop for commits has failed: no commit is fetched or served from now on; "
            "drain this host, and its next agent serves commits again");
    while (!list_empty(&thread->running))
        fetch_end(thread_first_of(&thread->running), HVD_E_LOST, "the agent ends");
    thread_release_base(thread);
    return NULL;
}

/* Asks the thread to close the connections that were opened for a worker before its fetch needed
 * them (state_reach.c). The caller holds the mutex. Without memory for this request the connections
 * stay until KEPT_US (1 minute) has passed. */
static void thread_drop_early(struct state_thread *thread, uint64_t requester)
{
    if (!VEC_RESERVE(&thread->gone, 1, LIMIT_LOCAL_PEERS))
        thread->gone.items[thread->gone.count++] = requester;
    (void)eventfd_write(thread->to_thread, 1);
}

/* Called in the agent's loop when the thread has finished some fetches: answers and frees them.
 * After the fetch of a real commit (not 0) the connections that were opened for its worker before
 * the fetch (state_reach.c) are not needed any more, and are closed. */
static void state_thread_on_told(evutil_socket_t fd, short what, void *arg)
{
    struct state_thread *thread = arg;
    eventfd_t ignored;
    struct fetch *fetch;

    (void)what;
    (void)eventfd_read(fd, &ignored);
    for (;;) {
        pthread_mutex_lock(&thread->mutex);
        fetch = thread_first_of(&thread->answered);
        if (fetch)
            list_remove(&fetch->link);
        if (fetch && fetch->msg.u.fetch.commit)
            thread_drop_early(thread, fetch->requester);
        pthread_mutex_unlock(&thread->mutex);
        if (!fetch)
            return;
        fetch_tell(fetch);
        fetch_free(fetch);
    }
}

/* Frees the struct and what the agent's loop owns of it. The thread was not started, or has ended;
 * thread_release_base has freed what belongs to the thread. */
static void state_thread_destroy(struct state_thread *thread)
{
    struct list *lists[] = { &thread->asked, &thread->answered };

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        while (!list_empty(lists[i])) {
            struct fetch *fetch = thread_first_of(lists[i]);

            list_remove(&fetch->link);
            fetch_free(fetch);
        }
    }
    VEC_RELEASE(&thread->gone);
    if (thread->told)
        event_free(thread->told);
    if (thread->to_thread >= 0)
        close(thread->to_thread);
    if (thread->to_loop >= 0)
        close(thread->to_loop);
    pthread_cond_destroy(&thread->listened);
    pthread_mutex_destroy(&thread->mutex);
    mem_free(thread);
}

/* Makes the thread and its event loop, and starts the thread. On failure all of it is freed. */
int state_thread_start(struct event_base *base, const struct state_config *config,
                       const struct state_ops *ops, void *arg, struct state_thread **ret_thread,
                       struct hvd_err *err)
{
    struct state_thread *thread = mem_zalloc(sizeof(*thread));
    int rc;

    if (!thread)
        return err_set(err, HVD_E_NOMEM,
                       "no memory for the thread that moves commits; free memory on this host");
    thread->config = *config;
    thread->ops = ops;
    thread->arg = arg;
    list_init(&thread->asked);
    list_init(&thread->running);
    list_init(&thread->answered);
    list_init(&thread->servings);
    list_init(&thread->early);
    rc = pthread_mutex_init(&thread->mutex, NULL);
    ASSERT(rc == 0);
    rc = thread_cond_init(&thread->listened);
    ASSERT(rc == 0);

    /* Two eventfds, one to wake each side, and the events on them. */
    thread->to_thread = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread->to_loop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->to_thread < 0 || thread->to_loop < 0)
        rc = HVD_E_LIMIT;
    else if ((thread->base = event_base_new())) {
        thread->woken = event_new(thread->base, thread->to_thread, EV_READ | EV_PERSIST,
                                  thread_on_woken, thread);
        thread->old_keys = evtimer_new(thread->base, thread_on_old_keys, thread);
        thread->told =
            event_new(base, thread->to_loop, EV_READ | EV_PERSIST, state_thread_on_told, thread);
    }
    if (!rc && (!thread->woken || !thread->told || !thread->old_keys ||
                event_add(thread->woken, NULL) || event_add(thread->told, NULL)))
        rc = HVD_E_NOMEM;
    if (!rc)
        rc = thread_start(&thread->thread, 0, state_thread_main, thread);
    if (rc) {
        thread_release_base(thread);
        state_thread_destroy(thread);
        return err_set(err, rc,
                       rc == HVD_E_LIMIT
                           ? "no thread or file descriptor is left for the commits of "
                             "workers; raise ulimit -u or ulimit -n"
                           : "no memory for the event loop of commits; free memory on this host");
    }
    *ret_thread = thread;
    return 0;
}

/* Ends the thread and frees everything. Unfinished fetches get no answer. */
void state_thread_stop(struct state_thread *thread)
{
    if (!thread)
        return;
    pthread_mutex_lock(&thread->mutex);
    thread->stopping = true;
    pthread_mutex_unlock(&thread->mutex);
    (void)eventfd_write(thread->to_thread, 1);
    pthread_join(thread->thread, NULL);
    state_thread_destroy(thread);
}

/* Tells the thread to serve commits also on this address of the host; state_thread_address waits
 * until it does. */
void state_thread_listen(struct state_thread *thread, const char *host)
{
    pthread_mutex_lock(&thread->mutex);
    snprintf(thread->wanted, sizeof(thread->wanted), "%s", host);
    pthread_mutex_unlock(&thread->mutex);
    (void)eventfd_write(thread->to_thread, 1);
}

/* Gives the key of a round to the thread. If the thread has not taken an earlier key yet, only the
 * later key is kept. */
void state_thread_key(struct state_thread *thread, uint64_t round,
                      const uint8_t key[STATE_KEY_BYTES])
{
    pthread_mutex_lock(&thread->mutex);
    if (thread->key_round < round) {
        thread->key_round = round;
        memcpy(thread->key, key, STATE_KEY_BYTES);
    }
    pthread_mutex_unlock(&thread->mutex);
    (void)eventfd_write(thread->to_thread, 1);
}

/* The agent puts this address into the welcome of each worker. If the thread was told to listen and
 * does not listen yet, the agent's loop waits here, for at most LISTEN_PATIENCE_US. */
const char *state_thread_address(struct state_thread *thread)
{
    int64_t until_us = clock_now_us() + LISTEN_PATIENCE_US;

    pthread_mutex_lock(&thread->mutex);
    while (thread->wanted[0] && !thread_cond_wait(&thread->listened, &thread->mutex, until_us))
        ;
    memcpy(thread->shown, thread->address, sizeof(thread->shown));
    pthread_mutex_unlock(&thread->mutex);
    return thread->shown[0] ? thread->shown : NULL;
}

/* Puts a fetch into the list `asked`, from which the thread takes it. */
int state_thread_fetch(struct state_thread *thread, uint64_t requester, uint32_t slot,
                       const struct msg *asked)
{
    struct fetch *fetch = fetch_create(thread, requester, slot, asked);

    if (!fetch)
        return HVD_E_NOMEM;
    pthread_mutex_lock(&thread->mutex);
    list_append(&thread->asked, &fetch->link);
    pthread_mutex_unlock(&thread->mutex);
    (void)eventfd_write(thread->to_thread, 1);
    return 0;
}

/* The worker connection `requester` is gone: its fetches get no answer, no matter which of the
 * lists has them. */
void state_thread_forget(struct state_thread *thread, uint64_t requester)
{
    struct list *lists[] = { &thread->asked, &thread->running, &thread->answered };

    pthread_mutex_lock(&thread->mutex);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        LIST_EACH (it, lists[i]) {
            struct fetch *fetch = CONTAINER_OF(it, struct fetch, link);

            if (fetch->requester == requester)
                fetch_forget(fetch);
        }
    }
    thread_drop_early(thread, requester);
    pthread_mutex_unlock(&thread->mutex);
}
