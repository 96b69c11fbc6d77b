/*
 * reach.c: finds out where a host is. driver/io asks for each host on which it may start an agent.
 * Addresses and "localhost" are answered without a lookup; names are looked up on at most
 * LOOKUPS_THREADS threads, because getaddrinfo blocks. The threads own a lookup from reach_ask
 * until it is in the list `done`. The owner of the reach gets one answer for each question, at most
 * one in each iteration of the event loop. reach_free never waits for getaddrinfo: if threads are
 * in it then, the last of them frees struct lookups.
 */
#include "driver/launch/reach.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "discovery/hosts.h"
#include "driver/launch/route.h"
#include "os/thread.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netdb.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOKUPS_THREADS 4

/* One question: the name of a host, and what was found for it. */
struct lookup {
    struct list link;
    char host[LIMIT_HOST_NAME_BYTES + 1];
    int code;         /* the result of getaddrinfo: 0 or EAI_... */
    int error_number; /* errno when code is EAI_SYSTEM */
    struct route_address addresses[LIMIT_ADDRESSES];
    size_t count;
};

/* The data that the owner's thread and the threads of the lookups share. */
struct lookups {
    pthread_mutex_t lock;   /* protects all fields below */
    pthread_cond_t changed; /* `waiting` has a new lookup, or `threads` or `ended` has changed */
    struct list waiting;    /* lookups that no thread has taken yet */
    size_t waiting_count;
    struct list done; /* lookups with a result, for reach_on_lookups */
    unsigned threads; /* threads that have not ended */
    unsigned busy;    /* threads that are inside getaddrinfo */
    bool ended;       /* the owner has called reach_free: all threads end */
    /* an eventfd that wakes the event loop when `done` has lookups; -1: reach_free has closed it */
    int fd;
};

/* Frees what the threads share; called by the last user: reach_free, or the last thread. */
static void lookups_destroy(struct lookups *lookups)
{
    pthread_cond_destroy(&lookups->changed);
    pthread_mutex_destroy(&lookups->lock);
    mem_free(lookups);
}

/* The function of the threads: takes lookups from `waiting`, looks up their host names, and puts
 * them into `done`, until reach_free is called. */
static void *lookups_thread(void *arg)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM };
    struct lookups *lookups = arg;
    const uint64_t one = 1;
    bool last;

    pthread_mutex_lock(&lookups->lock);
    while (!lookups->ended) {
        struct addrinfo *info = NULL;
        struct lookup *lookup;

        if (list_empty(&lookups->waiting)) {
            pthread_cond_wait(&lookups->changed, &lookups->lock);
            continue;
        }
        lookup = CONTAINER_OF(lookups->waiting.next, struct lookup, link);
        list_remove(&lookup->link);
        lookups->waiting_count--;
        lookups->busy++;
        /* getaddrinfo may block for long, so the lock is released meanwhile. */
        pthread_mutex_unlock(&lookups->lock);
        lookup->code = getaddrinfo(lookup->host, NULL, &hints, &info);
        lookup->error_number = errno;
        for (struct addrinfo *it = info; it && lookup->count < LIMIT_ADDRESSES; it = it->ai_next)
            if (route_take(&lookup->addresses[lookup->count], it->ai_addr, it->ai_addrlen))
                lookup->count++;
        if (info)
            freeaddrinfo(info);
        pthread_mutex_lock(&lookups->lock);
        lookups->busy--;
        if (lookups->ended) {
            mem_free(lookup);
            break;
        }
        list_append(&lookups->done, &lookup->link);
        while (write(lookups->fd, &one, sizeof(one)) < 0 && errno == EINTR)
            ;
    }
    lookups->threads--;
    /* If reach_free has closed the descriptor, it did not wait for this thread: the last such
     * thread frees struct lookups. */
    last = lookups->threads == 0 && lookups->fd < 0;
    pthread_cond_broadcast(&lookups->changed);
    pthread_mutex_unlock(&lookups->lock);
    if (last)
        lookups_destroy(lookups);
    return NULL;
}

/* Frees all lookups of a list. */
static void lookups_free_all(struct list *list)
{
    LIST_EACH_SAFE (it, after, list) {
        list_remove(it);
        mem_free(CONTAINER_OF(it, struct lookup, link));
    }
}

