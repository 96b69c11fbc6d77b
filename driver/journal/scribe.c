/*
 * scribe.c: the thread that writes the job's store. The event loop hands it writes (scribe_put),
 * and asks which writes are durable (scribe_look) when the descriptor is readable. Writes become
 * durable in the order of their numbers, and those of one step of the core together: the end of a
 * worker is never durable without the failure that is charged for it. After a permanent failure no
 * write is made.
 */
#include "driver/journal/scribe.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "driver/journal/compact.h"
#include "os/clock.h"
#include "os/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* the wait before a write that has failed for a temporary reason is tried again */
#define RETRY_US (200 * TIME_MS)

struct scribe {
    struct store *store; /* used by the thread only */
    int64_t check_us;
    int fd;
    pthread_t thread;

    pthread_mutex_t lock; /* not held while the thread uses the disk */
    pthread_cond_t wake;  /* signalled when a write was added, or when the scribe stops */
    /* The fields below are protected by the lock. */
    struct list waiting;
    size_t waiting_bytes; /* bytes of the entries in `waiting` and in `batch` */
    uint64_t put;         /* the number of the last write that scribe_put has taken */
    uint64_t step;        /* the number of the step to which the next write belongs */
    bool in_step;         /* this step has not ended: its writes are not taken yet */
    uint64_t durable;     /* the number up to which all writes are durable */
    bool stopping;
    bool check_now; /* scribe_check was called: the owner of the store is checked at once */
    int rc;         /* the code of the failure that has ended the thread; 0: no failure */
    struct hvd_err err;
    struct store_peers peers;
    /* store->held_until_us after the last write or check: until then no other driver can have the
     * job */
    int64_t held_until_us;
    bool compacts; /* the journal is compacted now and then, with `config` */
    struct core_config config;
    uint64_t grown; /* records of the journal since it was last compacted */

    /* Only the thread of the scribe uses the fields below. */
    struct list batch; /* the writes of one transaction; they are older than all in `waiting` */
    size_t batch_count;
    size_t batch_bytes;
    /* the time of the first of the failed writes in a row; 0: the last write did not fail */
    int64_t failing_since_us;
    struct job_write writes[LIMIT_JOURNAL_BATCH];
};

/* One write that waits, in one block of memory. */
struct scribe_entry {
    struct list in_queue;
    size_t bytes; /* the size of the block */
    uint64_t step;
    struct job_write write;
};

/* Returns the text, or "" for NULL: a write may lack some texts. */
static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* Copies the bytes to *at, and moves *at to the end of the copy. */
static void *put_bytes(char **at, const void *from, size_t bytes)
{
    void *copy = *at;

    if (bytes > 0)
        memcpy(copy, from, bytes);
    *at += bytes;
    return copy;
}

/* Copies the text with its NUL to *at, and moves *at behind it. */
static const char *put_text(char **at, const char *text)
{
    return put_bytes(at, text_of(text), strlen(text_of(text)) + 1);
}

/* Copies the write with all that it points to into one block, because the core frees its own memory
 * when the step is over. NULL: no memory is left. The caller frees the entry with mem_free. */
static struct scribe_entry *scribe_entry_create(const struct job_write *write)
{
    const struct journal_record *record = write->record;
    size_t bytes = sizeof(struct scribe_entry) + strlen(text_of(write->text)) + 1;
    struct scribe_entry *entry;
    struct journal_record *copy;
    const char **addresses;
    char *at;

    if (write->change)
        bytes += sizeof(*write->change);
    if (record) {
        bytes += sizeof(*record) + (record->members.count + record->holders.count) * 8 +
                 record->addresses.count * sizeof(char *) + strlen(text_of(record->host)) + 1 +
                 strlen(text_of(record->text)) + 1;
        for (size_t i = 0; i < record->addresses.count; i++)
            bytes += strlen(record->addresses.items[i]) + 1;
    }
    entry = mem_alloc(bytes);
    if (!entry)
        return NULL;
    at = (char *)(entry + 1);
    list_init(&entry->in_queue);
    entry->bytes = bytes;
    entry->write = *write;
    if (write->change)
        entry->write.change = put_bytes(&at, write->change, sizeof(*write->change));
    /* Types with the greatest alignment come first: structs, then ids (8 bytes each) and pointers,
     * then texts. */
    if (record) {
        copy = put_bytes(&at, record, sizeof(*record));
        copy->members.items = put_bytes(&at, record->members.items, record->members.count * 8);
        copy->holders.items = put_bytes(&at, record->holders.items, record->holders.count * 8);
        addresses = (const char **)(void *)at;
        at += record->addresses.count * sizeof(char *);
        for (size_t i = 0; i < record->addresses.count; i++)
            addresses[i] = put_text(&at, record->addresses.items[i]);
        copy->addresses.items = addresses;
        copy->host = put_text(&at, record->host);
        copy->text = put_text(&at, record->text);
        entry->write.record = copy;
    }
    entry->write.text = put_text(&at, write->text);
    return entry;
}

