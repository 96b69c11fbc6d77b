#include "driver/hosts/lookups.h"

#include "base/mem.h"
#include "os/thread.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct lookups {
    pthread_mutex_t lock; /* over all that follows */
    pthread_cond_t changed;
    struct list waiting;
    size_t waiting_count;
    struct list done;
    unsigned threads;
    unsigned busy; /* of them: with the C library */
    bool ended;    /* the owner is gone, and whoever is last frees this */
    int fd;
};

static void take_addresses(struct lookup *lookup, const struct addrinfo *info)
{
    for (; info && lookup->count < LIMIT_ADDRESSES; info = info->ai_next)
        if (route_take(&lookup->addresses[lookup->count], info->ai_addr, info->ai_addrlen))
            lookup->count++;
}

static void look_up(struct lookup *lookup)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM };
    struct addrinfo *info = NULL;

    lookup->code = getaddrinfo(lookup->host, NULL, &hints, &info);
    lookup->number = errno;
    if (lookup->code)
        return;
    take_addresses(lookup, info);
    freeaddrinfo(info);
}

static void destroy(struct lookups *lookups)
{
    pthread_cond_destroy(&lookups->changed);
    pthread_mutex_destroy(&lookups->lock);
    mem_free(lookups);
}

static void work_on(struct lookups *lookups, struct lookup *lookup)
{
    uint64_t one = 1;

    list_remove(&lookup->link);
    lookups->waiting_count--;
    lookups->busy++;
    pthread_mutex_unlock(&lookups->lock);
    look_up(lookup);
    pthread_mutex_lock(&lookups->lock);
    lookups->busy--;
    if (lookups->ended) {
        mem_free(lookup);
        return;
    }
    list_append(&lookups->done, &lookup->link);
    while (write(lookups->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

static void *run(void *arg)
{
    struct lookups *lookups = arg;
    bool last;

    pthread_mutex_lock(&lookups->lock);
    while (!lookups->ended) {
        if (list_empty(&lookups->waiting))
            pthread_cond_wait(&lookups->changed, &lookups->lock);
        else
            work_on(lookups, CONTAINER_OF(lookups->waiting.next, struct lookup, link));
    }
    lookups->threads--;
    last = lookups->threads == 0 && lookups->fd < 0;
    pthread_cond_broadcast(&lookups->changed);
    pthread_mutex_unlock(&lookups->lock);
    if (last)
        destroy(lookups);
    return NULL;
}

static bool add_thread(struct lookups *lookups)
{
    pthread_t thread;

    if (thread_start(&thread, 0, run, lookups))
        return false;
    (void)pthread_detach(thread);
    lookups->threads++;
    return true;
}

/* There is a thread that will come to one more; another one if those that there are have enough. */
static bool has_thread(struct lookups *lookups)
{
    bool enough = lookups->threads == LOOKUPS_THREADS ||
                  lookups->busy + lookups->waiting_count < lookups->threads;

    return enough || add_thread(lookups) || lookups->threads > 0;
}

int lookups_add(struct lookups *lookups, struct lookup *lookup)
{
    int rc = HVD_E_LIMIT;

    pthread_mutex_lock(&lookups->lock);
    if (lookups->waiting_count < LIMIT_HOSTS && has_thread(lookups)) {
        list_append(&lookups->waiting, &lookup->link);
        lookups->waiting_count++;
        pthread_cond_signal(&lookups->changed);
        rc = 0;
    }
    pthread_mutex_unlock(&lookups->lock);
    return rc;
}

int lookups_fd(const struct lookups *lookups)
{
    return lookups->fd;
}

void lookups_take(struct lookups *lookups, struct list *done)
{
    uint64_t count;

    pthread_mutex_lock(&lookups->lock);
    while (read(lookups->fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    LIST_EACH_SAFE (it, after, &lookups->done) {
        list_remove(it);
        list_append(done, it);
    }
    pthread_mutex_unlock(&lookups->lock);
}

int lookups_create(struct lookups **ret_lookups, struct hvd_err *err)
{
    struct lookups *lookups = mem_zalloc(sizeof(*lookups));

    if (!lookups)
        return err_set(err, HVD_E_NOMEM, "no memory to look up names");
    lookups->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lookups->fd < 0) {
        mem_free(lookups);
        return err_set(err, HVD_E_LIMIT, "no descriptor to look up names: %s; raise ulimit -n",
                       strerror(errno));
    }
    pthread_mutex_init(&lookups->lock, NULL);
    pthread_cond_init(&lookups->changed, NULL);
    list_init(&lookups->waiting);
    list_init(&lookups->done);
    *ret_lookups = lookups;
    return 0;
}

static void free_all(struct list *list)
{
    LIST_EACH_SAFE (it, after, list) {
        list_remove(it);
        mem_free(CONTAINER_OF(it, struct lookup, link));
    }
}

/* Threads that have nothing to do end at once, and are waited for; the others are not. */
void lookups_free(struct lookups *lookups)
{
    bool last;

    if (!lookups)
        return;
    pthread_mutex_lock(&lookups->lock);
    lookups->ended = true;
    free_all(&lookups->waiting);
    free_all(&lookups->done);
    pthread_cond_broadcast(&lookups->changed);
    while (lookups->threads > lookups->busy)
        pthread_cond_wait(&lookups->changed, &lookups->lock);
    close(lookups->fd);
    lookups->fd = -1;
    last = lookups->threads == 0;
    pthread_mutex_unlock(&lookups->lock);
    if (last)
        destroy(lookups);
}