struct reach {
    char *interfaces; /* NULL: any interface */
    reach_fn *answered;
    void *arg;
    struct lookups *lookups;
    struct event looked_up;  /* of the eventfd lookups->fd: calls reach_on_lookups */
    struct list ready;       /* lookups with a result that the owner has not been told yet */
    struct event tell_event; /* calls reach_tell in the next iteration of the event loop */
};

/* Makes the event loop call reach_tell in its next iteration. */
static void reach_wake(struct reach *reach)
{
    event_active(&reach->tell_event, EV_TIMEOUT, 1);
}

/* Called by the event loop: gives the owner the answer to the first lookup in `ready`. If more
 * lookups are there, the next iteration of the event loop gives the next answer. */
static void reach_tell(evutil_socket_t fd, short what, void *arg)
{
    struct reach *reach = arg;
    struct reach_answer answer;
    struct lookup *lookup;
    struct hvd_err err;
    int rc;

    (void)fd;
    (void)what;
    if (list_empty(&reach->ready))
        return;
    lookup = CONTAINER_OF(reach->ready.next, struct lookup, link);
    list_remove(&lookup->link);
    if (!list_empty(&reach->ready))
        reach_wake(reach);
    if (lookup->code)
        rc = err_set(&err, HVD_E_NOTFOUND,
                     "%s: the host's name cannot be looked up: %s; check the name, and the DNS of "
                     "this machine",
                     lookup->host,
                     lookup->code == EAI_SYSTEM ? strerror(lookup->error_number)
                                                : gai_strerror(lookup->code));
    else
        rc = route_find(lookup->host, lookup->addresses, lookup->count, reach->interfaces, &answer,
                        &err);
    /* The owner may free the reach in its callback, so nothing below uses the reach. */
    reach->answered(reach->arg, lookup->host, rc ? NULL : &answer, rc ? err.text : NULL);
    mem_free(lookup);
}

/* Called by the event loop when threads have put lookups into `done`: moves all of them to `ready`,
 * from which reach_tell answers. The lock is held for the read, so no lookup whose write to the
 * eventfd was read here stays in `done`. */
