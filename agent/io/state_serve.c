/* state_serve.c: PULL is answered by CHUNKs, one after the other, as fast as the puller reads. */
#include "agent/io/state_inside.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/catalog.h"
#include "state/sum.h"

#include <inttypes.h>
#include <string.h>

/* A puller keeps some PULLs ahead of what it has got; one that has more than this is no puller. */
#define PULLS_AHEAD  16
#define SERVINGS_MAX 1024 /* other agents at a time */

struct pull {
    uint64_t incarnation; /* goes back with each chunk */
    uint32_t slot;
    uint32_t count;
    uint64_t manifest;
    uint64_t commit;
    uint64_t first;
    uint64_t known[LIMIT_PULL_CHUNKS];
};

/* One agent that pulls. */
struct serving {
    struct list link;
    struct state_thread *thread;
    struct conn *conn;
    struct pull pulls[PULLS_AHEAD]; /* in a circle */
    size_t at;
    size_t waiting;
    uint32_t answered;             /* chunks of the one at `at` */
    struct shared_snapshot *lends; /* its bytes are on their way; NULL */
};

static void stop_serving(struct serving *serving)
{
    list_remove(&serving->link);
    serving->thread->serving_count--;
    shared_snapshot_put_down(serving->lends);
    mem_free(serving);
}

static void break_off(struct serving *serving, const char *why)
{
    log_warning(STATE, "%s: pulls no more: %s", conn_peer(serving->conn), why);
    conn_drop(serving->conn);
    stop_serving(serving);
}

/* ---- one chunk ------------------------------------------------------------------------------- */

/* What is said of a chunk. Its bytes go out from where they lie, and their writer may write over
 * them at any time: the puller believes none of them without their sum. */
static void look_up(const struct pull *pull, uint32_t which, const struct snapshot *snapshot,
                    struct msg_chunk *ret_chunk)
{
    uint64_t index = pull->first + which;
    const uint8_t *bytes = snapshot_find(snapshot, pull->commit);
    uint64_t sum = snapshot_chunk_sum(snapshot, pull->commit, index);

    *ret_chunk = (struct msg_chunk){ .commit = pull->commit, .index = index, .checksum = sum };
    if (index >= snapshot_shape(snapshot)->bytes / STATE_CHUNK_BYTES)
        ret_chunk->code = HVD_E_INVAL;
    else if (!bytes || !snapshot_find(snapshot, pull->commit))
        ret_chunk->code = HVD_E_NOTFOUND;
    else if (sum != SUM_NONE && sum != pull->known[which])
        ret_chunk->data =
            (struct msg_bytes){ bytes + index * STATE_CHUNK_BYTES, STATE_CHUNK_BYTES };
    if (ret_chunk->code)
        ret_chunk->checksum = SUM_NONE;
}

/* Sends the next chunk of the pull; true: that was the last one. */
static int send_chunk(struct serving *serving, const struct pull *pull, bool *ret_last)
{
    struct msg msg = { .type = MSG_CHUNK, .incarnation = pull->incarnation };
    struct shared_snapshot *shared =
        snapshots_find(serving->thread->config.snapshots, pull->slot, pull->manifest, pull->commit);
    struct hvd_err err;
    int rc;

    if (shared)
        look_up(pull, serving->answered, shared_snapshot_of(shared), &msg.u.chunk);
    else
        msg.u.chunk = (struct msg_chunk){ .commit = pull->commit,
                                          .index = pull->first + serving->answered,
                                          .code = HVD_E_NOTFOUND };
    if (!msg.u.chunk.data.length) {
        rc = conn_send(serving->conn, &msg, &err);
        shared_snapshot_put_down(shared);
    } else {
        rc = conn_send_lent(serving->conn, &msg, &err);
        serving->lends = shared;
    }
    serving->answered++;
    *ret_last = msg.u.chunk.code || serving->answered == pull->count;
    return rc;
}

/* Until there are bytes to send: when they are out, `drained` goes on. */
static void serve_on(struct serving *serving)
{
    while (serving->waiting > 0 && !serving->lends) {
        bool last;

        if (send_chunk(serving, &serving->pulls[serving->at], &last)) {
            break_off(serving, "no memory to answer it");
            return;
        }
        if (!last)
            continue;
        serving->at = (serving->at + 1) % PULLS_AHEAD;
        serving->waiting--;
        serving->answered = 0;
    }
}

/* ---- its connection -------------------------------------------------------------------------- */

static const char *judge(const struct serving *serving, const struct msg *msg)
{
    const struct msg_pull *pull = &msg->u.pull;
    struct hvd_err err;

    if (msg_allowed(msg->type, LINK_PULLER_TO_HOLDER, WHEN_OPEN, &err))
        return "it says what a puller does not say";
    if (pull->count == 0 || (pull->known.count && pull->known.count != pull->count))
        return "it asks for no chunks, or does not know what it knows";
    if (serving->waiting == PULLS_AHEAD)
        return "it asks for much more than it reads";
    return NULL;
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct serving *serving = arg;
    const struct msg_pull *asked = &msg->u.pull;
    const char *why = judge(serving, msg);
    struct pull *pull;

    if (why) {
        break_off(serving, why);
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
    serve_on(serving);
}

static void on_closed(void *arg, const char *why)
{
    struct serving *serving = arg;

    log_debug(STATE, "%s: pulls no more: %s", conn_peer(serving->conn), why);
    stop_serving(serving);
}

static void on_drained(void *arg)
{
    struct serving *serving = arg;

    shared_snapshot_put_down(serving->lends);
    serving->lends = NULL;
    serve_on(serving);
}

static const struct conn_ops conn_ops = { NULL, on_msg, on_closed, on_drained };

void serve_accepted(void *arg, struct conn *conn)
{
    struct state_thread *thread = arg;
    struct serving *serving =
        thread->serving_count < SERVINGS_MAX ? mem_zalloc(sizeof(*serving)) : NULL;

    if (!serving) {
        log_warning(STATE, "%s: turned away: no room for another that pulls", conn_peer(conn));
        conn_drop(conn);
        return;
    }
    serving->thread = thread;
    serving->conn = conn;
    thread->serving_count++;
    list_append(&thread->servings, &serving->link);
    conn_greeted(conn); /* with the key proved it is open */
    conn_own(conn, &conn_ops, serving);
}

void serve_end(struct state_thread *thread)
{
    while (!list_empty(&thread->servings)) {
        struct serving *serving = CONTAINER_OF(thread->servings.next, struct serving, link);

        conn_drop(serving->conn);
        stop_serving(serving);
    }
}
