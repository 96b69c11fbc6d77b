/* agent_output.c: what workers print: passed on, or the newest of it kept while no driver is there.
 */
#include "agent/core/agent_state.h"

#include <inttypes.h>
#include <string.h>

void agent_output_init(struct agent_worker *worker)
{
    for (uint32_t i = 0; i < STREAM_COUNT; i++)
        buf_init(&worker->output[i].kept, LIMIT_OUTPUT_KEPT_BYTES);
}

static void release_kept(struct agent *agent, struct agent_output *output)
{
    ASSERT(agent->kept_bytes >= output->kept.length);
    agent->kept_bytes -= output->kept.length;
    buf_release(&output->kept);
}

void agent_output_release(struct agent *agent, struct agent_worker *worker)
{
    for (uint32_t i = 0; i < STREAM_COUNT; i++)
        release_kept(agent, &worker->output[i]);
}

/* The oldest bytes of both give way. Those of other streams do not: who prints most would take all.
 */
static void keep(struct agent *agent, struct agent_output *output, struct msg_bytes data)
{
    struct buf *kept = &output->kept;
    size_t room = LIMIT_OUTPUT_ALL_KEPT_BYTES - (agent->kept_bytes - kept->length);
    size_t excess = 0;

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
        /* Memory is out, and these come last: what is kept cannot stand after them. */
        output->dropped_bytes += kept->length + data.length;
        release_kept(agent, output);
    } else {
        agent->kept_bytes += data.length;
    }
}

static void say(struct agent *agent, const struct agent_worker *worker, uint32_t stream,
                struct msg_bytes rest, uint64_t dropped_bytes)
{
    while (rest.length > 0 || dropped_bytes > 0) {
        struct msg *msg = agent_msg(agent, MSG_OUTPUT, worker->incarnation);
        struct msg_bytes chunk = rest;

        if (chunk.length > LIMIT_OUTPUT_CHUNK_BYTES)
            chunk.length = LIMIT_OUTPUT_CHUNK_BYTES;
        msg->u.output = (struct msg_output){ stream, chunk, dropped_bytes };
        agent_driver_send(agent, msg);
        dropped_bytes = 0;
        rest.length -= chunk.length;
        if (rest.length > 0)
            rest.at += chunk.length;
    }
}

void agent_output_take(struct agent *agent, const struct agent_event *event)
{
    struct agent_worker *worker = agent_roster_find(agent, event->incarnation);

    ASSERT(event->stream < STREAM_COUNT);
    if (!worker)
        trace_add(agent->trace, agent->now_us, "worker: output of %" PRIu64 ", forgotten: dropped",
                  event->incarnation);
    else if (agent_driver_is_open(agent))
        say(agent, worker, event->stream, event->data, 0);
    else
        keep(agent, &worker->output[event->stream], event->data);
}

static void say_stream(struct agent *agent, struct agent_worker *worker, uint32_t stream)
{
    struct agent_output *output = &worker->output[stream];
    struct msg_bytes data = { NULL, output->kept.length };
    uint8_t *copy;

    if (data.length) {
        copy = arena_alloc(&agent->list->memory, data.length);
        if (!copy) {
            agent->list->failed = true;
            return;
        }
        memcpy(copy, output->kept.data, data.length);
        data.at = copy;
    }
    say(agent, worker, stream, data, output->dropped_bytes);
    output->dropped_bytes = 0;
    release_kept(agent, output);
}

void agent_output_say_kept(struct agent *agent, struct agent_worker *worker)
{
    for (uint32_t i = 0; i < STREAM_COUNT; i++)
        say_stream(agent, worker, i);
}
