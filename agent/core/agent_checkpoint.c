/*
 * agent_checkpoint.c: HOLD, SAVE and RELEASE of the driver, and their results. Called by
 * agent_driver.c for messages of the driver, and by agent.c for results. Invariant: a result goes
 * to the driver that asked, on the connection on which it asked, and only while its attempt is the
 * newest one.
 *
 * The numbers of attempts grow, also from one driver to the next (PROTOCOL.md, "Checkpoints"). So a
 * message that comes late or twice is known by its number.
 */
#include "agent/core/agent_handlers.h"

#include <inttypes.h>

/* Handles HOLD, SAVE or RELEASE of the driver: becomes an action if the message belongs to the
 * newest attempt at a checkpoint, else is ignored. */
void agent_checkpoint_msg(struct agent *agent, const struct msg *msg)
{
    struct agent_checkpoint *checkpoint = &agent->checkpoint;
    struct msg *answer;
    uint64_t number;

    switch ((unsigned)msg->type) {
    case MSG_HOLD:
        /* A HOLD ends all attempts before it. The same HOLD again is carried out again, because
         * its answer may be lost. */
        number = msg->u.hold.number;
        if (number < checkpoint->number || (number == checkpoint->number && checkpoint->over)) {
            trace_add(agent->trace, agent->now_us, "checkpoint %" PRIu64 ": a late HOLD: ignored",
                      number);
            return;
        }
        *checkpoint = (struct agent_checkpoint){ .number = number, .asked = true };
        agent_do(agent, AGENT_DO_HOLD)->msg = msg;
        break;
    case MSG_SAVE: /* a SAVE whose attempt had no HOLD here gets an error as its answer */
        if (msg->u.save.number > checkpoint->number) {
            answer = agent_msg(agent, MSG_SAVED, 0);
            answer->round = msg->round;
            answer->u.saved = (struct msg_saved){
                .number = msg->u.save.number,
                .name = agent_text(agent, "%s", msg->u.save.name),
                .code = HVD_E_STATE,
                .text = "the agent has got no HOLD for this attempt",
            };
            agent_link_send(agent, answer);
        } else if (msg->u.save.number < checkpoint->number || checkpoint->over) {
            trace_add(agent->trace, agent->now_us, "checkpoint %" PRIu64 ": a late SAVE: ignored",
                      msg->u.save.number);
        } else {
            checkpoint->asked = true;
            agent_do(agent, AGENT_DO_SAVE)->msg = msg;
        }
        break;
    case MSG_RELEASE:
        number = msg->u.release.number;
        if (number < checkpoint->number) {
            trace_add(agent->trace, agent->now_us,
                      "checkpoint %" PRIu64 ": a late RELEASE: ignored", number);
            return;
        }
        *checkpoint = (struct agent_checkpoint){ .number = number, .over = true };
        agent_do(agent, AGENT_DO_RELEASE)->msg = msg;
        break;
    default: PANIC("not a message of a checkpoint");
    }
}

/* A HOLD or SAVE was carried out: sends its result (HOLDING or SAVED) to the driver if that driver
 * still awaits it. The commits stay held in either case. */
void agent_checkpoint_result(struct agent *agent, const struct msg *result)
{
    const struct agent_checkpoint *checkpoint = &agent->checkpoint;
    uint64_t number =
        result->type == MSG_HOLDING ? result->u.holding.number : result->u.saved.number;
    struct msg *msg;

    ASSERT(result->type == MSG_HOLDING || result->type == MSG_SAVED);
    if (!checkpoint->asked || checkpoint->over || number != checkpoint->number ||
        !agent_link_is_open(agent)) {
        trace_add(agent->trace, agent->now_us,
                  "checkpoint %" PRIu64 ": a result that no driver awaits: dropped", number);
        return;
    }
    msg = agent_msg(agent, result->type, 0);
    msg->round = result->round;
    msg->u = result->u;
    agent_link_send(agent, msg);
}
