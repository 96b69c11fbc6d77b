#include "agent/io/state_fetch.h"
#include "agent/io/state_inside.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The thread answers in a moment; who waits for its address gives up after this. */
#define LISTEN_PATIENCE_S 1
#define LISTENERS_MAX     16

static void ring(int fd)
{
    const uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));

    (void)written; /* full: it has rung */
}

static void hush(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));

    (void)got; /* what is to be done is looked up in any case */
}

static struct fetch *first_of(struct list *fetches)
{
    return list_empty(fetches) ? NULL : CONTAINER_OF(fetches->next, struct fetch, link);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool listens_at(const struct state_thread *thread, const char *host, char *ret_address)
{
    for (size_t i = 0; i < thread->listeners.count; i++) {
        const char *address = listener_address(thread->listeners.items[i]);
        const char *colon = strrchr(address, ':');
        size_t length = (size_t)(colon - address);

        if (address[0] == '[' ? strlen(host) + 2 == length && !memcmp(address + 1, host, length - 2)
                              : strlen(host) == length && !memcmp(address, host, length)) {
            snprintf(ret_address, ADDRESS_TEXT_MAX, "%s", address);
            return true;
        }
    }
    return false;
}

/* Without a listener the others have to do without what is held here: training goes on. */
static void listen_at(struct state_thread *thread, const char *host, char *ret_address)
{
    struct listener *listener = NULL;
    struct hvd_err err = { 0 };
    int rc;

    ret_address[0] = '\0';
    if (listens_at(thread, host, ret_address))
        return;
    rc = VEC_RESERVE(&thread->listeners, 1, LISTENERS_MAX);
    if (rc)
        err_set(&err, rc, "%s", err_text(rc));
    else
        rc = listener_tcp(thread->base, host, 0, thread->config.tls, serve_accepted, thread,
                          &listener, &err);
    if (rc) {
        log_error(STATE, "commits that this host holds cannot be fetched from it: %s", err.text);
        return;
    }
    thread->listeners.items[thread->listeners.count++] = listener;
    snprintf(ret_address, ADDRESS_TEXT_MAX, "%s", listener_address(listener));
    log_info(STATE, "serves commits at %s", ret_address);
}

static void listen_where_wanted(struct state_thread *thread)
{
    char host[ADDRESS_TEXT_MAX];
    char address[ADDRESS_TEXT_MAX];

    pthread_mutex_lock(&thread->mutex);
    memcpy(host, thread->wanted, sizeof(host));
    pthread_mutex_unlock(&thread->mutex);
    if (!host[0])
        return;
    listen_at(thread, host, address);
    pthread_mutex_lock(&thread->mutex);
    memcpy(thread->address, address, sizeof(address));
    if (!strcmp(host, thread->wanted))
        thread->wanted[0] = '\0';
    pthread_cond_broadcast(&thread->listened);
    pthread_mutex_unlock(&thread->mutex);
}

static struct fetch *running_of(struct state_thread *thread, uint64_t who)
{
    LIST_EACH (it, &thread->running) {
        struct fetch *fetch = CONTAINER_OF(it, struct fetch, link);

        if (fetch->who == who)
            return fetch;
    }
    return NULL;
}

/* The next that was asked is running now; the one that it ends is still in the list. */
static struct fetch *take_asked(struct state_thread *thread, struct fetch **ret_before)
{
    struct fetch *fetch;

    pthread_mutex_lock(&thread->mutex);
    fetch = first_of(&thread->asked);
    if (fetch) {
        *ret_before = running_of(thread, fetch->who);
        list_remove(&fetch->link);
        list_append(&thread->running, &fetch->link);
    }
    pthread_mutex_unlock(&thread->mutex);
    return fetch;
}

static void cut_forgotten(struct state_thread *thread)
{
    /* only this thread takes anything out of the list */
    LIST_EACH_SAFE (it, after, &thread->running) {
        struct fetch *fetch = CONTAINER_OF(it, struct fetch, link);

        if (atomic_load(&fetch->forgotten))
            fetch_end(fetch, HVD_E_REVOKED, "nobody waits for it");
    }
}

static void on_woken(evutil_socket_t fd, short what, void *arg)
{
    struct state_thread *thread = arg;
    struct fetch *fetch;
    struct fetch *before = NULL;
    bool stopping;

    (void)what;
    hush(fd);
    pthread_mutex_lock(&thread->mutex);
    stopping = thread->stopping;
    pthread_mutex_unlock(&thread->mutex);
    if (stopping) {
        event_base_loopbreak(thread->base);
        return;
    }
    listen_where_wanted(thread);
    cut_forgotten(thread);
    while ((fetch = take_asked(thread, &before))) {
        if (before)
            fetch_end(before, HVD_E_REVOKED, "another fetch was asked for");
        fetch_begin(fetch);
    }
}

void state_answer(struct fetch *fetch)
{
    struct state_thread *thread = fetch->thread;

    pthread_mutex_lock(&thread->mutex);
    list_remove(&fetch->link);
    list_append(&thread->answered, &fetch->link);
    pthread_mutex_unlock(&thread->mutex);
    ring(thread->to_loop);
}

static void release_base(struct state_thread *thread)
{
    for (size_t i = 0; i < thread->listeners.count; i++)
        listener_free(thread->listeners.items[i]);
    VEC_RELEASE(&thread->listeners);
    serve_end(thread);
    if (thread->woken)
        event_free(thread->woken);
    if (thread->base)
        event_base_free(thread->base);
}

static void *run(void *arg)
{
    struct state_thread *thread = arg;

    /* The agent's loop is to be heard on a busy host; what moves gigabytes is not. */
    errno = 0;
    if (getpriority(PRIO_PROCESS, 0) < 0 && !errno)
        (void)setpriority(PRIO_PROCESS, 0, 0);
    if (event_base_dispatch(thread->base))
        log_error(STATE, "the loop for commits cannot go on: none are fetched or served from now");
    while (!list_empty(&thread->running))
        fetch_end(first_of(&thread->running), HVD_E_LOST, "the agent ends");
    release_base(thread);
    return NULL;
}

/* ---- the agent's loop ------------------------------------------------------------------------ */

static struct fetch *take_answered(struct state_thread *thread)
{
    struct fetch *fetch;

