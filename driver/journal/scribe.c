#include "driver/journal/scribe.h"

#include "base/mem.h"
#include "base/panic.h"
#include "driver/journal/scribe_entry.h"
#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define RETRY_US (200 * TIME_MS)

struct scribe {
    struct job_file *file; /* the thread's */
    int64_t check_us;
    int fd;
    pthread_t thread;

    pthread_mutex_t lock; /* held for a moment only: never while the disk is at work */
    pthread_cond_t wake;  /* something was put, or the end has come */
    /* what follows is under the lock */
    struct list waiting;
    size_t waiting_bytes; /* with what is being written */
    uint64_t put;         /* the number of the last */
    uint64_t durable;
    bool stopping;
    int rc; /* the failure after which nothing is written */
    struct hvd_err err;

    /* the thread's */
    struct list batch; /* it is in the order of the numbers, and before all that waits */
    size_t batch_count;
    size_t batch_bytes;
    int64_t failing_since_us; /* 0: it is not */
    struct job_write writes[LIMIT_JOURNAL_BATCH];
};

/* Under the lock, after what there is to see was changed: whoever looks empties the descriptor
 * first, so that he sees this or is woken again. */
static void ring(struct scribe *scribe)
{
    const uint64_t one = 1;
    ssize_t wrote;

    do
        wrote = write(scribe->fd, &one, sizeof(one));
    while (wrote < 0 && errno == EINTR); /* EAGAIN: it is readable, and has been for long */
}

static void drop_all(struct list *list)
{
    LIST_EACH_SAFE (it, after, list) {
        list_remove(it);
        mem_free(CONTAINER_OF(it, struct scribe_entry, in_queue));
    }
}

/* Under the lock: until something was put, or that moment. */
/* Under the lock: as much of what waits as goes into one transaction. */
static void take_batch(struct scribe *scribe)
{
    while (!list_empty(&scribe->waiting) && scribe->batch_count < LIMIT_JOURNAL_BATCH &&
           scribe->batch_bytes < LIMIT_JOURNAL_BATCH_BYTES) {
        struct scribe_entry *entry =
            CONTAINER_OF(scribe->waiting.next, struct scribe_entry, in_queue);

        list_remove(&entry->in_queue);
        list_append(&scribe->batch, &entry->in_queue);
        scribe->writes[scribe->batch_count++] = entry->write;
        scribe->batch_bytes += entry->bytes;
    }
}

/* Without the lock. */
static int work(struct scribe *scribe, struct hvd_err *err)
{
    return scribe->batch_count > 0
               ? job_file_write(scribe->file, scribe->writes, scribe->batch_count, err)
               : job_file_check(scribe->file, err);
}

/* Under the lock. */
static void batch_is_durable(struct scribe *scribe)
{
    scribe->failing_since_us = 0;
    if (scribe->batch_count == 0)
        return;
    scribe->durable += scribe->batch_count;
    scribe->waiting_bytes -= scribe->batch_bytes;
    scribe->batch_count = 0;
    scribe->batch_bytes = 0;
    ring(scribe);
}

/* Under the lock. True when it is worth trying again, after a while. */
static bool is_patient(struct scribe *scribe, int rc)
{
    int64_t now_us = clock_now_us();

    if (rc != HVD_E_BUSY && rc != HVD_E_FULL && rc != HVD_E_NOMEM)
        return false;
    if (!scribe->failing_since_us)
        scribe->failing_since_us = now_us;
    if (now_us - scribe->failing_since_us >= SCRIBE_PATIENCE)
        return false;
    for (int64_t until_us = now_us + RETRY_US; clock_now_us() < until_us;)
        (void)thread_cond_wait(&scribe->wake, &scribe->lock, until_us);
    return true;
}

/* Under the lock, but for the work. */
static void serve(struct scribe *scribe)
{
    int64_t check_at_us = clock_now_us() + scribe->check_us;
    struct hvd_err err;
    int rc;

    for (;;) {
        take_batch(scribe);
        if (scribe->batch_count == 0 && scribe->stopping)
            return;
        if (scribe->batch_count == 0 && clock_now_us() < check_at_us) {
            (void)thread_cond_wait(&scribe->wake, &scribe->lock, check_at_us);
            continue;
        }
        pthread_mutex_unlock(&scribe->lock);
        rc = work(scribe, &err);
        if (!rc)
            drop_all(&scribe->batch);
        pthread_mutex_lock(&scribe->lock);
        if (!rc) {
            batch_is_durable(scribe);
            check_at_us = clock_now_us() + scribe->check_us; /* a write has looked as well */
        } else if (!is_patient(scribe, rc)) {
            scribe->rc = rc;
            scribe->err = err;
            ring(scribe);
            return;
        }
    }
}

