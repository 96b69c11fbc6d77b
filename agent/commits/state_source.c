/*
 * state_source.c: fetches chunks from other agents (sources), from several at the same time. Called
 * by state_fetch.c when this host has no more chunks to give, and by the connections. Invariant: a
 * chunk is marked ASKED exactly while some source has the chunk in its window.
 *
 *   IDLE ──selected──► DIALLING ──opened──► OPEN: asked for a window of chunks ──► OUT
 *        ▲                 │ └──────────it sends wrong bytes, or is silent──────────►
 *        └────WAITS ◄──────┘ it could not be reached; some times, then it is OUT
 *
 * A source is asked for more chunks when it answers, so a faster source delivers more. Chunks that
 * a source did not send before it was OUT are wanted again. Members on one host share an agent: the
 * members are then one source, which has several slots to offer.
 */
#include "agent/commits/state_fetch_internal.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/catalog.h"
#include "proto/commit.h"
#include "state/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* how many sources are used at the same time; a further source is dialled only when one of these
 * fails */
#define AT_ONCE    8
#define RUN_CHUNKS 2               /* chunks that one PULL asks for */
#define TICK_US    (250 * TIME_MS) /* how often the sources are looked at (sources_tick) */
#define SILENCE_US (5 * TIME_S)    /* after this time a source that owes chunks is left out */
/* How long a source that could not be reached waits before it is dialled again, after its first,
 * second and third failure: too many connections may be waiting at its port. Each time is rounded
 * up to the next tick. An agent whose port is closed costs these times too, but other sources are
 * asked meanwhile. */
static const int64_t redial_us[] = { 100 * TIME_MS, 250 * TIME_MS, 500 * TIME_MS };

static const struct conn_ops source_conn_ops;

/* The source that was asked for this chunk has not delivered it: another source is asked later. */
static void source_want_again(struct fetch *fetch, uint64_t chunk)
{
    fetch->into.marks[chunk] = CHUNK_WANTED;
    if (chunk < fetch->into.next)
        fetch->into.next = chunk;
}

/* Closes the connection of a source and notes why; `state` says whether its agent is dialled again
 * (SOURCE_WAITS) or not (SOURCE_OUT). Chunks that the source was asked for and has not sent are
 * wanted again. */
static void source_leave(struct source *source, enum source_state state, const char *why)
{
    struct fetch *fetch = source->fetch;

    fetch_note(fetch, source->member, why);
    if (source->conn)
        conn_drop(source->conn);
    source->conn = NULL;
    source->state = state;
    for (; source->waiting > 0; source->waiting--) {
        uint64_t chunk = source->asked[source->at].chunk;

        source->at = (source->at + 1) % SOURCE_WINDOW;
        if (fetch->into.marks[chunk] == CHUNK_ASKED)
            source_want_again(fetch, chunk);
    }
}

/* Sends a source a PULL for the chunks [first, first + count), with the checksums of the bytes that
 * the buffer has already, and notes the chunks in the source's window. */
static int source_ask(struct source *source, uint64_t first, uint32_t count)
{
    struct fetch *fetch = source->fetch;
    struct msg msg = { .type = MSG_PULL, .incarnation = fetch->msg.incarnation };
    uint64_t known[RUN_CHUNKS];
    struct hvd_err err;

    for (uint32_t i = 0; i < count; i++) {
        known[i] = snapshot_sum(fetch->into.snapshot, first + i);
        fetch->into.marks[first + i] = CHUNK_ASKED;
        source->asked[(source->at + source->waiting++) % SOURCE_WINDOW] =
            (struct source_request){ first + i, known[i] };
    }
    msg.u.pull = (struct msg_pull){
        .slot = source->member->slot,
        .manifest = snapshot_shape(fetch->into.snapshot)->manifest,
        .commit = fetch->msg.u.fetch.commit,
        .first = first,
        .count = count,
        .known = {known, count},
    };
    return conn_send(source->conn, &msg, &err);
}

/* Asks a source for the next wanted chunks until its window is full. When no memory is left the
 * source is not asked; a later tick then leaves the source out because it is silent. */
static void source_fill(struct source *source)
{
    struct fetch_target *into = &source->fetch->into;

    while (source->waiting + RUN_CHUNKS <= SOURCE_WINDOW) {
        uint32_t count = 0;
        uint64_t first;

        while (into->next < into->chunks && into->marks[into->next] != CHUNK_WANTED)
            into->next++;
        first = into->next;
        while (count < RUN_CHUNKS && into->next < into->chunks &&
               into->marks[into->next] == CHUNK_WANTED) {
            into->next++;
            count++;
        }
        if (!count)
            return;
        /* a source that owed nothing until now is silent only from now on */
        if (!source->waiting)
            source->heard_us = clock_now_us();
        if (source_ask(source, first, count))
            return;
    }
}

/* The connection to a source is open: the source can be asked for chunks. */
static void source_open(struct source *source)
{
    source->state = SOURCE_OPEN;
    source->heard_us = clock_now_us();
    /* the peer has proved that it has the key, so the connection needs no further greeting */
    conn_greeted(source->conn);
    conn_bulk(source->conn); /* long chunks come */
}

