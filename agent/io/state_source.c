/*
 * state_source.c: chunks from other agents, from several at the same time.
 *
 *     IDLE ──its turn──► DIALLING ──opened──► OPEN: asked for chunks, a window ahead ──► OUT
 *                            └───────────it fails, lies, or is silent───────────────────►
 *
 * A source is asked for more as it answers, so a faster one brings more. What a source that is OUT
 * was asked for is wanted again. Members on one host share an agent: they are one source, which has
 * several slots to offer.
 */
#include "agent/io/state_fetch.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "proto/catalog.h"
#include "state/sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS_KIND "state="

#define AT_ONCE      8 /* sources that are pulled from at a time; the others are in reserve */
#define RUN_CHUNKS   2 /* that one PULL asks for, */
#define WINDOW       8 /* and that may be on their way from one source */
#define TICK_US      (250 * TIME_MS)
#define SILENCE_US   (5 * TIME_S)

enum source_state { SOURCE_IDLE, SOURCE_DIALLING, SOURCE_OPEN, SOURCE_OUT };

struct asked {
    uint64_t chunk;
    uint64_t known; /* the sum of what we have there; SUM_NONE */
};

struct source {
    struct list link;
    struct fetch *fetch;
    const char *address; /* in the FETCH, as is the member */
    const struct msg_source *member;
    enum source_state state;
    struct conn *conn;
    int64_t heard_us;
    struct asked asked[WINDOW]; /* in a circle, in the order of the answers */
    size_t at;
    size_t waiting;
};

static void fill(struct source *source);
static bool dial_more(struct fetch *fetch);

/* ---- coming and going ------------------------------------------------------------------------ */

static const char *address_of(const struct msg_source *member)
{
    for (size_t i = 0; i < member->addresses.count; i++) {
        const char *text = member->addresses.items[i];

        if (!strncmp(text, ADDRESS_KIND, strlen(ADDRESS_KIND)))
            return text + strlen(ADDRESS_KIND);
    }
    return NULL;
}

static void want_again(struct fetch *fetch, uint64_t chunk)
{
    fetch->marks[chunk] = CHUNK_WANTED;
    if (chunk < fetch->next)
        fetch->next = chunk;
}

/* What it was asked for is wanted again. */
static void take_back(struct source *source)
{
    struct fetch *fetch = source->fetch;

    for (; source->waiting > 0; source->waiting--) {
        uint64_t chunk = source->asked[source->at].chunk;

        source->at = (source->at + 1) % WINDOW;
        if (fetch->marks[chunk] == CHUNK_ASKED)
            want_again(fetch, chunk);
    }
}

/* It is left out from now on; the connection is closed unless it is gone already. */
static void leave_out(struct source *source, const char *why)
{
    fetch_note(source->fetch, source->member, why);
    if (source->conn)
        conn_drop(source->conn);
    source->conn = NULL;
    source->state = SOURCE_OUT;
    take_back(source);
}

/* After one was left out: others get what it was asked for. May end the fetch. */
static void go_on(struct fetch *fetch)
{
    if (fetch_is_over(fetch) || !dial_more(fetch))
        return;
    LIST_EACH (it, &fetch->sources) {
        struct source *source = CONTAINER_OF(it, struct source, link);

        if (source->state == SOURCE_OPEN)
            fill(source);
    }
}

