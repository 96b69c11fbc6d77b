/*
 * state_progress.c: one fetch: it is created, gets its chunks, ends and is answered. Called by all
 * state_*.c above (README.md has the order). Invariants: a fetch ends once, and is answered then; a
 * forgotten fetch (one that its worker no longer awaits) writes no more bytes.
 */
#include "agent/commits/state_fetch_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "proto/commit.h"
#include "state/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

/* Makes a fetch for the worker in this slot; called in the agent's loop. NULL: no memory is left.
 * The message is copied, because the fetch outlives the event. */
struct fetch *fetch_create(struct state_thread *thread, uint64_t requester, uint32_t slot,
                           const struct msg *msg)
{
    struct fetch *fetch = mem_zalloc(sizeof(*fetch));

    if (!fetch)
        return NULL;
    if (msg_copy(msg, &fetch->msg)) {
        mem_free(fetch);
        return NULL;
    }
    list_init(&fetch->link);
    list_init(&fetch->sources);
    fetch->thread = thread;
    fetch->requester = requester;
    fetch->slot = slot;
    /* If no descriptor is left for reading a checkpoint, `reading` stays NULL: the fetch then finds
     * no source that is a worker, and its answer says that. */
    if (msg->u.fetch.commit && reading_folder(&msg->u.fetch) &&
        reading_create(msg, thread->to_thread, &fetch->reading) == HVD_E_NOMEM) {
        msg_release(&fetch->msg);
        mem_free(fetch);
        return NULL;
    }
    if (pthread_mutex_init(&fetch->writing, NULL))
        PANIC("no lock can be made");
    return fetch;
}

/* Frees a fetch that has ended (fetch_end has released the rest), or was never begun. */
void fetch_free(struct fetch *fetch)
{
    reading_put_down(fetch->reading);
    msg_release(&fetch->msg);
    pthread_mutex_destroy(&fetch->writing);
    mem_free(fetch);
}

/* The worker no longer awaits the fetch: after the return no byte is written for it. The flag
 * `forgotten` is set before the lock is taken, because the thread, which copies under the lock,
 * releases it often and takes it again at once. When this function has held the lock, the thread
 * has seen the flag, or will see it before it writes. */
void fetch_forget(struct fetch *fetch)
{
    atomic_store(&fetch->forgotten, true);
    if (fetch->reading)
        reading_cancel(fetch->reading);
    pthread_mutex_lock(&fetch->writing);
    pthread_mutex_unlock(&fetch->writing);
}

/* Sends the result of a fetch to its worker. A fetch is `forgotten` when its worker does not wait
 * any more, and gets no answer then. */
void fetch_tell(struct fetch *fetch)
{
    const struct msg fetched = {
        .type = MSG_FETCHED,
        .incarnation = fetch->msg.incarnation,
        .u.fetched = {.number = fetch->msg.u.fetch.number,
                      .commit = fetch->msg.u.fetch.commit,
                      .code = fetch->answer.code,
                      .text = fetch->answer.text,
                      .bytes = fetch->answer.bytes,
                      .local_bytes = fetch->answer.local_bytes,
                      .per_rank = fetch->answer.per_rank}
    };

    if (!atomic_load(&fetch->forgotten))
        fetch->thread->ops->fetched(fetch->thread->arg, fetch->requester, &fetched);
}

/* Ends a fetch with this result, and puts the fetch into the list `answered`; `text` says why the
 * fetch has failed, or is a remark. Its connections and snapshots are released here, in the thread
 * that uses them. The agent's loop sends the answer and frees the fetch, maybe before this function
 * returns. */
void fetch_end(struct fetch *fetch, int code, const char *text)
{
    struct state_thread *thread = fetch->thread;

    fetch->answer.code = code;
    snprintf(fetch->answer.text, sizeof(fetch->answer.text), "%s", text);
    if (fetch->reading)
        reading_cancel(fetch->reading);
    while (!list_empty(&fetch->sources)) {
        struct source *source = CONTAINER_OF(fetch->sources.next, struct source, link);

        if (source->conn)
            conn_drop(source->conn);
        list_remove(&source->link);
        mem_free(source);
    }
    if (fetch->step)
        event_free(fetch->step);
    fetch->step = NULL;
    shared_snapshot_put_down(fetch->local.from);
    shared_snapshot_put_down(fetch->into.shared);
    fetch->local.from = fetch->into.shared = NULL;
    mem_free(fetch->into.marks);
    fetch->into.marks = NULL;

    pthread_mutex_lock(&thread->mutex);
    list_remove(&fetch->link);
    list_append(&thread->answered, &fetch->link);
    pthread_mutex_unlock(&thread->mutex);
    (void)eventfd_write(thread->to_loop, 1);
}

/* Ends the fetch if there is a reason to end it: the worker does not wait, all chunks are there, or
 * no memory is left. true: the fetch has ended here, and the caller must not use it any more. */