    pthread_mutex_lock(&thread->mutex);
    fetch = first_of(&thread->answered);
    if (fetch)
        list_remove(&fetch->link);
    pthread_mutex_unlock(&thread->mutex);
    return fetch;
}

static void on_told(evutil_socket_t fd, short what, void *arg)
{
    struct state_thread *thread = arg;
    struct fetch *fetch;

    (void)what;
    hush(fd);
    while ((fetch = take_answered(thread))) {
        fetch_tell(fetch);
        fetch_free(fetch);
    }
}

static int make_loops(struct state_thread *thread, struct event_base *base)
{
    thread->to_thread = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread->to_loop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->to_thread < 0 || thread->to_loop < 0)
        return HVD_E_LIMIT;
    thread->base = event_base_new();
    if (!thread->base)
        return HVD_E_NOMEM;
    thread->woken =
        event_new(thread->base, thread->to_thread, EV_READ | EV_PERSIST, on_woken, thread);
    thread->told = event_new(base, thread->to_loop, EV_READ | EV_PERSIST, on_told, thread);
    if (!thread->woken || !thread->told || event_add(thread->woken, NULL) ||
        event_add(thread->told, NULL))
        return HVD_E_NOMEM;
    return 0;
}

static void init_locks(struct state_thread *thread)
{
    pthread_condattr_t attr;
    int rc = pthread_mutex_init(&thread->mutex, NULL);

    ASSERT(rc == 0);
    rc = pthread_condattr_init(&attr);
    ASSERT(rc == 0);
    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    ASSERT(rc == 0);
    rc = pthread_cond_init(&thread->listened, &attr);
    ASSERT(rc == 0);
    pthread_condattr_destroy(&attr);
}

static void free_all(struct list *fetches)
{
    while (!list_empty(fetches)) {
        struct fetch *fetch = first_of(fetches);

        list_remove(&fetch->link);
        fetch_free(fetch);
    }
}

/* The thread is not there, or not any more. */
static void destroy(struct state_thread *thread)
{
    free_all(&thread->asked);
    free_all(&thread->answered);
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

int state_thread_start(struct event_base *base, const struct state_config *config,
                       const struct state_ops *ops, void *arg, struct state_thread **ret_thread,
                       struct hvd_err *err)
{
    struct state_thread *thread = mem_zalloc(sizeof(*thread));
    int rc;

    if (!thread)
        return err_set(err, HVD_E_NOMEM, "no memory for the thread of commits");
    thread->config = *config;
    thread->ops = ops;
    thread->arg = arg;
    list_init(&thread->asked);
    list_init(&thread->running);
    list_init(&thread->answered);
    list_init(&thread->servings);
    init_locks(thread);
    rc = make_loops(thread, base);
    if (!rc)
        rc = thread_start(&thread->thread, 0, run, thread);
    if (rc) {
        release_base(thread);
        destroy(thread);
        return err_set(err, rc,
                       rc == HVD_E_LIMIT ? "no further thread or descriptor can be made; "
                                           "see ulimit -u and ulimit -n"
                                         : "no memory for the loop of commits");
    }
    *ret_thread = thread;
    return 0;
}

void state_thread_stop(struct state_thread *thread)
{
    if (!thread)
        return;
    pthread_mutex_lock(&thread->mutex);
    thread->stopping = true;
    pthread_mutex_unlock(&thread->mutex);
    ring(thread->to_thread);
    pthread_join(thread->thread, NULL);
    destroy(thread);
}

void state_thread_listen(struct state_thread *thread, const char *host)
{
    pthread_mutex_lock(&thread->mutex);
    snprintf(thread->wanted, sizeof(thread->wanted), "%s", host);
    pthread_mutex_unlock(&thread->mutex);
    ring(thread->to_thread);
}

const char *state_thread_address(struct state_thread *thread)
{
    int rc = 0;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LISTEN_PATIENCE_S;
    pthread_mutex_lock(&thread->mutex);
    while (thread->wanted[0] && !rc)
        rc = pthread_cond_timedwait(&thread->listened, &thread->mutex, &until);
    memcpy(thread->shown, thread->address, sizeof(thread->shown));
    pthread_mutex_unlock(&thread->mutex);
    return thread->shown[0] ? thread->shown : NULL;
}

int state_thread_fetch(struct state_thread *thread, uint64_t who, uint32_t slot,
                       const struct msg *asked)
{
    struct fetch *fetch = fetch_create(thread, who, slot, asked);

    if (!fetch)
        return HVD_E_NOMEM;
    pthread_mutex_lock(&thread->mutex);
    list_append(&thread->asked, &fetch->link);
    pthread_mutex_unlock(&thread->mutex);
    ring(thread->to_thread);
    return 0;
}

void state_thread_forget(struct state_thread *thread, uint64_t who)
{
    struct list *lists[] = { &thread->asked, &thread->running, &thread->answered };

    pthread_mutex_lock(&thread->mutex);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        LIST_EACH (it, lists[i]) {
            struct fetch *fetch = CONTAINER_OF(it, struct fetch, link);

            if (fetch->who == who)
                fetch_forget(fetch);
        }
    }
    pthread_mutex_unlock(&thread->mutex);
    ring(thread->to_thread);
}