/* Its next member that can be asked in place of this one: the same agent has another slot. */
static bool has_other_slot(struct source *source)
{
    const struct msg_source_list *list = &source->fetch->msg.u.fetch.sources;

    for (const struct msg_source *it = source->member + 1; it < list->items + list->count; it++) {
        const char *address = address_of(it);

        if (!address || strcmp(address, source->address) != 0)
            continue;
        source->member = it;
        return true;
    }
    return false;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The next chunks that are wanted, at most so many, side by side. */
static uint32_t find_run(struct fetch *fetch, uint32_t most, uint64_t *ret_first)
{
    uint32_t count = 0;

    while (fetch->next < fetch->chunks && fetch->marks[fetch->next] != CHUNK_WANTED)
        fetch->next++;
    *ret_first = fetch->next;
    while (count < most && fetch->next < fetch->chunks &&
           fetch->marks[fetch->next] == CHUNK_WANTED) {
        fetch->next++;
        count++;
    }
    return count;
}

static int ask(struct source *source, uint64_t first, uint32_t count)
{
    struct fetch *fetch = source->fetch;
    uint64_t known[RUN_CHUNKS];
    struct msg msg = { .type = MSG_PULL, .incarnation = fetch->msg.incarnation };
    struct hvd_err err;

    for (uint32_t i = 0; i < count; i++) {
        known[i] = snapshot_sum(fetch->into, first + i);
        fetch->marks[first + i] = CHUNK_ASKED;
        source->asked[(source->at + source->waiting++) % WINDOW] =
            (struct asked){ first + i, known[i] };
    }
    msg.u.pull = (struct msg_pull){
        .slot = source->member->slot,
        .manifest = snapshot_shape(fetch->into)->manifest,
        .commit = fetch->msg.u.fetch.commit,
        .first = first,
        .count = count,
        .known = {known, count},
    };
    return conn_send(source->conn, &msg, &err);
}

/* As far as its window goes. Without memory to ask it is left out at the next tick, by its
 * silence. */
static void fill(struct source *source)
{
    while (source->waiting + RUN_CHUNKS <= WINDOW) {
        uint64_t first;
        uint32_t count = find_run(source->fetch, RUN_CHUNKS, &first);

        if (!count)
            return;
        if (!source->waiting)
            source->heard_us = clock_now_us();
        if (ask(source, first, count))
            return;
    }
}

/* ---- what it answers ------------------------------------------------------------------------- */

/* Why it is not believed; NULL: the chunk is there. */
static const char *take_in(struct source *source, const struct asked *asked,
                           const struct msg_chunk *chunk)
{
    struct fetch *fetch = source->fetch;

    if (chunk->commit != fetch->msg.u.fetch.commit || chunk->index != asked->chunk)
        return "it answers what it was not asked";
    if (fetch->marks[asked->chunk] == CHUNK_THERE)
        return NULL; /* somebody else was faster */
    if (chunk->data.length == STATE_CHUNK_BYTES) {
        int rc = fetch_take(fetch, asked->chunk, chunk->data.at, chunk->checksum);

        if (rc == HVD_E_CORRUPT)
            return "what it sends is not what its checksum says";
        if (rc)
            return NULL; /* the fetch is over, and not by its fault */
        fetch->bytes += STATE_CHUNK_BYTES;
    } else if (chunk->data.length > 0) {
        return "it sends a part of a chunk";
    } else if (chunk->checksum == SUM_NONE) {
        fetch_leave(fetch, asked->chunk);
    } else if (chunk->checksum != asked->known) {
        return "it sends no bytes";
    } else if (snapshot_sum(fetch->into, asked->chunk) != asked->known) {
        want_again(fetch, asked->chunk); /* another one has lied about it meanwhile */
        return NULL;
    }
    fetch_there(fetch, asked->chunk);
    return NULL;
}

/* There is no such commit in that slot; the same agent may have another one that has it. The answer
 * to the rest of that PULL does not come. */
static void on_missing(struct source *source, int code)
{
    char why[ERR_TEXT_MAX];

    snprintf(why, sizeof(why), "%s",
             code == HVD_E_NOTFOUND ? "there is no such commit (any more)" : err_text(code));
    fetch_note(source->fetch, source->member, why);
    take_back(source);
    if (source->conn)
        conn_drop(source->conn);
    source->conn = NULL;
    source->state = has_other_slot(source) ? SOURCE_IDLE : SOURCE_OUT;
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct source *source = arg;
    struct fetch *fetch = source->fetch;
    struct asked asked = source->asked[source->at];
    const char *why = NULL;
    struct hvd_err err;

    source->heard_us = clock_now_us();
    if (msg_allowed(msg->type, LINK_HOLDER_TO_PULLER, WHEN_OPEN, &err) || !source->waiting) {
        leave_out(source, "it says what nobody asked for");
        go_on(fetch);
        return;
    }
    if (msg->u.chunk.code) {
        on_missing(source, msg->u.chunk.code);
        go_on(fetch);
        return;
    }
    why = take_in(source, &asked, &msg->u.chunk);
    if (why) {
        leave_out(source, why);
        go_on(fetch);
        return;
    }
    source->at = (source->at + 1) % WINDOW;
    source->waiting--;
    if (!fetch_is_over(fetch))
        fill(source);
}

static void on_opened(void *arg)
{
    struct source *source = arg;

    source->state = SOURCE_OPEN;
    source->heard_us = clock_now_us();
    conn_greeted(source->conn);
    conn_bulk(source->conn);
    fill(source);
}

static void on_closed(void *arg, const char *why)
{
    struct source *source = arg;

    source->conn = NULL;
    leave_out(source, why);
    go_on(source->fetch);
}

static const struct conn_ops conn_ops = { on_opened, on_msg, on_closed, NULL };

/* ---- all of them ----------------------------------------------------------------------------- */

static void dial(struct source *source)
{
    struct state_thread *thread = source->fetch->thread;
    const struct msg_texts addresses = { &source->address, 1 };
    struct hvd_err err = { 0 };

    source->state = SOURCE_DIALLING;
    if (conn_dial(thread->base, &addresses, thread->config.tls, &conn_ops, source, &source->conn,
                  &err))
        leave_out(source, err.text);
}

/* False: nobody is left, and the fetch has ended. */
static bool dial_more(struct fetch *fetch)
{
    size_t busy = 0;

    LIST_EACH (it, &fetch->sources) {
        const struct source *source = CONTAINER_OF(it, struct source, link);

        busy += source->state == SOURCE_DIALLING || source->state == SOURCE_OPEN;
    }
    LIST_EACH (it, &fetch->sources) {
        struct source *source = CONTAINER_OF(it, struct source, link);

        if (busy == AT_ONCE || source->state != SOURCE_IDLE)
            continue;
        dial(source);
        busy += source->state == SOURCE_DIALLING;
    }
    if (!busy)
        fetch_end_lost(fetch);
    return busy > 0;
}

static struct source *source_at(const struct fetch *fetch, const char *address)
{
    LIST_EACH (it, &fetch->sources) {
        struct source *source = CONTAINER_OF(it, struct source, link);

        if (!strcmp(source->address, address))
            return source;
    }
    return NULL;
}

static int add(struct fetch *fetch, const struct msg_source *member)
{
    const char *address = address_of(member);
    struct source *source;

    if (!address) {
        fetch_note(fetch, member, "it has no address");
        return 0;
    }
    if (source_at(fetch, address))
        return 0;
    source = mem_zalloc(sizeof(*source));
    if (!source)
        return HVD_E_NOMEM;
    source->fetch = fetch;
    source->address = address;
    source->member = member;
    list_append(&fetch->sources, &source->link);
    return 0;
}

/* So that not all who fetch the same begin with the same. */
static void rotate(struct fetch *fetch)
{
    size_t count = list_length(&fetch->sources);

    for (uint64_t i = 0; count && i < fetch->msg.incarnation % count; i++) {
        struct list *first = fetch->sources.next;

        list_remove(first);
        list_append(&fetch->sources, first);
    }
}

void sources_begin(struct fetch *fetch)
{
    const struct msg_source_list *list = &fetch->msg.u.fetch.sources;

    for (size_t i = 0; i < list->count; i++) {
        if (fetch_is_here(fetch, &list->items[i]))
            continue; /* it was asked first */
        if (add(fetch, &list->items[i])) {
            fetch_end(fetch, HVD_E_NOMEM, "the agent has no memory for a fetch");
            return;
        }
    }
    rotate(fetch);
    sources_tick(fetch);
}

/* Chunks that only a silent one was asked for are asked of one that has nothing to do. */
static void help_out(struct source *idle)
{
    struct fetch *fetch = idle->fetch;

    LIST_EACH (it, &fetch->sources) {
        const struct source *slow = CONTAINER_OF(it, struct source, link);

        if (slow == idle || slow->state != SOURCE_OPEN || clock_now_us() - slow->heard_us < TICK_US)
            continue;
        for (size_t i = 0; i < slow->waiting && idle->waiting < WINDOW; i++) {
            uint64_t chunk = slow->asked[(slow->at + i) % WINDOW].chunk;

            if (fetch->marks[chunk] == CHUNK_ASKED && ask(idle, chunk, 1))
                return;
        }
        return;
    }
}

void sources_tick(struct fetch *fetch)
{
    static const struct timeval tick = { 0, TICK_US };
    int64_t now_us = clock_now_us();

    LIST_EACH (it, &fetch->sources) {
        struct source *source = CONTAINER_OF(it, struct source, link);

        if (source->state != SOURCE_OPEN)
            continue;
        if (source->waiting && now_us - source->heard_us > SILENCE_US)
            leave_out(source, "it is silent");
        else if (!source->waiting)
            help_out(source);
    }
    if (event_add(fetch->turn, &tick))
        fetch_end(fetch, HVD_E_NOMEM, err_text(HVD_E_NOMEM));
    else
        go_on(fetch);
}

void sources_end(struct fetch *fetch)
{
    while (!list_empty(&fetch->sources)) {
        struct source *source = CONTAINER_OF(fetch->sources.next, struct source, link);

        if (source->conn)
            conn_drop(source->conn);
        list_remove(&source->link);
        mem_free(source);
    }
}
