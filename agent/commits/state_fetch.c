/*
 * state_fetch.c: a fetch from its beginning to the last chunk that this host can give; chunks that
 * are then missing come from other agents (state_source.c). Called by state_thread.c in its thread.
 * Invariant: a slice of copying is short, so that other fetches and other agents are served between
 * two slices.
 */
#include "agent/commits/state_fetch_internal.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "state/sum.h"

/* How long one slice copies chunks before other events are handled. */
#define SLICE_US (2 * TIME_MS)

/* Runs the next step when the event loop has handled the events that wait. */
static void fetch_step_soon(struct fetch *fetch)
{
    static const struct timeval at_once = { 0, 0 };

    if (event_add(fetch->step, &at_once))
        fetch_end(fetch, HVD_E_NOMEM, err_text(HVD_E_NOMEM));
}

/* Looks for the next source of the FETCH that is a slot of this host and holds the commit: its
 * chunks are copied from now on. If there is none, other agents are asked. */
static void fetch_next_source(struct fetch *fetch)
{
    const struct msg_source_list *sources = &fetch->msg.u.fetch.sources;
    struct fetch_local *local = &fetch->local;

    shared_snapshot_put_down(local->from);
    local->from = NULL;
    local->next = 0;
    while (!local->from && local->source < sources->count) {
        const struct msg_source *source = &sources->items[local->source++];

        if (!fetch_is_here(fetch, source))
            continue;
        local->from = snapshots_find(fetch->thread->config.snapshots, source->slot,
                                     snapshot_shape(fetch->into.snapshot)->manifest,
                                     fetch->msg.u.fetch.commit);
        if (!local->from)
            fetch_note(fetch, source, "there is no such commit (any more)");
    }
    if (local->from)
        fetch_step_soon(fetch);
    else
        sources_begin(fetch);
}

/* Runs one step of the fetch. A timer calls it, so that other events are handled between two steps.
 * While a snapshot on this host is the source, the step copies chunks from that snapshot for
 * SLICE_US, or until that snapshot holds the commit no longer. Otherwise other agents are asked,
 * and the step is their tick (sources_tick). */
static void fetch_on_step(evutil_socket_t fd, short what, void *arg)
{
    struct fetch *fetch = arg;
    struct fetch_local *local = &fetch->local;
    const struct msg_fetch *asked = &fetch->msg.u.fetch;
    int64_t until_us = clock_now_us() + SLICE_US;
    const struct snapshot *from;
    const char *lost = NULL;

    (void)fd;
    (void)what;
    if (!local->from) {
        if (!fetch_is_over(fetch))
            sources_tick(fetch);
        return;
    }
    from = shared_snapshot_of(local->from);
    while (fetch->into.missing && clock_now_us() < until_us) {
        const uint8_t *bytes = snapshot_find(from, asked->commit);
        uint64_t chunk, sum;

        while (fetch->into.marks[local->next] == CHUNK_THERE)
            local->next++;
        chunk = local->next;
        sum = bytes ? snapshot_chunk_sum(from, asked->commit, chunk) : SUM_NONE;
        /* Copies the chunk, unless the commit has no bytes there (SUM_NONE), or the worker's buffer
         * (fetch->into) has a chunk with the same checksum already, from an earlier fetch. */
        if (sum != SUM_NONE && snapshot_sum(fetch->into.snapshot, chunk) != sum) {
            if (fetch_take(fetch, chunk, bytes + chunk * STATE_CHUNK_BYTES, sum)) {
                lost = "a later commit has overwritten this commit";
                break;
            }
            fetch->answer.local_bytes += STATE_CHUNK_BYTES;
        }
        /* asked again after the copy: if the source has dropped the commit meanwhile, the bytes and
         * the checksum may be of a later commit */
        if (!snapshot_find(from, asked->commit)) {
            lost = "the source has dropped the commit";
            break;
        }
        if (sum == SUM_NONE)
            fetch_leave(fetch, chunk);
        fetch_there(fetch, chunk);
    }
    /* with local->source 0 the worker's own snapshot is the source, which the FETCH does not list
     */
    if (lost && local->source > 0)
        fetch_note(fetch, &asked->sources.items[local->source - 1], lost);
    if (fetch_is_over(fetch))
        return;
    if (lost)
        fetch_next_source(fetch);
    else
        fetch_step_soon(fetch);
}

/* Opens the worker's buffer for the commit of a checkpoint, and starts the thread that fills it. */
static void fetch_begin_reading(struct fetch *fetch)
{
    /* a second reference, for the reading: reading_start takes it over, also when it fails */
    struct shared_snapshot *shared =
        snapshots_granted(fetch->thread->config.snapshots, fetch->slot, fetch->msg.incarnation);

    /* the agent's loop may have granted another snapshot since fetch_begin looked */
    if (!shared || shared != fetch->into.shared) {
        shared_snapshot_put_down(shared);
        fetch_end(fetch, HVD_E_REVOKED, "another worker has the slot now");
        return;
    }
    fetch->into.bytes = snapshot_begin(fetch->into.snapshot);
    if (reading_start(fetch->reading, shared, fetch->into.bytes))
        fetch_end(fetch, HVD_E_LIMIT,
                  "the agent has no thread left to read a checkpoint; raise ulimit -u");
}

/* Begins a fetch: opens a buffer in the worker's snapshot for the commit. Then the chunks come from
 * a checkpoint, from snapshots on this host, or from other agents. */
void fetch_begin(struct fetch *fetch)
{
    struct snapshots *snapshots = fetch->thread->config.snapshots;
    uint64_t commit = fetch->msg.u.fetch.commit;
    struct fetch_target *into = &fetch->into;
    const uint8_t *before;

    if (!commit) { /* a FETCH of commit 0 fetches nothing (PROTOCOL.md): it connects to its sources,
                      if it has any */
        if (fetch->msg.u.fetch.sources.count)
            reach_begin(fetch);
        else
            fetch_end(fetch, 0, "");
        return;
    }
    into->shared = snapshots_granted(snapshots, fetch->slot, fetch->msg.incarnation);
    if (!into->shared) {
        fetch_end(fetch, HVD_E_STATE,
                  "the worker has no snapshot; it must send SNAPSHOT before FETCH");
        return;
    }
    into->snapshot = shared_snapshot_of(into->shared);
    if (fetch->reading) {
        fetch_begin_reading(fetch);
        return;
    }
    into->chunks = snapshot_shape(into->snapshot)->replicated_bytes / STATE_CHUNK_BYTES;
    into->missing = into->chunks;
    into->marks = mem_zalloc(into->chunks);
    fetch->step = evtimer_new(fetch->thread->base, fetch_on_step, fetch);
    if (!into->marks || !fetch->step) {
        fetch_end(fetch, HVD_E_NOMEM,
                  "the agent has no memory for a fetch; free memory on this host");
        return;
    }

    /* A buffer of the worker's own snapshot may hold the commit. If snapshot_begin opens that
     * buffer, the bytes are there already. If snapshot_begin opens another buffer, the bytes are
     * copied, as from any source on this host. */
    before = snapshot_find(into->snapshot, commit);
    into->bytes = snapshot_begin(into->snapshot);
    for (uint64_t chunk = 0; before == into->bytes && chunk < into->chunks; chunk++)
        fetch_there(fetch, chunk);
    if (before && before != into->bytes)
        fetch->local.from = snapshots_find(snapshots, fetch->slot,
                                           snapshot_shape(into->snapshot)->manifest, commit);
    if (fetch_is_over(fetch))
        return;
    if (fetch->local.from)
        fetch_step_soon(fetch);
    else
        fetch_next_source(fetch);
}
