/*
 * catalog.c: lookups in the table of messages, which generate.awk makes from PROTOCOL.md. Called
 * for every frame that is sent or received. A message that the table does not allow on a connection
 * never reaches a core.
 */
#include "proto/catalog.h"

static const struct msg_kind kinds[] = {
#define KIND(NAME, name, Name, links, keys, when, body_max) \
    { MSG_##NAME, #NAME, (links), (keys), (when), (body_max) },
    MSG_CATALOG(KIND, KIND)
#undef KIND
};

const struct msg_kind *msg_kind(unsigned type)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if ((unsigned)kinds[i].type == type)
            return &kinds[i];
    }
    return NULL;
}

/* true: the message came after minor 0 of the protocol, so a receiver that does not know it skips
 * the frame. */
bool msg_may_be_skipped(unsigned type)
{
    return type == MSG_UNUSABLE || type == MSG_REMARK || type == MSG_PERSIST ||
           type == MSG_PERSISTED || type == MSG_STORE || type == MSG_STORED ||
           type == MSG_AUTOPSY || type == MSG_EXAMINE;
}

const struct msg_kind *msg_kind_at(size_t i)
{
    return i < ARRAY_SIZE(kinds) ? &kinds[i] : NULL;
}

/* Returns the direction of a connection in words, for the errors of msg_allowed. */
static const char *link_name(enum link link)
{
    switch (link) {
    case LINK_AGENT_TO_DRIVER: return "an agent to the driver";
    case LINK_DRIVER_TO_AGENT: return "the driver to an agent";
    case LINK_WORKER_TO_AGENT: return "a worker to its agent";
    case LINK_AGENT_TO_WORKER: return "an agent to its worker";
    case LINK_CLIENT_TO_DRIVER: return "a client to the driver";
    case LINK_DRIVER_TO_CLIENT: return "the driver to a client";
    case LINK_CLIENT_TO_AGENT: return "a client to an agent";
    case LINK_AGENT_TO_CLIENT: return "an agent to a client";
    case LINK_PULLER_TO_HOLDER: return "an agent that fetches a commit to an agent that holds it";
    case LINK_HOLDER_TO_PULLER: return "an agent that holds a commit to an agent that fetches it";
    }
    return "an unknown link";
}

/* Checks that a message of this type may travel on this link, and at this moment (`now`: during the
 * greeting or after it). HVD_E_PROTO: it may not. */
int msg_allowed(unsigned type, enum link link, enum msg_when now, struct hvd_err *err)
{
    const struct msg_kind *kind = msg_kind(type);

    if (!kind)
        return err_set(err, HVD_E_PROTO, MSG_UNKNOWN, type);
    if (!(kind->links & (unsigned)link))
        return err_set(err, HVD_E_PROTO,
                       "the message %s may not go from %s; install the same version of "
                       "hvd-elastic on both sides",
                       kind->name, link_name(link));
    if (!(kind->when & (unsigned)now))
        return err_set(err, HVD_E_PROTO,
                       "%s %s; install the same version of hvd-elastic on both sides", kind->name,
                       now == WHEN_GREETING ? "came before the greeting was over"
                                            : "came after the greeting");
    return 0;
}
