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

bool msg_may_be_skipped(unsigned type)
{
    return type == MSG_USELESS || type == MSG_REMARK;
}

const struct msg_kind *msg_kind_at(size_t i)
{
    return i < ARRAY_SIZE(kinds) ? &kinds[i] : NULL;
}

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
    case LINK_PULLER_TO_HOLDER: return "an agent that pulls to one that holds";
    case LINK_HOLDER_TO_PULLER: return "an agent that holds to one that pulls";
    }
    return "an unknown link";
}

int msg_allowed(unsigned type, enum link link, enum msg_when now, struct hvd_err *err)
{
    const struct msg_kind *kind = msg_kind(type);

    if (!kind)
        return err_set(err, HVD_E_PROTO, "message %u is unknown", type);
    if (!(kind->links & (unsigned)link))
        return err_set(err, HVD_E_PROTO, "%s does not go from %s", kind->name, link_name(link));
    if (!(kind->when & (unsigned)now))
        return err_set(err, HVD_E_PROTO, "%s %s", kind->name,
                       now == WHEN_GREETING ? "before the greeting is over" : "after the greeting");
    return 0;
}