static void reach_on_lookups(evutil_socket_t fd, short what, void *arg)
{
    struct reach *reach = arg;
    struct lookups *lookups = reach->lookups;
    uint64_t count;

    (void)fd;
    (void)what;
    pthread_mutex_lock(&lookups->lock);
    while (read(lookups->fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    LIST_EACH_SAFE (it, after, &lookups->done) {
        list_remove(it);
        list_append(&reach->ready, it);
    }
    pthread_mutex_unlock(&lookups->lock);
    reach_wake(reach);
}

/* Asks where the host is; the answer comes later, from the event loop. Only a name needs a thread:
 * an address and "localhost" are ready at once, and so is a name that no host can have
 * (EAI_NONAME). */
int reach_ask(struct reach *reach, const char *host)
{
    struct lookup *lookup = mem_zalloc(sizeof(*lookup));
    struct lookups *lookups = reach->lookups;
    size_t length = strlen(host);
    pthread_t thread;
    bool added;

    if (!lookup)
        return HVD_E_NOMEM;
    list_init(&lookup->link);
    if (host_name_check(host, length, NULL)) {
        lookup->code = EAI_NONAME;
        length = length < sizeof(lookup->host) ? length : sizeof(lookup->host) - 1;
    }
    memcpy(lookup->host, host, length);
    if (!strcmp(lookup->host, "localhost")) {
        lookup->count = (size_t)route_parse(&lookup->addresses[0], "127.0.0.1") +
                        (size_t)route_parse(&lookup->addresses[1], "::1");
    } else if (!lookup->code && route_parse(&lookup->addresses[0], lookup->host)) {
        lookup->count = 1;
    } else if (!lookup->code) {
        pthread_mutex_lock(&lookups->lock);
        /* When all threads are busy, one more is started. If it cannot be started, one of the busy
         * threads does this lookup later; if there is no thread at all, the lookup fails. */
        if (lookups->threads < LOOKUPS_THREADS &&
            lookups->busy + lookups->waiting_count >= lookups->threads &&
            !thread_start(&thread, 0, lookups_thread, lookups)) {
            (void)pthread_detach(thread);
            lookups->threads++;
        }
        added = lookups->waiting_count < LIMIT_HOSTS && lookups->threads > 0;
        if (added) {
            list_append(&lookups->waiting, &lookup->link);
            lookups->waiting_count++;
            pthread_cond_signal(&lookups->changed);
        }
        pthread_mutex_unlock(&lookups->lock);
        if (added)
            return 0; /* a thread does the lookup, and reach_on_lookups gets it back */
        lookup->code = EAI_MEMORY;
    }
    list_append(&reach->ready, &lookup->link);
    reach_wake(reach);
    return 0;
}

/* Makes a reach without threads; reach_ask starts them when they are needed. `looked_up` is the
 * event of the eventfd with which the threads wake the event loop. */
int reach_create(struct event_base *base, const char *interfaces, reach_fn *answered, void *arg,
                 struct reach **ret_reach, struct hvd_err *err)
{
    struct reach *reach = mem_zalloc(sizeof(*reach));
    struct lookups *lookups;
    int rc = 0;

    if (!reach)
        return err_set(err, HVD_E_NOMEM,
                       "no memory to look for the addresses of hosts; free memory on this host");
    reach->answered = answered;
    reach->arg = arg;
    list_init(&reach->ready);
    event_assign(&reach->tell_event, base, -1, 0, reach_tell, reach);
    if (interfaces) {
        rc = route_check_interfaces(interfaces, err);
        reach->interfaces = rc ? NULL : mem_strdup(interfaces);
        if (!rc && !reach->interfaces)
            rc = err_set(
                err, HVD_E_NOMEM,
                "%s: no memory to look for the addresses of hosts; free memory on this host",
                interfaces);
    }
    lookups = rc ? NULL : mem_zalloc(sizeof(*lookups));
    if (!rc && !lookups)
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory to look up the names of hosts; free memory on this host");
    if (lookups) {
        lookups->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        pthread_mutex_init(&lookups->lock, NULL);
        pthread_cond_init(&lookups->changed, NULL);
        list_init(&lookups->waiting);
        list_init(&lookups->done);
        reach->lookups = lookups;
        if (lookups->fd < 0)
            rc = err_set(
                err, HVD_E_LIMIT,
                "no file descriptor is left to look up the names of hosts: %s; raise ulimit -n",
                strerror(errno));
    }
    if (lookups && !rc &&
        (event_assign(&reach->looked_up, base, lookups->fd, EV_READ | EV_PERSIST, reach_on_lookups,
                      reach) ||
         event_add(&reach->looked_up, NULL)))
        rc = err_set(err, HVD_E_NOMEM,
                     "no memory to look for the addresses of hosts; free memory on this host");
    if (rc)
        reach_free(reach);
    else
        *ret_reach = reach;
    return rc;
}

/* Frees the reach. Threads without a lookup end at once, and this function waits for them. It does
 * not wait for threads in getaddrinfo (`busy`): the last of them frees struct lookups when its
 * lookup is over. */
void reach_free(struct reach *reach)
{
    struct lookups *lookups = reach ? reach->lookups : NULL;
    bool last;

    if (!reach)
        return;
    if (event_initialized(&reach->looked_up))
        event_del(&reach->looked_up);
    event_del(&reach->tell_event);
    if (lookups) {
        pthread_mutex_lock(&lookups->lock);
        lookups->ended = true;
        lookups_free_all(&lookups->waiting);
        lookups_free_all(&lookups->done);
        pthread_cond_broadcast(&lookups->changed);
        /* A thread that ends signals `changed`. */
        while (lookups->threads > lookups->busy)
            pthread_cond_wait(&lookups->changed, &lookups->lock);
        if (lookups->fd >= 0)
            close(lookups->fd);
        lookups->fd = -1;
        last = lookups->threads == 0;
        pthread_mutex_unlock(&lookups->lock);
        if (last)
            lookups_destroy(lookups);
    }
    lookups_free_all(&reach->ready);
    mem_free(reach->interfaces);
    mem_free(reach);
}