/* Called after a change of the sources: dials idle sources until AT_ONCE are in use, and asks open
 * sources for wanted chunks. May end the fetch. */
static void sources_go_on(struct fetch *fetch)
{
    struct state_thread *thread = fetch->thread;
    size_t busy = 0;
    bool waits = false;

    if (fetch_is_over(fetch))
        return;
    LIST_EACH (it, &fetch->sources) {
        const struct source *source = CONTAINER_OF(it, struct source, link);

        busy += source->state == SOURCE_DIALLING || source->state == SOURCE_OPEN;
        waits |= source->state == SOURCE_WAITS;
    }
    LIST_EACH (it, &fetch->sources) {
        struct source *source = CONTAINER_OF(it, struct source, link);
        const struct msg_texts addresses = { &source->address, 1 };
        struct hvd_err err = { 0 };

        if (busy == AT_ONCE || source->state != SOURCE_IDLE)
            continue;
        source->conn = reach_take(fetch, source->address);
        if (source->conn) { /* state_reach.c has opened the connection before */
            conn_own(source->conn, &source_conn_ops, source);
            source_open(source);
            busy++;
            continue;
        }
        source->state = SOURCE_DIALLING;
        if (conn_dial(thread->base, &addresses, thread->config.tls, &source_conn_ops, source,
                      &source->conn, &err))
            source_leave(source, SOURCE_OUT, err.text);
        else
            busy++;
    }
    if (!busy && !waits) {
        char text[ERR_TEXT_MAX];

        snprintf(text, sizeof(text), "no agent could send commit %" PRIu64 ".%" PRIu32 ": %.*s",
                 COMMIT_ROUND_OF(fetch->msg.u.fetch.commit),
                 COMMIT_PLACE_OF(fetch->msg.u.fetch.commit), ERR_TEXT_MAX - 64,
                 fetch->answer.text[0] ? fetch->answer.text : "the worker has named none");
        fetch_end(fetch, HVD_E_LOST, text);
        return;
    }
    LIST_EACH (it, &fetch->sources) {
        struct source *source = CONTAINER_OF(it, struct source, link);

        if (source->state == SOURCE_OPEN)
            source_fill(source);
    }
}

/* Checks a CHUNK and takes its bytes. Returns why the answer is wrong; NULL: the answer is right,
 * or its bytes are not needed, or the fetch cannot go on. */
static const char *source_take_in(struct source *source, const struct source_request *asked,
                                  const struct msg_chunk *chunk)
{
    struct fetch *fetch = source->fetch;

    if (chunk->commit != fetch->msg.u.fetch.commit || chunk->index != asked->chunk)
        return "the source has sent a chunk that was not asked for";
    if (fetch->into.marks[asked->chunk] == CHUNK_THERE)
        return NULL; /* another source has sent this chunk already */
    if (chunk->data.length == STATE_CHUNK_BYTES) {
        int rc = fetch_take(fetch, asked->chunk, chunk->data.at, chunk->checksum);

        if (rc == HVD_E_CORRUPT)
            return "the bytes of a chunk do not match the checksum";
        if (rc)
            return NULL;
        fetch->answer.bytes += STATE_CHUNK_BYTES;
    } else if (chunk->data.length > 0) {
        return "the source has sent only a part of a chunk";
    } else if (chunk->checksum == SUM_NONE) {
        /* PROTOCOL.md, PULL: SUM_NONE stands for a chunk that was never written */
        fetch_leave(fetch, asked->chunk);
    } else if (chunk->checksum != asked->known) {
        return "the source has sent a chunk without bytes";
    } else if (snapshot_sum(fetch->into.snapshot, asked->chunk) != asked->known) {
        /* this host had the bytes, but another source has sent wrong bytes for this chunk since */
        source_want_again(fetch, asked->chunk);
        return NULL;
    }
    fetch_there(fetch, asked->chunk);
    return NULL;
}

/* Called for each message of a source: checks a CHUNK and takes its bytes, or leaves the source
 * out. */
static void source_on_msg(void *arg, const struct msg *msg)
{
    struct source *source = arg;
    struct fetch *fetch = source->fetch;
    const struct msg_source_list *list = &fetch->msg.u.fetch.sources;
    struct source_request asked = source->asked[source->at];
    const char *why = NULL;
    struct hvd_err err;

    source->heard_us = clock_now_us();
    if (msg_allowed(msg->type, LINK_HOLDER_TO_PULLER, WHEN_OPEN, &err) || !source->waiting) {
        why = "the source has sent a message that was not asked for";
    } else if (msg->u.chunk.code) {
        int code = msg->u.chunk.code;

        /* The slot has no such commit, and the agent does not answer the rest of that PULL. The
         * same agent may have the commit in another slot: then the agent is dialled again for the
         * other slot. */
        source_leave(source, SOURCE_OUT,
                     code == HVD_E_NOTFOUND ? "there is no such commit (any more)"
                                            : err_text(code));
        for (const struct msg_source *it = source->member + 1;
             source->state == SOURCE_OUT && it < list->items + list->count; it++) {
            const char *address = source_address_of(it);

            if (!address || strcmp(address, source->address) != 0)
                continue;
            source->member = it;
            source->state = SOURCE_IDLE;
        }
        sources_go_on(fetch);
        return;
    } else {
        why = source_take_in(source, &asked, &msg->u.chunk);
    }
    if (why) {
        source_leave(source, SOURCE_OUT, why);
        sources_go_on(fetch);
        return;
    }
    source->at = (source->at + 1) % SOURCE_WINDOW;
    source->waiting--;
    if (!fetch_is_over(fetch))
        source_fill(source);
}

