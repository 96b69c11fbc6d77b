/*
 * state_liar.c: a holder of commits that answers wrongly after a number of right chunks: silence,
 * garbage, another commit, a closed connection.
 */
#include "tests/lib/state_liar.h"

#include "base/limits.h"
#include "state/sum.h"
#include "tests/lib/loopback.h"

#include <stdio.h>

static uint8_t bytes[STATE_CHUNK_BYTES];

static void hang_up(struct state_liar *liar)
{
    conn_drop(liar->conn);
    liar->conn = NULL;
}

static void say(struct state_liar *liar, const struct msg *msg)
{
    if (conn_send(liar->conn, msg, NULL))
        hang_up(liar);
}

/* Sends the chunk that was asked for, or the lie when the honest chunks are used up. */
static void answer(struct state_liar *liar, const struct msg *pull, uint64_t index)
{
    struct msg msg = { .type = MSG_CHUNK, .incarnation = pull->incarnation };
    bool honest = liar->honest > 0;

    if (!honest && liar->lie == LIE_IS_SILENT)
        return;
    if (!honest && liar->lie == LIE_DIES) {
        hang_up(liar);
        return;
    }
    state_chunk_bytes(pull->u.pull.commit, index, bytes);
    msg.u.chunk = (struct msg_chunk){
        .commit = pull->u.pull.commit,
        .index = index,
        .checksum = sum_of(bytes, sizeof(bytes)),
        .data = {bytes, sizeof(bytes)}
    };
    if (!honest) {
        /* Changes the right answer into the lie. */
        struct msg_chunk *chunk = &msg.u.chunk;

        switch (liar->lie) {
        case LIE_BYTES: bytes[77]++; break;
        case LIE_PART: chunk->data.length /= 2; break;
        case LIE_NO_BYTES: chunk->data.length = 0; break;
        case LIE_OTHER_INDEX: chunk->index++; break;
        case LIE_OTHER_COMMIT: chunk->commit++; break;
        case LIE_GONE: chunk->code = HVD_E_NOTFOUND; break;
        case LIE_STRANGE_CODE: chunk->code = 12345; break;
        case LIE_OTHER_WORD: msg.type = MSG_BEAT; break;
        case LIE_DIES:
        case LIE_IS_SILENT:
        case LIE_UNASKED:
        case LIE_COUNT: break;
        }
        if (chunk->code)
            chunk->data.length = 0;
        if (msg.type == MSG_BEAT)
            msg.u.beat = (struct msg_beat){ .sequence = 1, .answers = 1 };
    }
    say(liar, &msg);
    for (int i = 0; !honest && i < 20 && liar->conn && liar->lie == LIE_UNASKED; i++)
        say(liar, &msg);
    liar->honest -= honest;
}

static void on_msg(void *arg, const struct msg *msg)
{
    struct state_liar *liar = arg;

    for (uint32_t i = 0; i < msg->u.pull.count && liar->conn; i++)
        answer(liar, msg, msg->u.pull.first + i);
}

static void on_closed(void *arg, const char *why)
{
    struct state_liar *liar = arg;

    (void)why;
    liar->conn = NULL;
}

static const struct conn_ops ops = { NULL, on_msg, on_closed, NULL };

static void on_accepted(void *arg, struct conn *conn)
{
    struct state_liar *liar = arg;

    if (liar->conn)
        conn_drop(liar->conn);
    liar->conn = conn;
    conn_greeted(conn);
    conn_own(conn, &ops, liar);
}

int state_liar_start(struct state_liar *liar, struct state_hosts *hosts, enum lie lie,
                     uint64_t honest)
{
    *liar = (struct state_liar){ .lie = lie, .honest = honest };
    return listener_tcp(hosts->base, &(struct listener_place){ loopback_own(), 0, hosts->tls },
                        on_accepted, liar, &liar->listener, NULL);
}

void state_liar_stop(struct state_liar *liar)
{
    conn_drop(liar->conn);
    listener_free(liar->listener);
    *liar = (struct state_liar){ .conn = NULL };
}

struct msg_source state_liar_source(struct state_liar *liar)
{
    snprintf(liar->text, sizeof(liar->text), "state=%s", listener_address(liar->listener));
    liar->room = liar->text;
    return (struct msg_source){
        .incarnation = 1, .host = "liar", .addresses = {&liar->room, 1}
    };
}
