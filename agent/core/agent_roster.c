/*
 * agent_roster.c: the tables of an agent: workers by incarnation, the worker of each slot,
 * connections by number. Called by everything that has to find a worker. Invariants: both tables
 * are sorted; agent->alive counts the workers that are in a slot; a worker that is not FORGOTTEN is
 * in the table exactly once.
 */
#include "agent/core/agent_internal.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool agent_worker_is_alive(const struct agent_worker *worker)
{
    return worker->process.state == SPAWNING || worker->process.state == RUNNING;
}

/* Makes the core look at the deadlines of its workers at at_us, or earlier. */
void agent_wake_at(struct agent *agent, int64_t at_us)
{
    if (at_us < agent->wake_at_us)
        agent->wake_at_us = at_us;
}

/* Moves a worker's process to another state. Each such change is traced with the slot and the
 * reason. */
void agent_worker_move(struct agent *agent, struct agent_worker *worker, enum process to,
                       const char *why)
{
    char line[TRACE_LINE_MAX];

    snprintf(line, sizeof(line), "%" PRIu64 " in slot %u, %s", worker->incarnation, worker->slot,
             why);
    sm_move(&worker->process, to, agent->now_us, line);
}

/* For VEC_PLACE: the table of workers is sorted by incarnation. */
static uint64_t roster_incarnation_of(const void *item)
{
    struct agent_worker *const *worker = item;

    return (*worker)->incarnation;
}

/* Returns the worker of that incarnation, alive or not yet forgotten; NULL: none. VEC_PLACE gives
 * the place in the sorted table where this incarnation is or would be. */
struct agent_worker *agent_roster_find(const struct agent *agent, uint64_t incarnation)
{
    size_t at = VEC_PLACE(&agent->workers, roster_incarnation_of, incarnation);

    if (at == agent->workers.count || agent->workers.items[at]->incarnation != incarnation)
        return NULL;
    return agent->workers.items[at];
}

/* Called for LAUNCH: the worker is spawning, and occupies its slot from now on. */
struct agent_worker *agent_roster_add(struct agent *agent, const struct msg *msg)
{
    const struct msg_launch *launch = &msg->u.launch;
    struct agent_slot *slot = &agent->slots[launch->slot];
    size_t at = VEC_PLACE(&agent->workers, roster_incarnation_of, msg->incarnation);
    struct agent_worker *worker = NULL;

    ASSERT(!slot->worker && slot->highest < msg->incarnation);
    if (vec_reserve(&agent->workers.items, &agent->workers.capacity, agent->workers.count, 1,
                    LIMIT_SLOT_REPORTS, sizeof(void *)) == 0)
        worker = mem_zalloc(sizeof(*worker));
    if (!worker) {
        agent->list->failed = true;
        return NULL;
    }
    worker->incarnation = msg->incarnation;
    worker->slot = launch->slot;
    worker->place = (struct place){ launch->rank,       launch->size,       launch->local_rank,
                                    launch->local_size, launch->cross_rank, launch->cross_size };
    worker->killing.kill_at_us = TIME_NEVER;
    worker->contact.silent_at_us = TIME_NEVER;
    for (uint32_t i = 0; i < STREAM_COUNT; i++)
        buf_init(&worker->output[i].kept, LIMIT_OUTPUT_KEPT_BYTES);
    sm_init(&worker->process, &agent_process_machine, SPAWNING, worker, agent->trace);

    for (size_t i = agent->workers.count++; i > at; i--)
        agent->workers.items[i] = agent->workers.items[i - 1];
    agent->workers.items[at] = worker;
    agent->alive++;
    slot->worker = worker;
    slot->highest = worker->incarnation;
    return worker;
}

static void roster_destroy(struct agent *agent, struct agent_worker *worker)
{
    agent_output_release(agent, worker);
    agent_words_release(worker);
    mem_free(worker->ending.text);
    msg_release(&worker->ending.autopsy);
    mem_free(worker->killing.reason);
    mem_free(worker);
}

/* Removes a worker from all tables and frees it, for FORGET. Its slot has been free since the
 * worker's end; the slot's highest incarnation stays. */
void agent_roster_remove(struct agent *agent, struct agent_worker *worker)
{
    size_t at = VEC_PLACE(&agent->workers, roster_incarnation_of, worker->incarnation);
    struct agent_slot *slot = &agent->slots[worker->slot];

    ASSERT(agent->workers.items[at] == worker);
    ASSERT(worker->process.state == FORGOTTEN && !worker->contact.connected);
    agent->workers.count--;
    for (size_t i = at; i < agent->workers.count; i++)
        agent->workers.items[i] = agent->workers.items[i + 1];
    if (slot->failed == worker)
        slot->failed = NULL;
    roster_destroy(agent, worker);
}

/* For VEC_PLACE: the table of connections is sorted by number. */
static uint64_t roster_number_of(const void *item)
{
    return ((const struct agent_connection *)item)->number;
}

/* Returns the worker that has said hello on the connection of this number; NULL: none. */
struct agent_worker *agent_roster_at(const struct agent *agent, uint32_t number)
{
    size_t at = VEC_PLACE(&agent->connections, roster_number_of, number);

    if (at == agent->connections.count || agent->connections.items[at].number != number)
        return NULL;
    return agent->connections.items[at].worker;
}

/* Called for HELLO_WORKER: from now on the worker is also found by its connection. */
void agent_roster_connect(struct agent *agent, struct agent_worker *worker, uint32_t number)
{
    size_t at = VEC_PLACE(&agent->connections, roster_number_of, number);

    ASSERT(!worker->contact.connected && !agent_roster_at(agent, number));
    if (VEC_RESERVE(&agent->connections, 1, LIMIT_SLOT_REPORTS)) {
        agent->list->failed = true;
        return;
    }
    memmove(&agent->connections.items[at + 1], &agent->connections.items[at],
            (agent->connections.count - at) * sizeof(agent->connections.items[0]));
    agent->connections.items[at] = (struct agent_connection){ number, worker };
    agent->connections.count++;
    worker->contact.connected = true;
    worker->contact.number = number;
}

/* The worker has no connection any more: from now on it is found by its incarnation only. */
void agent_roster_disconnect(struct agent *agent, struct agent_worker *worker)
{
    size_t at = VEC_PLACE(&agent->connections, roster_number_of, worker->contact.number);

    ASSERT(worker->contact.connected && agent->connections.items[at].worker == worker);
    agent->connections.count--;
    memmove(&agent->connections.items[at], &agent->connections.items[at + 1],
            (agent->connections.count - at) * sizeof(agent->connections.items[0]));
    worker->contact.connected = false;
}

void agent_roster_release(struct agent *agent)
{
    for (size_t i = 0; i < agent->workers.count; i++)
        roster_destroy(agent, agent->workers.items[i]);
    VEC_RELEASE(&agent->workers);
    VEC_RELEASE(&agent->connections);
}