/* The dial of a source has succeeded: it is asked for its first chunks. */
static void source_on_opened(void *arg)
{
    struct source *source = arg;

    source_open(source);
    source_fill(source);
}

/* The connection is lost, or the dial has failed. After a failed dial the source waits and is
 * dialled again, a few times at most; while it waits, `heard_us` is the time of the next dial. */
static void source_on_closed(void *arg, const char *why)
{
    struct source *source = arg;
    bool again = source->state == SOURCE_DIALLING && source->dials < ARRAY_SIZE(redial_us);

    source->conn = NULL;
    source_leave(source, again ? SOURCE_WAITS : SOURCE_OUT, why);
    if (again)
        source->heard_us = clock_now_us() + redial_us[source->dials++];
    sources_go_on(source->fetch);
}

static const struct conn_ops source_conn_ops = { source_on_opened, source_on_msg, source_on_closed,
                                                 NULL };

/* Called when no snapshot on this host has the chunks that are missing: makes the list of other
 * agents that have the commit, and begins to ask them. */
void sources_begin(struct fetch *fetch)
{
    const struct msg_source_list *list = &fetch->msg.u.fetch.sources;
    size_t count;

    /* Makes one source for each agent, by address. This host is left out, because state_fetch.c has
     * searched its snapshots. */
    for (size_t i = 0; i < list->count; i++) {
        const struct msg_source *member = &list->items[i];
        const char *address = source_address_of(member);
        struct source *source;
        bool known = false;

        if (fetch_is_here(fetch, member))
            continue;
        if (!address) {
            fetch_note(fetch, member, "the source has no address");
            continue;
        }
        LIST_EACH (it, &fetch->sources)
            known |= !strcmp(CONTAINER_OF(it, struct source, link)->address, address);
        if (known)
            continue;
        source = mem_zalloc(sizeof(*source));
        if (!source) {
            fetch_end(fetch, HVD_E_NOMEM,
                      "the agent has no memory for a fetch; free memory on this host");
            return;
        }
        source->fetch = fetch;
        source->address = address;
        source->member = member;
        list_append(&fetch->sources, &source->link);
    }
    /* Rotates the list by the worker's incarnation, so that workers that fetch the same commit
     * begin with different sources. */
    count = list_length(&fetch->sources);
    for (uint64_t i = 0; count && i < fetch->msg.incarnation % count; i++) {
        struct list *first = fetch->sources.next;

        list_remove(first);
        list_append(&fetch->sources, first);
    }
    sources_tick(fetch);
}

/* Called every TICK_US while other agents are asked. A source that was silent for SILENCE_US is
 * left out. A source that has sent all it was asked for is also asked for the chunks of a slow
 * source. At the end the next tick is set. */
void sources_tick(struct fetch *fetch)
{
    static const struct timeval tick = { 0, TICK_US };
    int64_t now_us = clock_now_us();

    LIST_EACH (it, &fetch->sources) {
        struct source *source = CONTAINER_OF(it, struct source, link);
        const struct source *slow = NULL;

        if (source->state == SOURCE_WAITS && now_us >= source->heard_us)
            source->state = SOURCE_IDLE;
        if (source->state != SOURCE_OPEN)
            continue;
        if (source->waiting && now_us - source->heard_us > SILENCE_US)
            source_leave(source, SOURCE_OUT, "the source has sent nothing for too long");
        if (source->waiting || source->state != SOURCE_OPEN)
            continue;
        /* This source has nothing to send: it is also asked for the chunks that another source,
         * which has been silent for a tick, still owes. The first answer counts. */
        LIST_EACH (other, &fetch->sources) {
            const struct source *asked = CONTAINER_OF(other, struct source, link);

            if (!slow && asked != source && asked->state == SOURCE_OPEN &&
                now_us - asked->heard_us >= TICK_US)
                slow = asked;
        }
        for (size_t i = 0; slow && i < slow->waiting && source->waiting < SOURCE_WINDOW; i++) {
            uint64_t chunk = slow->asked[(slow->at + i) % SOURCE_WINDOW].chunk;

            if (fetch->into.marks[chunk] == CHUNK_ASKED && source_ask(source, chunk, 1))
                break;
        }
    }
    if (event_add(fetch->step, &tick))
        fetch_end(fetch, HVD_E_NOMEM, err_text(HVD_E_NOMEM));
    else
        sources_go_on(fetch);
}
