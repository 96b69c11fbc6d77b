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

/* Sends a message to the driver, in the greeting or after it, and puts off the next heartbeat. */
void agent_link_say(struct agent *agent, const struct msg *msg)
{
    ASSERT(agent->driver.state == DRIVER_GREETING || agent_link_is_open(agent));
    agent_do(agent, AGENT_DO_SEND_DRIVER)->msg = msg;
    /* Any frame renews the agent's lease at the driver (BEAT in PROTOCOL.md), so the next heartbeat
     * waits for one interval from now. It is sent at beat_by_us at the latest, because only a
     * heartbeat says how the workers are. */
    agent->link.beat_at_us = time_add(agent->now_us, agent->config.beat_us);
    if (agent->link.beat_at_us > agent->link.beat_by_us)
        agent->link.beat_at_us = agent->link.beat_by_us;
}

/* Sends a message to the driver after the welcome. Without a welcome the message is dropped: the
 * caller has kept what a later driver must hear. */
void agent_link_send(struct agent *agent, const struct msg *msg)
{
    if (agent_link_is_open(agent))
        agent_link_say(agent, msg);
}

/* Begins an attempt to connect to a driver: the event DRIVER_UP or DRIVER_DOWN follows. */
void agent_link_dial(struct agent *agent)
{
    sm_move(&agent->driver, DRIVER_DIALLING, agent->now_us, "an attempt");
    agent_do(agent, AGENT_DO_DIAL);
    /* no deadline is needed: the event loop reports a failed attempt with the event DRIVER_DOWN */
    agent->link.due_us = TIME_NEVER;
}

/* The connection to the driver is lost, or a dial has failed: sets the time of the next dial. The
 * first waits are short, because the successor of a driver that has died is there soon; each wait
 * is longer than the one before. If the agent was SERVING, it goes on without a driver until
 * `grace_at_us`. */
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

/* Closes the connection to the driver, or ends the attempt to connect. No DRIVER_DOWN follows, so
 * the loss is handled here. */
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

/* A message of the driver has come: the driver's lease now ends one lease from now. */
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

/* The first message of a driver sets `term`, so a term of 0 means that no driver has spoken. */
bool agent_was_never_welcomed(const struct agent *agent)
{
    return agent->life.state == LIFE_ALONE && !agent->link.term;
}
