/*
 * agent_link.c: the agent's connection to its driver: dialled, greeted, open, lost. Called by all
 * files above that have a message for the driver. Invariant: a SERVING agent has an open
 * connection; when the connection is lost the agent is ALONE, and its grace time runs.
 */
#include "agent/core/agent_internal.h"

bool agent_link_is_open(const struct agent *agent)
{
    return agent->driver.state == DRIVER_OPEN;
}

void agent_link_say(struct agent *agent, const struct msg *msg)
{
    ASSERT(agent->driver.state == DRIVER_GREETING || agent_link_is_open(agent));
    agent_do(agent, AGENT_DO_SEND_DRIVER)->msg = msg;
    /* Any frame renews a lease (BEAT in PROTOCOL.md), so the next heartbeat can wait: for one more
     * interval (beat_by_us), as it says how the workers are. */
    agent->link.beat_at_us = time_add(agent->now_us, agent->config.beat_us);
    if (agent->link.beat_at_us > agent->link.beat_by_us)
        agent->link.beat_at_us = agent->link.beat_by_us;
}

void agent_link_send(struct agent *agent, const struct msg *msg)
{
    if (agent_link_is_open(agent))
        agent_link_say(agent, msg);
}

void agent_link_dial(struct agent *agent)
{
    sm_move(&agent->driver, DRIVER_DIALLING, agent->now_us, "an attempt");
    agent_do(agent, AGENT_DO_DIAL);
    /* no deadline is needed: a failed attempt ends in DRIVER_DOWN */
    agent->link.due_us = TIME_NEVER;
}

/* There is no connection any more, or a dial has failed: the next dial gets its time. If a driver
 * was serving, the agent goes on without one until `grace_at_us`. The successor of a driver that
 * has died is there soon, so the agent dials often in the beginning. */
void agent_link_lost(struct agent *agent, const char *why)
{
    sm_move(&agent->driver, DRIVER_DOWN, agent->now_us, why);
    agent->link.due_us = time_add(agent->now_us, agent->link.redial_us);
    agent->link.redial_us = time_add(agent->link.redial_us, agent->link.redial_us / 2);
    if (agent->link.redial_us > agent->config.redial_us)
        agent->link.redial_us = agent->config.redial_us;
    agent->link.beat_at_us = TIME_NEVER;
    agent->checkpoint.asked = false; /* a result is not sent on a later connection */
    if (agent->life.state != LIFE_SERVING)
        return;
    sm_move(&agent->life, LIFE_ALONE, agent->now_us, why);
    agent->grace_at_us = time_add(agent->now_us, agent->config.driver_grace_us);
}

void agent_link_hang_up(struct agent *agent, const char *why)
{
    agent_do(agent, AGENT_DO_HANG_UP)->text = agent_text(agent, "%s", why);
    agent_link_lost(agent, why);
}

/* Says BYE with the reason to the driver, then closes the connection. Does nothing when no
 * connection is open: no driver could read the BYE. */
void agent_link_bye(struct agent *agent, const char *why)
{
    struct msg *msg;

    if (agent->driver.state != DRIVER_GREETING && !agent_link_is_open(agent))
        return;
    msg = agent_msg(agent, MSG_BYE, 0);
    msg->u.bye.reason = agent_text(agent, "%s", why);
    agent_link_say(agent, msg);
    agent_link_hang_up(agent, why);
}

void agent_link_renew(struct agent *agent)
{
    agent->link.due_us = time_add(agent->now_us, agent->config.lease_us);
}

/* Sets when the agent ends because its first driver has not welcomed it: after the grace time for a
 * driver, but after LIMIT_FIRST_DRIVER_US at the latest. */
void agent_link_await_first(struct agent *agent)
{
    int64_t grace_us = agent->config.driver_grace_us;

    if (grace_us > LIMIT_FIRST_DRIVER_US)
        grace_us = LIMIT_FIRST_DRIVER_US;
    agent->grace_at_us = time_add(agent->now_us, grace_us);
}

bool agent_was_never_welcomed(const struct agent *agent)
{
    return agent->life.state == LIFE_ALONE && !agent->link.term;
}
