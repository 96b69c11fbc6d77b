/*
 * state_serve.c: answers a PULL of another agent (the puller) with CHUNKs, one after the other, as
 * fast as the puller reads. Called by the listener and the connections of the thread. Invariant:
 * the snapshot whose bytes are on their way is held until the connection says that the bytes are
 * sent, or until the connection is gone.
 */
#include "agent/commits/state_internal.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/catalog.h"
#include "state/sum.h"

#include <string.h>

/* A puller sends some PULLs before the earlier ones are answered. A puller that sends more than
 * PULLS_AHEAD breaks the protocol. */
#define PULLS_AHEAD  16
#define SERVINGS_MAX 1024 /* the most connections of other agents at the same time */

/* One PULL: the puller wants `count` chunks of a commit, from `first` on. */
struct pull {
    uint64_t incarnation; /* the worker for which the puller asks; sent back with each chunk */
    uint32_t slot;        /* the slot of this host that has the commit */
    uint32_t count;
    uint64_t manifest;
    uint64_t commit;
    uint64_t first;
    /* for each chunk the checksum of the bytes that the puller has; SUM_NONE: it has none */
    uint64_t known[LIMIT_PULL_CHUNKS];
};

/* One connection of another agent that pulls chunks. */
struct serving {
    struct list link;
    struct state_thread *thread;
    struct conn *conn;
    struct pull pulls[PULLS_AHEAD]; /* ring buffer of the PULLs that are not answered yet */
    size_t at;                      /* index of the oldest PULL, which is being answered */
    size_t waiting;                 /* how many PULLs are not answered yet */
    uint32_t answered;              /* number of chunks of pulls[at] that were sent */
    struct shared_snapshot *lends;  /* the snapshot whose bytes are being sent; NULL: none */
};

/* Frees what belongs to a connection of another agent that is closed. */
static void serve_stop(struct serving *serving)
{
    list_remove(&serving->link);
    serving->thread->serving_count--;
    shared_snapshot_put_down(serving->lends);
    mem_free(serving);
}

/* Ends a connection of another agent early, and tells the operator why. */
static void serve_break_off(struct serving *serving, const char *why)
{
    log_warning(
        STATE,
        "%s: no more chunks are sent to this peer, which asks its other sources for them: %s",
        conn_peer(serving->conn), why);
    conn_drop(serving->conn);
    serve_stop(serving);
}

/* Answers the waiting PULLs, up to and with the next chunk that has bytes. When those bytes are
 * sent, serve_on_drained calls this function again. The bytes are sent from the snapshot without a
 * copy, and a worker may write over them at any time: the puller checks each chunk by its checksum.
 */
static void serve_go_on(struct serving *serving)
{
    while (serving->waiting > 0 && !serving->lends) {
        const struct pull *pull = &serving->pulls[serving->at];
        struct shared_snapshot *shared = snapshots_find(serving->thread->config.snapshots,
                                                        pull->slot, pull->manifest, pull->commit);
        uint64_t index = pull->first + serving->answered;
        struct msg msg = { .type = MSG_CHUNK, .incarnation = pull->incarnation };
        struct msg_chunk *chunk = &msg.u.chunk;
        struct hvd_err err;
        int rc;

        *chunk = (struct msg_chunk){ .commit = pull->commit, .index = index };
        if (shared) {
            const struct snapshot *snapshot = shared_snapshot_of(shared);
            const uint8_t *bytes = snapshot_find(snapshot, pull->commit);
            uint64_t sum = snapshot_chunk_sum(snapshot, pull->commit, index);

            /* The commit is looked for twice: the worker may drop it while the checksum of the
             * chunk is read. A chunk whose checksum the puller knows is answered without bytes. */
            if (index >= snapshot_shape(snapshot)->bytes / STATE_CHUNK_BYTES)
                chunk->code = HVD_E_INVAL;
            else if (!bytes || !snapshot_find(snapshot, pull->commit))
                chunk->code = HVD_E_NOTFOUND;
            else if (sum != SUM_NONE && sum != pull->known[serving->answered])
                chunk->data =
                    (struct msg_bytes){ bytes + index * STATE_CHUNK_BYTES, STATE_CHUNK_BYTES };
            chunk->checksum = chunk->code ? SUM_NONE : sum;
        } else {
            chunk->code = HVD_E_NOTFOUND;
        }
        if (chunk->data.length) {
            rc = conn_send_lent(serving->conn, &msg, &err);
            serving->lends = shared;
        } else {
            rc = conn_send(serving->conn, &msg, &err);
            shared_snapshot_put_down(shared);
        }
        if (rc) {
            serve_break_off(serving,
                            "this agent has no memory to answer a PULL; free memory on this host");
            return;
        }
        /* after an error the PULL gets no further answer */
        if (++serving->answered < pull->count && !chunk->code)
            continue;
        serving->at = (serving->at + 1) % PULLS_AHEAD;
        serving->waiting--;
        serving->answered = 0;
    }
}

