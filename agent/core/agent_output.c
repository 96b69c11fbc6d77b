/*
 * agent_output.c: the output of workers. Output is passed on; while no driver is connected the
 * newest output is kept (OUTPUT in PROTOCOL.md). Called by agent.c, and after each welcome by
 * agent_driver.c. Invariant: agent->kept_bytes is the sum of the bytes that all streams keep, and
 * at most LIMIT_OUTPUT_ALL_KEPT_BYTES.
 */
#include "agent/core/agent_internal.h"

#include <string.h>

/* Frees the kept output of one stream of a worker. */
static void output_drop_kept(struct agent *agent, struct agent_output *output)
{
    ASSERT(agent->kept_bytes >= output->kept.length);
    agent->kept_bytes -= output->kept.length;
    buf_release(&output->kept);
}

void agent_output_release(struct agent *agent, struct agent_worker *worker)
{
    for (uint32_t i = 0; i < STREAM_COUNT; i++)
        output_drop_kept(agent, &worker->output[i]);
}

/* Sends the output `rest` to the driver, in messages of at most LIMIT_OUTPUT_CHUNK_BYTES.
 * `dropped_bytes`: how many bytes were dropped before `rest`. */
static void output_send(struct agent *agent, const struct agent_worker *worker, uint32_t stream,
                        struct msg_bytes rest, uint64_t dropped_bytes)
{
    /* a message without bytes still tells the driver how many bytes were dropped */
    while (rest.length > 0 || dropped_bytes > 0) {
        struct msg *msg = agent_msg(agent, MSG_OUTPUT, worker->incarnation);
        struct msg_bytes chunk = rest;

        if (chunk.length > LIMIT_OUTPUT_CHUNK_BYTES)
            chunk.length = LIMIT_OUTPUT_CHUNK_BYTES;
        msg->u.output = (struct msg_output){ stream, chunk, dropped_bytes };
        agent_link_send(agent, msg);
        dropped_bytes = 0;
        /* `rest.at` is NULL if only the number of dropped bytes is sent */
        rest.length -= chunk.length;
        if (rest.length > 0)
            rest.at += chunk.length;
    }
}

/* Sends output of a worker to the driver. Without a driver the newest output is kept, and the
 * number of older bytes that were dropped. */
void agent_output_take(struct agent *agent, struct agent_worker *worker, uint32_t stream,
                       struct msg_bytes data)
{
    struct agent_output *output;
    struct buf *kept;
    size_t excess = 0;
    size_t room;

    ASSERT(stream < STREAM_COUNT);
    if (agent_link_is_open(agent)) {
        output_send(agent, worker, stream, data, 0 /* nothing was dropped */);
        return;
    }
    /* No driver is connected: the oldest bytes of this stream make room for the new ones. Bytes of
     * other streams stay, or the worker that prints most would take all the room. */
    output = &worker->output[stream];
    kept = &output->kept;
    room = LIMIT_OUTPUT_ALL_KEPT_BYTES - (agent->kept_bytes - kept->length);
    if (room > LIMIT_OUTPUT_KEPT_BYTES)
        room = LIMIT_OUTPUT_KEPT_BYTES;
    if (data.length > room) {
        output->dropped_bytes += data.length - room;
        data.at += data.length - room;
        data.length = room;
    }
    if (kept->length > room - data.length)
        excess = kept->length - (room - data.length);
    output->dropped_bytes += excess;
    agent->kept_bytes -= excess;
    buf_consume(kept, excess);
    if (buf_append(kept, data.at, data.length)) {
        /* No memory is left. The new bytes cannot be kept, so the older kept bytes are dropped,
         * too: the output must have no gap in the middle. */
        output->dropped_bytes += kept->length + data.length;
        output_drop_kept(agent, output);
    } else {
        agent->kept_bytes += data.length;
    }
}

/* Called when a driver has said welcome: sends the kept output of a worker, and how many bytes were
 * dropped before it. */
void agent_output_say_kept(struct agent *agent, struct agent_worker *worker)
{
    for (uint32_t i = 0; i < STREAM_COUNT; i++) {
        struct agent_output *output = &worker->output[i];
        struct msg_bytes data = { NULL, output->kept.length };

        /* The data is copied into the step's memory, because the messages outlive the kept
         * bytes. */
        if (data.length) {
            uint8_t *copy = arena_alloc(&agent->list->memory, data.length);

            if (!copy) {
                agent->list->failed = true;
                continue;
            }
            memcpy(copy, output->kept.data, data.length);
            data.at = copy;
        }
        output_send(agent, worker, i, data, output->dropped_bytes);
        output->dropped_bytes = 0;
        output_drop_kept(agent, output);
    }
}
