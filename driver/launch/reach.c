/*
 * reach.c: finds out where a host is. driver/io asks for each host on which it may start an agent.
 * Addresses and "localhost" are answered without a lookup; names are looked up on at most
 * LOOKUPS_THREADS threads, because getaddrinfo blocks. A lookup belongs to the threads from
 * reach_ask until it is in `done`. The owner gets one answer for each question, at most one in each
 * iteration of the event loop. reach_free never waits for a lookup: if threads are busy then, the
 * last of them frees struct lookups.
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

struct lookup {
    struct list link;
    char host[LIMIT_HOST_NAME_BYTES + 1];
    int code;   /* the result of getaddrinfo: 0 or EAI_... */
    int number; /* errno when code is EAI_SYSTEM */
    struct route_address addresses[LIMIT_ADDRESSES];
    size_t count;
};

struct lookups {
    pthread_mutex_t lock; /* protects all fields below */
    pthread_cond_t changed;
    struct list waiting;
    size_t waiting_count;
    struct list done;
    unsigned threads;
    unsigned busy; /* threads that are inside getaddrinfo */
    bool ended;    /* the owner has called reach_free; the last thread frees this struct */
    /* an eventfd that is readable when `done` has lookups; -1: reach_free has closed it */
    int fd;
};

static void lookups_destroy(struct lookups *lookups)
{
    pthread_cond_destroy(&lookups->changed);
    pthread_mutex_destroy(&lookups->lock);
    mem_free(lookups);
}

/* The function of the threads: takes lookups from `waiting`, looks up their host names, and puts
 * them into `done`. */
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
        lookup->number = errno;
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
    /* reach_free has closed the descriptor, so no answer is wanted any more: this thread frees the
     * rest. */
    last = lookups->threads == 0 && lookups->fd < 0;
    pthread_cond_broadcast(&lookups->changed);
    pthread_mutex_unlock(&lookups->lock);
    if (last)
        lookups_destroy(lookups);
    return NULL;
}

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
    struct event looked_up;
    struct list ready; /* lookups that are done, and whose answer the owner has not got */
    struct event tell_event;
};

static void reach_wake(struct reach *reach)
{
    event_active(&reach->tell_event, EV_TIMEOUT, 1);
}

/* Gives the owner the answer to one lookup. If more lookups are done, the next iteration of the
 * event loop gives the next answer. */
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
                     lookup->code == EAI_SYSTEM ? strerror(lookup->number)
                                                : gai_strerror(lookup->code));
    else
        rc = route_find(lookup->host, lookup->addresses, lookup->count, reach->interfaces, &answer,
                        &err);
    /* The owner may free the reach in its callback, so the reach is not used after it. */
    reach->answered(reach->arg, lookup->host, rc ? NULL : &answer, rc ? err.text : NULL);
    mem_free(lookup);
}

/* Called when threads have finished lookups: takes them over for reach_tell, which gives their
 * answers to the owner. The lock is
 * held for the read, so no lookup that is announced stays in `done`. */
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
        /* One more thread is started when all threads are busy. If it cannot be started, a busy
         * thread does this lookup later. */
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

/* Makes a reach without threads, which reach_ask starts when they are needed. `looked_up` is the
 * event of the descriptor with which the threads wake the event loop. */
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
            rc = err_set(err, HVD_E_LIMIT,
                         "no descriptor is left to look up the names of hosts: %s; raise ulimit -n",
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

/* Frees the reach. Idle threads end at once, and this function waits for them. It does not wait for
 * busy threads: the last of them frees struct lookups when its lookup is over. */
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