/* Makes the descriptor readable, after a change of `durable` or `rc`, so that the event loop calls
 * scribe_look. The caller holds the lock. scribe_look empties the descriptor before it takes the
 * lock, so it sees the change or is woken again. */
static void wake_loop(struct scribe *scribe)
{
    const uint64_t one = 1;
    ssize_t wrote;

    do
        wrote = write(scribe->fd, &one, sizeof(one));
    while (wrote < 0 && errno == EINTR); /* EAGAIN: the descriptor is readable already */
}

static void scribe_drop_all(struct list *list)
{
    LIST_EACH_SAFE (it, after, list) {
        list_remove(it);
        mem_free(CONTAINER_OF(it, struct scribe_entry, in_queue));
    }
}

/* Decides about a failed write; the caller holds the lock. If the failure may be temporary, waits
 * for RETRY_US and returns true: the write is tried again. The first failure in a row is logged. */
static bool wait_for_retry(struct scribe *scribe, int rc, const struct hvd_err *err)
{
    char patience[TIME_TEXT_MAX];
    int64_t now_us = clock_now_us();

    if (rc != HVD_E_BUSY && rc != HVD_E_FULL && rc != HVD_E_NOMEM)
        return false;
    if (!scribe->failing_since_us) {
        scribe->failing_since_us = now_us;
        pthread_mutex_unlock(&scribe->lock); /* a slow reader of the log must not stop the loop */
        log_warning(STORE, "%s; tried again for %s, and changes of the job wait meanwhile",
                    err->text, time_brief(SCRIBE_PATIENCE, patience));
        pthread_mutex_lock(&scribe->lock);
    }
    if (now_us - scribe->failing_since_us >= SCRIBE_PATIENCE)
        return false;
    /* A new write wakes the thread earlier; it then waits for the rest of the time. */
    for (int64_t until_us = now_us + RETRY_US; clock_now_us() < until_us;)
        (void)thread_cond_wait(&scribe->wake, &scribe->lock, until_us);
    return true;
}

/* Moves whole steps from `waiting` into the batch, as long as they fit into one transaction. A step
 * of more than LIMIT_JOURNAL_BATCH writes goes into several. The caller holds the lock. */
static void scribe_take_steps(struct scribe *scribe)
{
    while (!list_empty(&scribe->waiting) && scribe->batch_bytes < LIMIT_JOURNAL_BATCH_BYTES) {
        uint64_t step = CONTAINER_OF(scribe->waiting.next, struct scribe_entry, in_queue)->step;
        size_t count = 0;

        /* The core is still making this step: more writes of it follow. */
        if (scribe->in_step && step == scribe->step)
            return;
        LIST_EACH (it, &scribe->waiting) {
            if (CONTAINER_OF(it, struct scribe_entry, in_queue)->step != step)
                break;
            count++;
        }
        if (scribe->batch_count > 0 && count > LIMIT_JOURNAL_BATCH - scribe->batch_count)
            return;
        for (; count > 0 && scribe->batch_count < LIMIT_JOURNAL_BATCH; count--) {
            struct scribe_entry *entry =
                CONTAINER_OF(scribe->waiting.next, struct scribe_entry, in_queue);

            list_remove(&entry->in_queue);
            list_append(&scribe->batch, &entry->in_queue);
            scribe->writes[scribe->batch_count++] = entry->write;
            scribe->batch_bytes += entry->bytes;
        }
    }
}

/* Compacts the journal after a write, if it has grown enough; the caller holds the lock. An attempt
 * that fails or comes at a wrong moment is made again after some more records. Returns HVD_E_LOST
 * if the store has another owner, otherwise 0. */