bool fetch_is_over(struct fetch *fetch)
{
    if (atomic_load(&fetch->forgotten))
        fetch_end(fetch, HVD_E_REVOKED, "the worker no longer waits for the commit");
    else if (fetch->into.missing == 0)
        fetch_end(fetch, 0, "");
    else if (fetch->into.no_memory)
        fetch_end(fetch, HVD_E_NOMEM,
                  "no memory for the fetched commit is left; free memory on this host");
    else
        return false;
    return true;
}

/* Called for each running fetch when the thread was woken: ends the fetch if the worker no longer
 * awaits it, or if its checkpoint was read. */
void fetch_look(struct fetch *fetch)
{
    struct reading_result result;

    if (atomic_load(&fetch->forgotten)) {
        fetch_end(fetch, HVD_E_REVOKED, "the worker no longer waits for the commit");
    } else if (fetch->reading && reading_is_over(fetch->reading, &result)) {
        fetch->answer.local_bytes = result.bytes;
        fetch->answer.per_rank = !result.code && result.per_rank;
        fetch_end(fetch, result.code, result.text);
    }
}

/* Notes why this source is not used: in the log, and in the text of the answer, which is sent if
 * the fetch fails. */
void fetch_note(struct fetch *fetch, const struct msg_source *source, const char *why)
{
    char *text = fetch->answer.text;
    size_t said = strlen(text);

    log_info(STATE, "commit %" PRIu64 ".%" PRIu32 " is not fetched from slot %u of %s: %s",
             COMMIT_ROUND_OF(fetch->msg.u.fetch.commit), COMMIT_PLACE_OF(fetch->msg.u.fetch.commit),
             source->slot, source->host, why);
    snprintf(text + said, sizeof(fetch->answer.text) - said, "%sslot %u of %s: %s",
             said ? "; " : "", source->slot, source->host, why);
}

/* Returns the address at which the member's agent serves commits: the one text that begins with
 * STATE_ADDRESS_KIND, without that beginning. NULL: there is none. */
const char *source_address_of(const struct msg_source *member)
{
    for (size_t i = 0; i < member->addresses.count; i++) {
        const char *text = member->addresses.items[i];

        if (!strncmp(text, STATE_ADDRESS_KIND, strlen(STATE_ADDRESS_KIND)))
            return text + strlen(STATE_ADDRESS_KIND);
    }
    return NULL;
}

/* true: the source is a slot of this host, so its commit is copied without a connection. */
bool fetch_is_here(const struct fetch *fetch, const struct msg_source *source)
{
    return !strcmp(source->host, fetch->thread->config.host);
}

/* Copies one chunk into the worker's buffer and verifies its checksum. HVD_E_CORRUPT: the bytes are
 * wrong. HVD_E_NOMEM, HVD_E_REVOKED: the fetch cannot go on. The lock `writing` keeps the worker
 * from forgetting the fetch during the copy. */
int fetch_take(struct fetch *fetch, uint64_t chunk, const uint8_t *bytes, uint64_t sum)
{
    struct snapshot *into = fetch->into.snapshot;
    uint8_t *to = fetch->into.bytes + chunk * STATE_CHUNK_BYTES;
    int rc = 0;

    pthread_mutex_lock(&fetch->writing);
    if (atomic_load(&fetch->forgotten)) {
        rc = HVD_E_REVOKED;
    } else if (snapshot_take_room(into, chunk)) {
        rc = HVD_E_NOMEM;
        fetch->into.no_memory = true;
    } else {
        /* The checksum is computed from the copy: a worker may write over the source bytes at any
         * time. While the bytes change, the checksum is SUM_NONE. */
        snapshot_set_sum(into, chunk, SUM_NONE);
        memcpy(to, bytes, STATE_CHUNK_BYTES);
        if (sum != SUM_NONE && sum_of(to, STATE_CHUNK_BYTES) == sum)
            snapshot_set_sum(into, chunk, sum);
        else
            rc = HVD_E_CORRUPT;
    }
    pthread_mutex_unlock(&fetch->writing);
    return rc;
}

/* The source says that the commit has no bytes in this chunk: the chunk gets no checksum either.
 * The caller marks it as arrived. */
void fetch_leave(struct fetch *fetch, uint64_t chunk)
{
    pthread_mutex_lock(&fetch->writing);
    if (!atomic_load(&fetch->forgotten))
        snapshot_set_sum(fetch->into.snapshot, chunk, SUM_NONE);
    pthread_mutex_unlock(&fetch->writing);
}

/* The chunk is complete in the worker's buffer. fetch_is_over ends the fetch when none is missing.
 */
void fetch_there(struct fetch *fetch, uint64_t chunk)
{
    ASSERT(fetch->into.marks[chunk] != CHUNK_THERE);
    fetch->into.marks[chunk] = CHUNK_THERE;
    fetch->into.missing--;
}