/* Called for each message of a puller: queues a PULL and begins to answer it. */
static void serve_on_msg(void *arg, const struct msg *msg)
{
    struct serving *serving = arg;
    const struct msg_pull *asked = &msg->u.pull;
    const char *why = NULL;
    struct hvd_err err;
    struct pull *pull;

    if (msg_allowed(msg->type, LINK_PULLER_TO_HOLDER, WHEN_OPEN, &err))
        why = "the peer has sent a message that no fetching agent sends; all agents must be of the "
              "same release";
    else if (asked->count == 0 || (asked->known.count && asked->known.count != asked->count))
        why = "the PULL of the peer asks for no chunks, or has more or fewer checksums than "
              "chunks; all agents must be of the same release";
    else if (serving->waiting == PULLS_AHEAD)
        why = "the peer has sent more PULLs than may wait for an answer; all agents must be of the "
              "same release";
    if (why) {
        serve_break_off(serving, why);
        return;
    }
    pull = &serving->pulls[(serving->at + serving->waiting++) % PULLS_AHEAD];
    *pull = (struct pull){ .incarnation = msg->incarnation,
                           .slot = asked->slot,
                           .count = asked->count,
                           .manifest = asked->manifest,
                           .commit = asked->commit,
                           .first = asked->first };
    if (asked->known.count)
        memcpy(pull->known, asked->known.items, asked->count * sizeof(pull->known[0]));
    serve_go_on(serving);
}

/* The puller has closed the connection, usually because it has all chunks. */
static void serve_on_closed(void *arg, const char *why)
{
    struct serving *serving = arg;

    log_debug(STATE, "%s: no more chunks are sent to this peer: %s", conn_peer(serving->conn), why);
    serve_stop(serving);
}

/* The lent bytes of a chunk are sent: puts down the snapshot that they are from, and sends the next
 * chunks. */
static void serve_on_drained(void *arg)
{
    struct serving *serving = arg;

    shared_snapshot_put_down(serving->lends);
    serving->lends = NULL;
    serve_go_on(serving);
}

static const struct conn_ops serve_conn_ops = { NULL, serve_on_msg, serve_on_closed,
                                                serve_on_drained };

/* Called for each new connection of another agent, which wants to fetch commits from this host. */
void serve_accepted(void *arg, struct conn *conn)
{
    struct state_thread *thread = arg;
    struct serving *serving =
        thread->serving_count < SERVINGS_MAX ? mem_zalloc(sizeof(*serving)) : NULL;

    if (!serving) {
        log_warning(STATE, "%s: the connection is refused: %s", conn_peer(conn),
                    thread->serving_count < SERVINGS_MAX
                        ? "no memory"
                        : "too many agents fetch commits from this host at once");
        conn_drop(conn);
        return;
    }
    serving->thread = thread;
    serving->conn = conn;
    thread->serving_count++;
    list_append(&thread->servings, &serving->link);
    /* the peer has proved that it has the key, so the connection needs no further greeting */
    conn_greeted(conn);
    conn_own(conn, &serve_conn_ops, serving);
}

/* Closes each connection of another agent that was opened with the key of a round below `before`.
 * conn_proved tells the key that the other side has proved; the number of the key is its round. */
void serve_end(struct state_thread *thread, uint64_t before)
{
    LIST_EACH_SAFE (it, after, &thread->servings) {
        struct serving *serving = CONTAINER_OF(it, struct serving, link);

        if (conn_proved(serving->conn)->number >= before)
            continue;
        conn_drop(serving->conn);
        serve_stop(serving);
    }
}
