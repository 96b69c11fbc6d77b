#include "agent/io/state_fetch.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/time.h"
#include "os/clock.h"
#include "state/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How long chunks are copied before others have their turn. */
#define SLICE_US (2 * TIME_MS)

/* ---- its life -------------------------------------------------------------------------------- */

struct fetch *fetch_create(struct state_thread *thread, uint64_t who, uint32_t slot,
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
    fetch->who = who;
    fetch->slot = slot;
    if (pthread_mutex_init(&fetch->writing, NULL))
        PANIC("no lock can be made");
    return fetch;
}

void fetch_free(struct fetch *fetch)
{
    msg_release(&fetch->msg);
    pthread_mutex_destroy(&fetch->writing);
    mem_free(fetch);
}

/* The flag first: the thread lets go of the lock often, and takes it again at once. */
void fetch_forget(struct fetch *fetch)
{
    atomic_store(&fetch->forgotten, true);
    pthread_mutex_lock(&fetch->writing);
    pthread_mutex_unlock(&fetch->writing);
}

void fetch_tell(struct fetch *fetch)
{
    const struct msg fetched = {
        .type = MSG_FETCHED,
        .incarnation = fetch->msg.incarnation,
        .u.fetched = {.number = fetch->msg.u.fetch.number,
                      .commit = fetch->msg.u.fetch.commit,
                      .code = fetch->code,
                      .text = fetch->text,
                      .bytes = fetch->bytes,
                      .local_bytes = fetch->local_bytes}
    };

    if (!atomic_load(&fetch->forgotten))
        fetch->thread->ops->fetched(fetch->thread->arg, fetch->who, &fetched);
}

void fetch_end(struct fetch *fetch, int code, const char *text)
{
    fetch->code = code;
    if (!code)
        fetch->text[0] = '\0';
    else if (text != fetch->text)
        snprintf(fetch->text, sizeof(fetch->text), "%s", text);
    sources_end(fetch);
    if (fetch->turn)
        event_free(fetch->turn);
    fetch->turn = NULL;
    shared_snapshot_put_down(fetch->from);
    shared_snapshot_put_down(fetch->shared);
    fetch->from = fetch->shared = NULL;
    mem_free(fetch->marks);
    fetch->marks = NULL;
    state_answer(fetch);
}

void fetch_end_lost(struct fetch *fetch)
{
    char said[ERR_TEXT_MAX];

    snprintf(said, sizeof(said), "%s", fetch->text[0] ? fetch->text : "nobody was named");
    fetch->text[0] = '\0';
    snprintf(fetch->text, sizeof(fetch->text), "nobody is left to fetch it from: %.*s",
             ERR_TEXT_MAX - 64, said);
    fetch_end(fetch, HVD_E_LOST, fetch->text);
}

bool fetch_is_over(struct fetch *fetch)
{
    if (atomic_load(&fetch->forgotten))
        fetch_end(fetch, HVD_E_REVOKED, "nobody waits for it");
    else if (fetch->missing == 0)
        fetch_end(fetch, 0, "");
    else if (fetch->no_memory)
        fetch_end(fetch, HVD_E_NOMEM, "this host has no memory left for what is fetched");
    else
        return false;
    return true;
}