static int scribe_shorten(struct scribe *scribe, struct hvd_err *err)
{
    uint64_t records = 0;
    int rc;

    for (size_t i = 0; i < scribe->batch_count; i++)
        scribe->grown += scribe->writes[i].record != NULL;
    if (!scribe->compacts || scribe->grown < LIMIT_JOURNAL_COMPACT)
        return 0;
    pthread_mutex_unlock(&scribe->lock);
    rc = journal_compact(scribe->store, &scribe->config, &records, err);
    pthread_mutex_lock(&scribe->lock);
    if (!rc)
        log_debug(STORE, "the journal is compacted: %" PRIu64 " records are left", records);
    else if (rc != HVD_DONE)
        log_info(STORE, "the journal is not compacted now: %s", err->text);
    scribe->grown = rc ? LIMIT_JOURNAL_COMPACT - LIMIT_JOURNAL_COMPACT / 10 : 0;
    return rc == HVD_E_LOST ? rc : 0;
}

/* The function of the thread: writes batches, and checks the owner of the store every check_us. A
 * write that may succeed later is tried again with the same batch. The thread ends after a
 * permanent failure, or when all is written and the scribe stops. */
static void *scribe_thread(void *arg)
{
    struct scribe *scribe = arg;
    int64_t check_at_us = clock_now_us() + scribe->check_us;
    struct hvd_err err;
    int rc;

    pthread_mutex_lock(&scribe->lock);
    for (;;) {
        if (scribe->batch_count == 0) /* otherwise the same batch is tried again */
            scribe_take_steps(scribe);
        if (scribe->batch_count == 0 && scribe->stopping)
            break;
        if (scribe->batch_count == 0 && !scribe->check_now && clock_now_us() < check_at_us) {
            (void)thread_cond_wait(&scribe->wake, &scribe->lock, check_at_us);
            continue;
        }
        scribe->check_now = false;
        pthread_mutex_unlock(&scribe->lock);
        rc = scribe->batch_count > 0
                 ? store_write(scribe->store, scribe->writes, scribe->batch_count, &err)
                 : store_check(scribe->store, &err);
        if (!rc)
            scribe_drop_all(&scribe->batch);
        pthread_mutex_lock(&scribe->lock);
        if (!rc) {
            store_peers(scribe->store, &scribe->peers);
            /* The event loop is woken in two cases: writes have become durable; or the time until
             * which this driver surely held the job had passed, and the store now says that it
             * still holds it. */
            if (scribe->batch_count > 0 || scribe->held_until_us < clock_now_us())
                wake_loop(scribe);
            scribe->held_until_us = scribe->store->held_until_us;
            scribe->failing_since_us = 0;
            scribe->durable += scribe->batch_count;
            scribe->waiting_bytes -= scribe->batch_bytes;
            rc = scribe_shorten(scribe, &err);
            scribe->batch_count = scribe->batch_bytes = 0;
            /* A write has also checked the owner. */
            check_at_us = clock_now_us() + scribe->check_us;
        }
        if (rc && !wait_for_retry(scribe, rc, &err)) {
            scribe->rc = rc;
            scribe->err = err;
            wake_loop(scribe);
            break;
        }
    }
    pthread_mutex_unlock(&scribe->lock);
    return NULL;
}

/* The thread compacts the journal from now on: each time when it has LIMIT_JOURNAL_COMPACT records
 * more than after the last time. Now it has `records`. Called once, when the core has started. */
void scribe_compact(struct scribe *scribe, const struct core_config *config, uint64_t records)
{
    pthread_mutex_lock(&scribe->lock);
    scribe->config = *config;
    scribe->grown = records;
    scribe->compacts = true;
    pthread_mutex_unlock(&scribe->lock);
}

static void scribe_free(struct scribe *scribe)
{
    scribe_drop_all(&scribe->batch);
    scribe_drop_all(&scribe->waiting);
    pthread_cond_destroy(&scribe->wake);
    pthread_mutex_destroy(&scribe->lock);
    if (scribe->fd >= 0)
        close(scribe->fd);
    mem_free(scribe);
}

/* Starts the thread, to which `store` belongs from now on. Returns 0, HVD_E_NOMEM or HVD_E_LIMIT.
 */
int scribe_start(struct store *store, int64_t check_us, struct scribe **ret_scribe,
                 struct hvd_err *err)
{
    struct scribe *scribe = mem_zalloc(sizeof(*scribe));
    bool failed;
    int rc;

