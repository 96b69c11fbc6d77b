#include "agent/core/agent_state.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void check_worker(const void *owner, unsigned state)
{
    const struct agent_worker *worker = owner;

    ASSERT(worker->incarnation && worker->slot < LIMIT_SLOTS_PER_HOST);
    ASSERT((state == ENDED) == (worker->ended != ENDED_NOT) || state == FORGOTTEN);
    if (state == FAILED)
        ASSERT(worker->code && !worker->connected);
    if (state == FORGOTTEN)
        ASSERT(!worker->connected);
}

static const struct sm_state process_states[PROCESS_COUNT] = {
    [SPAWNING] = {"spawning",   SM_BIT(RUNNING) | SM_BIT(FAILED) | SM_BIT(ENDED), SM_INITIAL},
    [RUNNING] = { "running",   SM_BIT(ENDED),                                    0         },
    [ENDED] = { "ended",     SM_BIT(FORGOTTEN),                                0         },
    [FAILED] = { "failed",    SM_BIT(FORGOTTEN),                                0         },
    [FORGOTTEN] = { "forgotten", 0,                                                SM_FINAL  },
};

static const struct sm_type process_type = { "worker", process_states, PROCESS_COUNT,
                                             check_worker };

bool agent_worker_is_alive(const struct agent_worker *worker)
{
    return worker->process.state == SPAWNING || worker->process.state == RUNNING;
}

void agent_worker_move(struct agent *agent, struct agent_worker *worker, enum process to,
                       const char *why)
{
    char line[TRACE_LINE_MAX];

    snprintf(line, sizeof(line), "%" PRIu64 " in slot %u, %s", worker->incarnation, worker->slot,
             why);
    sm_move(&worker->process, to, agent->now_us, line);
}

/* The index of the incarnation, or of where it belongs. */
static size_t place_of(const struct agent *agent, uint64_t incarnation)
{
    size_t low = 0;
    size_t high = agent->workers.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (agent->workers.items[middle]->incarnation < incarnation)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct agent_worker *agent_roster_find(const struct agent *agent, uint64_t incarnation)
{
    size_t at = place_of(agent, incarnation);

    if (at == agent->workers.count || agent->workers.items[at]->incarnation != incarnation)
        return NULL;
    return agent->workers.items[at];
}

static struct agent_worker *create(struct agent *agent, const struct msg *msg)
{
    const struct msg_launch *launch = &msg->u.launch;
    struct agent_worker *worker = mem_zalloc(sizeof(*worker));

    if (!worker)
        return NULL;
    worker->incarnation = msg->incarnation;
    worker->slot = launch->slot;
    worker->place = (struct place){ launch->rank,       launch->size,       launch->local_rank,
                                    launch->local_size, launch->cross_rank, launch->cross_size };
    worker->kill_at_us = TIME_NEVER;
    worker->silent_at_us = TIME_NEVER;
    agent_output_init(worker);
    sm_init(&worker->process, &process_type, SPAWNING, worker, agent->trace);
    return worker;
}

struct agent_worker *agent_roster_add(struct agent *agent, const struct msg *msg)
{
    size_t at = place_of(agent, msg->incarnation);
    struct agent_slot *slot = &agent->slots[msg->u.launch.slot];
    struct agent_worker *worker = NULL;

    ASSERT(!slot->worker && slot->highest < msg->incarnation);
    if (vec_reserve(&agent->workers.items, &agent->workers.capacity, agent->workers.count, 1,
                    LIMIT_SLOT_REPORTS, sizeof(void *)) == 0)
        worker = create(agent, msg);
    if (!worker) {
        agent->list->failed = true;
        return NULL;
    }
    for (size_t i = agent->workers.count++; i > at; i--)
        agent->workers.items[i] = agent->workers.items[i - 1];
    agent->workers.items[at] = worker;
    agent->alive++;
    slot->worker = worker;
    slot->highest = worker->incarnation;
    return worker;
}

static void destroy(struct agent *agent, struct agent_worker *worker)
{
    agent_output_release(agent, worker);
    agent_words_release(worker);
    mem_free(worker->text);
    mem_free(worker);
}

void agent_roster_remove(struct agent *agent, struct agent_worker *worker)
{
    size_t at = place_of(agent, worker->incarnation);
    struct agent_slot *slot = &agent->slots[worker->slot];

    ASSERT(agent->workers.items[at] == worker);
    ASSERT(worker->process.state == FORGOTTEN && !worker->connected);
    agent->workers.count--;
    for (size_t i = at; i < agent->workers.count; i++)
        agent->workers.items[i] = agent->workers.items[i + 1];
    if (slot->failed == worker)
        slot->failed = NULL;
    destroy(agent, worker);
}

/* The index of the connection, or of where it belongs. */
static size_t connection_place(const struct agent *agent, uint32_t number)
{
    size_t low = 0;
    size_t high = agent->connections.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (agent->connections.items[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct agent_worker *agent_roster_at(const struct agent *agent, uint32_t number)
{
    size_t at = connection_place(agent, number);

    if (at == agent->connections.count || agent->connections.items[at].number != number)
        return NULL;
    return agent->connections.items[at].worker;
}

void agent_roster_connect(struct agent *agent, struct agent_worker *worker, uint32_t number)
{
    size_t at = connection_place(agent, number);

    ASSERT(!worker->connected && !agent_roster_at(agent, number));
    if (VEC_RESERVE(&agent->connections, 1, LIMIT_SLOT_REPORTS)) {
        agent->list->failed = true;
        return;
    }
    memmove(&agent->connections.items[at + 1], &agent->connections.items[at],
            (agent->connections.count - at) * sizeof(agent->connections.items[0]));
    agent->connections.items[at] = (struct agent_connection){ number, worker };
    agent->connections.count++;
    worker->connected = true;
    worker->connection = number;
}

void agent_roster_disconnect(struct agent *agent, struct agent_worker *worker)
{
    size_t at = connection_place(agent, worker->connection);

    ASSERT(worker->connected && agent->connections.items[at].worker == worker);
    agent->connections.count--;
    memmove(&agent->connections.items[at], &agent->connections.items[at + 1],
            (agent->connections.count - at) * sizeof(agent->connections.items[0]));
    worker->connected = false;
}

void agent_roster_release(struct agent *agent)
{
    for (size_t i = 0; i < agent->workers.count; i++)
        destroy(agent, agent->workers.items[i]);
    VEC_RELEASE(&agent->workers);
    VEC_RELEASE(&agent->connections);
}