/* Who was left out, and why: one after the other, for the person who reads it in the end. */
void fetch_note(struct fetch *fetch, const struct msg_source *source, const char *why)
{
    size_t said = strlen(fetch->text);

    log_info(STATE, "commit %" PRIu64 ": not from slot %u of %s: %s", fetch->msg.u.fetch.commit,
             source->slot, source->host, why);
    snprintf(fetch->text + said, sizeof(fetch->text) - said, "%sslot %u of %s: %s",
             said ? "; " : "", source->slot, source->host, why);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static int write_chunk(struct fetch *fetch, uint64_t chunk, const uint8_t *bytes, uint64_t sum)
{
    uint8_t *to = fetch->to + chunk * STATE_CHUNK_BYTES;

    if (atomic_load(&fetch->forgotten))
        return HVD_E_REVOKED;
    if (snapshot_take_room(fetch->into, chunk))
        return HVD_E_NOMEM;
    snapshot_set_sum(fetch->into, chunk, SUM_NONE);
    memcpy(to, bytes, STATE_CHUNK_BYTES);
    if (sum == SUM_NONE || sum_of(to, STATE_CHUNK_BYTES) != sum)
        return HVD_E_CORRUPT;
    snapshot_set_sum(fetch->into, chunk, sum);
    return 0;
}

int fetch_take(struct fetch *fetch, uint64_t chunk, const uint8_t *bytes, uint64_t sum)
{
    int rc;

    pthread_mutex_lock(&fetch->writing);
    rc = write_chunk(fetch, chunk, bytes, sum);
    pthread_mutex_unlock(&fetch->writing);
    if (rc == HVD_E_NOMEM)
        fetch->no_memory = true;
    return rc;
}

void fetch_leave(struct fetch *fetch, uint64_t chunk)
{
    pthread_mutex_lock(&fetch->writing);
    if (!atomic_load(&fetch->forgotten))
        snapshot_set_sum(fetch->into, chunk, SUM_NONE);
    pthread_mutex_unlock(&fetch->writing);
}

void fetch_there(struct fetch *fetch, uint64_t chunk)
{
    ASSERT(fetch->marks[chunk] != CHUNK_THERE);
    fetch->marks[chunk] = CHUNK_THERE;
    fetch->missing--;
}

/* ---- from this host -------------------------------------------------------------------------- */

bool fetch_is_here(const struct fetch *fetch, const struct msg_source *source)
{
    return !strcmp(source->host, fetch->thread->config.host);
}

/* The next source on this host that holds it; NULL: there is none. */
static struct shared_snapshot *find_here(struct fetch *fetch)
{
    const struct msg_source_list *sources = &fetch->msg.u.fetch.sources;

    while (fetch->from_source < sources->count) {
        const struct msg_source *source = &sources->items[fetch->from_source++];
        struct shared_snapshot *found;

        if (!fetch_is_here(fetch, source))
            continue;
        found = snapshots_find(fetch->thread->config.snapshots, source->slot,
                               snapshot_shape(fetch->into)->manifest, fetch->msg.u.fetch.commit);
        if (found)
            return found;
        fetch_note(fetch, source, "there is no such commit (any more)");
    }
    return NULL;
}

static void note_here(struct fetch *fetch, const char *why)
{
    if (fetch->from_source > 0) /* 0: the worker's own */
        fetch_note(fetch, &fetch->msg.u.fetch.sources.items[fetch->from_source - 1], why);
}

/* False: what is held there is gone, or was no good. */
static bool copy_chunk(struct fetch *fetch, uint64_t chunk)
{
    const struct snapshot *from = shared_snapshot_of(fetch->from);
    uint64_t commit = fetch->msg.u.fetch.commit;
    const uint8_t *bytes = snapshot_find(from, commit);
    uint64_t sum = bytes ? snapshot_chunk_sum(from, commit, chunk) : SUM_NONE;

    if (sum != SUM_NONE && snapshot_sum(fetch->into, chunk) != sum) {
        if (fetch_take(fetch, chunk, bytes + chunk * STATE_CHUNK_BYTES, sum)) {
            note_here(fetch, "it was written over");
            return false;
        }
        fetch->local_bytes += STATE_CHUNK_BYTES;
    }
    if (!snapshot_find(from, commit)) { /* what was read was not its any more */
        note_here(fetch, "it is gone");
        return false;
    }
    if (sum == SUM_NONE)
        fetch_leave(fetch, chunk);
    fetch_there(fetch, chunk);
    return true;
}

static void again(struct fetch *fetch)
{
    static const struct timeval at_once = { 0, 0 };

    if (event_add(fetch->turn, &at_once))
        fetch_end(fetch, HVD_E_NOMEM, err_text(HVD_E_NOMEM));
}

/* From the next on this host that has it, or else from others. */
static void go_on_elsewhere(struct fetch *fetch)
{
    shared_snapshot_put_down(fetch->from);
    fetch->from_next = 0;
    fetch->from = find_here(fetch);
    if (fetch->from)
        again(fetch);
    else
        sources_begin(fetch);
}

static void copy_slice(struct fetch *fetch)
{
    int64_t until_us = clock_now_us() + SLICE_US;
    bool good = true;

    while (good && fetch->missing && clock_now_us() < until_us) {
        while (fetch->marks[fetch->from_next] == CHUNK_THERE)
            fetch->from_next++;
        good = copy_chunk(fetch, fetch->from_next);
    }
    if (fetch_is_over(fetch))
        return;
    if (good)
        again(fetch);
    else
        go_on_elsewhere(fetch);
}

/* A timer, so that whatever else has come is seen to in between. */
static void on_turn(evutil_socket_t fd, short what, void *arg)
{
    struct fetch *fetch = arg;

    (void)fd;
    (void)what;
    if (fetch->from)
        copy_slice(fetch);
    else if (!fetch_is_over(fetch))
        sources_tick(fetch);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* The worker's own snapshot. What it holds may be what is wanted: in the other buffer, from which
 * it is copied like any other; or in the one that is opened, whose bytes stay as they are. */
static void open_buffer(struct fetch *fetch)
{
    uint64_t commit = fetch->msg.u.fetch.commit;
    bool is_newest = snapshot_newest(fetch->into) == commit;
    bool was_there = !is_newest && snapshot_find(fetch->into, commit);

    fetch->to = snapshot_begin(fetch->into);
    for (uint64_t chunk = 0; was_there && chunk < fetch->chunks; chunk++)
        fetch_there(fetch, chunk);
    if (is_newest)
        fetch->from = snapshots_find(fetch->thread->config.snapshots, fetch->slot,
                                     snapshot_shape(fetch->into)->manifest, commit);
}

static int prepare(struct fetch *fetch)
{
    fetch->chunks = snapshot_shape(fetch->into)->replicated_bytes / STATE_CHUNK_BYTES;
    fetch->missing = fetch->chunks;
    fetch->marks = mem_zalloc(fetch->chunks);
    fetch->turn = evtimer_new(fetch->thread->base, on_turn, fetch);
    return fetch->marks && fetch->turn ? 0 : HVD_E_NOMEM;
}

void fetch_begin(struct fetch *fetch)
{
    if (!fetch->msg.u.fetch.commit) {
        fetch_end(fetch, 0, "");
        return;
    }
    fetch->shared =
        snapshots_granted(fetch->thread->config.snapshots, fetch->slot, fetch->msg.incarnation);
    if (!fetch->shared) {
        fetch_end(fetch, HVD_E_STATE, "it has no snapshot; SNAPSHOT comes before FETCH");
        return;
    }
    fetch->into = shared_snapshot_of(fetch->shared);
    if (prepare(fetch)) {
        fetch_end(fetch, HVD_E_NOMEM, "the agent has no memory for a fetch");
        return;
    }
    open_buffer(fetch);
    if (fetch_is_over(fetch))
        return;
    if (fetch->from)
        again(fetch);
    else
        go_on_elsewhere(fetch);
}