    ASSERT(check_us > 0);
    if (!scribe)
        return err_set(
            err, HVD_E_NOMEM,
            "no memory for the thread that writes the journal; free memory on this host");
    scribe->store = store;
    scribe->held_until_us = store->held_until_us;
    scribe->check_us = check_us;
    list_init(&scribe->waiting);
    list_init(&scribe->batch);
    rc = pthread_mutex_init(&scribe->lock, NULL);
    ASSERT(rc == 0);
    rc = thread_cond_init(&scribe->wake);
    ASSERT(rc == 0);
    scribe->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    failed = scribe->fd < 0 || thread_start(&scribe->thread, 0, scribe_thread, scribe);
    if (failed) {
        err_set(err, HVD_E_LIMIT, "the journal's thread cannot be started; raise the limit on %s",
                scribe->fd < 0 ? "open files (ulimit -n)" : "processes (ulimit -u)");
        scribe_free(scribe);
        return HVD_E_LIMIT;
    }
    *ret_scribe = scribe;
    return 0;
}

/* Hands a write to the thread, and returns its number: the writes are numbered 1, 2, 3 ... 0: the
 * write was not taken, because no memory is left or too much waits. The copy is made before the
 * lock is taken, so the thread never waits for the copy of a large record. */
uint64_t scribe_put(struct scribe *scribe, const struct job_write *write)
{
    struct scribe_entry *entry = scribe_entry_create(write);
    uint64_t number = 0;

    if (!entry)
        return 0;
    pthread_mutex_lock(&scribe->lock);
    ASSERT(!scribe->stopping);
    /* After a failure the event loop ends soon. The write gets a number and is dropped. */
    if (scribe->rc) {
        number = ++scribe->put;
    } else if (entry->bytes <= LIMIT_JOURNAL_WAITING_BYTES - scribe->waiting_bytes) {
        number = ++scribe->put;
        scribe->waiting_bytes += entry->bytes;
        entry->step = scribe->step;
        if (!scribe->in_step) /* a write outside of a step is a step of its own */
            scribe->step++;
        list_append(&scribe->waiting, &entry->in_queue);
        entry = NULL;
        pthread_cond_signal(&scribe->wake);
    }
    pthread_mutex_unlock(&scribe->lock);
    mem_free(entry);
    return number;
}

/* The next writes belong to one step of the core: the thread takes none of them before
 * scribe_step_end. */
void scribe_step_begin(struct scribe *scribe)
{
    pthread_mutex_lock(&scribe->lock);
    ASSERT(!scribe->in_step);
    scribe->in_step = true;
    pthread_mutex_unlock(&scribe->lock);
}

/* The step of the core is complete: the thread may write it, as one transaction. */
void scribe_step_end(struct scribe *scribe)
{
    pthread_mutex_lock(&scribe->lock);
    ASSERT(scribe->in_step);
    scribe->in_step = false;
    scribe->step++;
    pthread_cond_signal(&scribe->wake);
    pthread_mutex_unlock(&scribe->lock);
}

/* Makes the thread check at once whether this driver still owns the store; the event loop learns
 * the result by scribe_look. */
void scribe_check(struct scribe *scribe)
{
    pthread_mutex_lock(&scribe->lock);
    scribe->check_now = true;
    pthread_cond_signal(&scribe->wake);
    pthread_mutex_unlock(&scribe->lock);
}

int scribe_fd(const struct scribe *scribe)
{
    return scribe->fd;
}

/* Returns the time until which no other driver can have claimed the job, as the thread last learned
 * it from the store. */
int64_t scribe_held_until(struct scribe *scribe)
{
    int64_t until_us;

    pthread_mutex_lock(&scribe->lock);
    until_us = scribe->held_until_us;
    pthread_mutex_unlock(&scribe->lock);
    return until_us;
}

/* Copies the addresses of the job's standbys, as the thread last learned them from the store. */
void scribe_peers(struct scribe *scribe, struct store_peers *ret_peers)
{
    pthread_mutex_lock(&scribe->lock);
    *ret_peers = scribe->peers;
    pthread_mutex_unlock(&scribe->lock);
}

/* Called when the descriptor is readable. *ret_durable: the number of the newest write that is on
 * disk with all before it. Returns 0, or the code of the failure that has ended the thread; then
 * *ret_durable is unchanged. */
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

/* Waits until the thread has written everything or has failed, closes the store, and frees the
 * scribe. Returns the failure that has ended the thread, or 0. */
int scribe_stop(struct scribe *scribe, struct hvd_err *err)
{
    int rc;

    if (!scribe)
        return 0;
    /* The thread writes all that is waiting before it ends. */
    pthread_mutex_lock(&scribe->lock);
    scribe->stopping = true;
    pthread_cond_signal(&scribe->wake);
    pthread_mutex_unlock(&scribe->lock);
    thread_join(scribe->thread);
    rc = scribe->rc;
    if (rc && err)
        *err = scribe->err;
    store_close(scribe->store);
    scribe_free(scribe);
    return rc;
}