static void *run(void *arg)
{
    struct scribe *scribe = arg;

    pthread_mutex_lock(&scribe->lock);
    serve(scribe);
    pthread_mutex_unlock(&scribe->lock);
    return NULL;
}

static void init_lock(struct scribe *scribe)
{
    int rc = pthread_mutex_init(&scribe->lock, NULL);

    ASSERT(rc == 0);
    rc = thread_cond_init(&scribe->wake);
    ASSERT(rc == 0);
}

static void scribe_free(struct scribe *scribe)
{
    drop_all(&scribe->batch);
    drop_all(&scribe->waiting);
    pthread_cond_destroy(&scribe->wake);
    pthread_mutex_destroy(&scribe->lock);
    if (scribe->fd >= 0)
        close(scribe->fd);
    mem_free(scribe);
}

int scribe_start(struct job_file *file, int64_t check_us, struct scribe **ret_scribe,
                 struct hvd_err *err)
{
    struct scribe *scribe = mem_zalloc(sizeof(*scribe));
    bool failed;

    ASSERT(check_us > 0);
    if (!scribe)
        return err_set(err, HVD_E_NOMEM, "the journal's thread: %s", err_text(HVD_E_NOMEM));
    scribe->file = file;
    scribe->check_us = check_us;
    list_init(&scribe->waiting);
    list_init(&scribe->batch);
    init_lock(scribe);
    scribe->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    failed = scribe->fd < 0 || thread_start(&scribe->thread, 0, run, scribe);
    if (failed) {
        err_set(err, HVD_E_LIMIT, "the journal's thread cannot be started; raise the limit on %s",
                scribe->fd < 0 ? "open files (ulimit -n)" : "processes (ulimit -u)");
        scribe_free(scribe);
        return HVD_E_LIMIT;
    }
    *ret_scribe = scribe;
    return 0;
}

uint64_t scribe_put(struct scribe *scribe, const struct job_write *write)
{
    struct scribe_entry *entry = scribe_entry_create(write);
    uint64_t number = 0;

    if (!entry)
        return 0;
    pthread_mutex_lock(&scribe->lock);
    ASSERT(!scribe->stopping);
    if (scribe->rc) {
        number = ++scribe->put;
    } else if (entry->bytes <= LIMIT_JOURNAL_WAITING_BYTES - scribe->waiting_bytes) {
        number = ++scribe->put;
        scribe->waiting_bytes += entry->bytes;
        list_append(&scribe->waiting, &entry->in_queue);
        entry = NULL;
        pthread_cond_signal(&scribe->wake);
    }
    pthread_mutex_unlock(&scribe->lock);
    mem_free(entry);
    return number;
}

int scribe_fd(const struct scribe *scribe)
{
    return scribe->fd;
}

int scribe_look(struct scribe *scribe, uint64_t *ret_durable, struct hvd_err *err)
{
    uint64_t rings;
    ssize_t got;
    int rc;

    do
        got = read(scribe->fd, &rings, sizeof(rings));
    while (got < 0 && errno == EINTR);
    pthread_mutex_lock(&scribe->lock);
    rc = scribe->rc;
    if (!rc)
        *ret_durable = scribe->durable;
    else if (err)
        *err = scribe->err;
    pthread_mutex_unlock(&scribe->lock);
    return rc;
}

int scribe_stop(struct scribe *scribe, struct hvd_err *err)
{
    int rc;

    if (!scribe)
        return 0;
    pthread_mutex_lock(&scribe->lock);
    scribe->stopping = true;
    pthread_cond_signal(&scribe->wake);
    pthread_mutex_unlock(&scribe->lock);
    rc = pthread_join(scribe->thread, NULL);
    ASSERT(rc == 0);
    rc = scribe->rc;
    if (rc && err)
        *err = scribe->err;
    job_file_close(scribe->file);
    scribe_free(scribe);
    return rc;
}
