/*
 * keys.c: gives, changes and ends the keys of hosts; an agent needs a key of its host for each
 * connection to the driver. A version is the number of a key. slots.c, lease.c, agents.c and
 * listing.c start agents through this file. hello.c and agents.c tell it which key an agent has.
 * core.c brings an operator's request for new keys; core.c and listing.c let it end keys.
 * Invariants: a version is given to one host, once; a host has at most two keys; the journal has a
 * version before any process hears of it.
 */
#include "driver/core/keys.h"

#include "driver/core/authority.h"
#include "driver/core/roster.h"
#include "driver/core/step.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAMES_SHOWN 4 /* the most hosts without their new key that an operator is told by name */

/* Writes a change of the host's keys to the journal: `code` says what the host has from now on
 * (enum journal_key), and `version` names its newest key. */
static void keys_record(struct core *core, const struct core_host *host, uint32_t version,
                        enum journal_key code)
{
    struct journal_record *record = tell_record(core, JOURNAL_KEY);

    record->host = tell_text(core, "%s", host->name);
    record->value = (int32_t)version;
    record->code = (int32_t)code;
}

/* Gives the host a key with a version that no host had. The key before stays valid until
 * keys_end_old. */
static void keys_give(struct core *core, struct core_host *host)
{
    host->key =
        (struct core_host_key){ .version = ++core->roster.keys.versions, .old = host->key.version };
    keys_record(core, host, host->key.version, HOST_KEY_MORE);
    tell_key(core, host, host->key.version, true /* the key is accepted */);
}

/* Ends the old key of the host: from now on the host has only its newest key. */
static void keys_end_old(struct core *core, struct core_host *host)
{
    if (!host->key.old)
        return;
    keys_record(core, host, host->key.version, HOST_KEY_ONLY);
    tell_key(core, host, host->key.old, false /* the key is refused */);
    host->key.old = 0;
    host->key.told_us = 0;
    /* one host less for the change of keys to wait for */
    if (core->roster.keys.left)
        core->roster.keys.left--;
}

/* Asks for the start of an agent on the host, which gets the host's newest key; a host without a
 * key gets one first. */
void keys_start_agent(struct core *core, struct core_host *host)
{
    if (!host->key.version)
        keys_give(core, host);
    /* In the state STARTING the earlier agent of the host counts as dead. After `met_us` no agent
     * of an earlier driver can still come with the old key, so the old key is not needed. */
    if (host->agent == AGENT_STARTING && core->now_us >= core->roster.keys.met_us)
        keys_end_old(core, host);
    tell_start_agent(core, host);
}

/* Ends the keys of hosts that have left the job: not listed, without workers (`taken`) and without
 * an agent. An agent that comes from such a host later does not get past the handshake, so the
 * commits that the agent keeps are out of reach: recovery.c must not wait for them. */
void keys_reconcile(struct core *core)
{
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (!host->key.version || host->listed || host->taken ||
            (host->agent != AGENT_NONE && host->agent != AGENT_STARTING))
            continue;
        CORE_TRACE(core, FACTS(.kind = KIND_KEY_ENDED, .host = host->name),
                   "%s: this host has left the job, and its key is no longer accepted", host->name);
        keys_end_old(core, host);
        keys_record(core, host, 0, HOST_KEY_NONE);
        tell_key(core, host, host->key.version, false /* the key is refused */);
        host->key = (struct core_host_key){ 0 };
        for (uint32_t slot = 0; slot < host->slot_count; slot++)
            host->slots[slot].commit = 0;
    }
}

/* ---- new keys while the job runs ------------------------------------------------------------- */

/* Sends REKEY (PROTOCOL.md): the agent gets the host's newest key over its present connection.
 * The time of the first REKEY with this key is kept in `told_us`, because the agent's time to
 * answer counts from then on. */
static void keys_tell(struct core *core, struct core_host *host)
{
    struct msg *msg = tell_msg(core, MSG_REKEY, 0, 0);

    if (!host->key.told_us)
        host->key.told_us = core->now_us;
    /* the message has only the version: driver/io adds the key itself */
    msg->u.rekey.epoch = host->key.version;
    tell_host(core, host, msg);
}

/* Returns how many hosts have a new key, and the names of some that still have an old one (`left`
 * is not 0): "a, b and 7 more". */
static const char *keys_progress(struct core *core)
{
    const struct core_keys *keys = &core->roster.keys;
    char names[LIMIT_REASON_BYTES / 2], more[32] = "";
    size_t used = 0, shown = 0;

    names[0] = '\0';
    for (size_t i = 0; i < core->roster.hosts.count && shown < NAMES_SHOWN; i++) {
        const struct core_host *host = core->roster.hosts.items[i];
        size_t room = sizeof(names) - used;

        if (!host->key.old)
            continue;
        if (strlen(host->name) + 3 > room)
            break;
        used += (size_t)snprintf(names + used, room, "%s%s", shown++ ? ", " : "", host->name);
    }
    if (shown < keys->left)
        snprintf(more, sizeof(more), "%s%zu more", shown ? " and " : "", keys->left - shown);
    return tell_text(core, "hosts with a new key: %zu of %zu; still to come: %s%s",
                     keys->hosts - keys->left, keys->hosts, names, more);
}

/* Handles an operator's request for new keys. Each host that has a key gets a new one (keys_give),
 * and a connected agent is told it now; an agent that is away is told when it connects
 * (keys_greet). The operator gets one answer. */
void keys_on_rekey(struct core *core, const struct event *event)
{
    struct core_keys *keys = &core->roster.keys;

    if (core->job >= JOB_STOPPING) {
        tell_reply(core, event->ask, HVD_E_STATE,
                   "the job is ending, and all its keys end with the job");
        return;
    }
    if (keys->changing) {
        tell_reply(core, event->ask, 0,
                   tell_text(core, "the keys are being changed already: %s", keys_progress(core)));
        return;
    }
    if (keys->versions > LIMIT_KEY_EPOCHS - core->roster.hosts.count) {
        tell_reply(
            core, event->ask, HVD_E_LIMIT,
            tell_text(core,
                      "the job has made %" PRIu32
                      " keys, and a job can make at most %d (LIMIT_KEY_EPOCHS); start the job anew",
                      keys->versions, LIMIT_KEY_EPOCHS));
        return;
    }
    keys->left = 0;
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (!host->key.version)
            continue;
        keys_give(core, host);
        host->key.until_us = time_add(core->now_us, core->config.driver_grace_us);
        keys->left++;
        if (host->agent == AGENT_THERE)
            keys_tell(core, host);
    }
    keys->changing = true;
    keys->hosts = keys->told = keys->left;
    keys->look_us = core->now_us;
    CORE_TRACE(core, FACTS(.kind = KIND_KEYS_CHANGING),
               "an operator wants new keys; hosts that get one: %zu", keys->hosts);
    tell_reply(core, event->ask, 0, tell_text(core, "hosts that get a new key: %zu", keys->hosts));
}

/* An agent was welcomed; it has dialled with the key of this `version`. During a change of keys:
 * the newest key ends the old one, and an agent with another key is sent the newest. */
void keys_greet(struct core *core, struct core_host *host, uint64_t version)
{
    if (!host->key.old)
        return;
    if (version == host->key.version)
        keys_end_old(core, host);
    else
        keys_tell(core, host);
}

/* Handles REKEYED: the agent of the host has the key of this `version`. If that is the newest key,
 * the old one is not needed any more. A REKEYED about an older key came too late. */
void keys_on_rekeyed(struct core *core, struct core_host *host, uint64_t version)
{
    if (version > host->key.version)
        authority_refuse(core, host,
                         tell_text(core,
                                   "the agent says that it has version %" PRIu64
                                   " of its host's key, but the host was never given this version",
                                   version));
    else if (version == host->key.version)
        keys_end_old(core, host);
}

/* True: the time of the host's old key is over. False: *due_us becomes this time, if it is earlier
 * than *due_us. A time that is over never becomes *due_us: the key ends now, so no timer is needed
 * for it. */
static bool keys_is_over(struct core *core, const struct core_host *host, int64_t *due_us)
{
    int64_t until_us = host->key.until_us, answer_us = TIME_NEVER;

    /* If no agent runs on the host, the old key is over at met_us: by then a driver that has taken
     * over has met all agents. An agent that is away or starting becomes AGENT_NONE at the end of
     * its lease or of its time to start (lease.c). */
    if (host->agent == AGENT_NONE && core->roster.keys.met_us < until_us)
        until_us = core->roster.keys.met_us;
    if (host->agent == AGENT_THERE && host->key.told_us)
        answer_us = time_add(host->key.told_us, core->config.lease_us);
    if (core->now_us >= answer_us)
        CORE_WARN(core, FACTS(.kind = KIND_KEY_ENDED, .host = host->name),
                  "%s: the agent of this host does not say that it has the new key; the old key is "
                  "no longer accepted, and if the connection breaks, the driver starts a new agent",
                  host->name);
    if (answer_us < until_us)
        until_us = answer_us;
    if (core->now_us >= until_us)
        return true;
    if (*due_us > until_us)
        *due_us = until_us;
    return false;
}

/* Called in each step while keys are changed: ends old keys whose time is over, and tells operators
 * how many hosts still have one. Between two looks at the hosts at most one heartbeat interval
 * passes. */
void keys_look(struct core *core)
{
    struct core_keys *keys = &core->roster.keys;
    const char *over;

    if (!keys->changing || core->job >= JOB_STOPPING)
        return;
    if (keys->left && core->now_us < keys->look_us) {
        core_want_timer(core, keys->look_us);
        return;
    }
    keys->left = 0;
    keys->look_us = time_add(core->now_us, core->config.beat_us);
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (!host->key.old)
            continue;
        /* counted as a host with an old key; keys_end_old subtracts it if the key ends now */
        keys->left++;
        if (keys_is_over(core, host, &keys->look_us))
            keys_end_old(core, host);
    }
    if (keys->left) {
        core_want_timer(core, keys->look_us);
        if (keys->left != keys->told)
            tell_rekeying(core, keys_progress(core), false /* the renewal goes on */);
        keys->told = keys->left;
        return;
    }
    keys->changing = false;
    over = tell_text(core, "hosts with a new key: %zu; the old keys are no longer accepted",
                     keys->hosts);
    CORE_TRACE(core, FACTS(.kind = KIND_KEYS_CHANGED), "%s", over);
    tell_rekeying(core, over, true /* the renewal is over */);
}

/* ---- a takeover from an earlier driver ------------------------------------------------------- */

/* Restores the keys of a host from a JOURNAL_KEY record. False: the record is impossible.
 * HOST_KEY_MORE: the host got a further key; HOST_KEY_ONLY: its old key ended; HOST_KEY_NONE: it
 * has no key any more. */
bool keys_replay(struct core *core, const struct journal_record *record)
{
    struct core_host *host;
    uint32_t version = (uint32_t)record->value;

    if (record->code < HOST_KEY_NONE || record->code > HOST_KEY_ONLY || record->value < 0 ||
        host_name_check(record->host, strlen(record->host), NULL))
        return false;
    if (record->code == HOST_KEY_MORE && version <= core->roster.keys.versions)
        return true; /* the record was read before */
    host = roster_host(core, record->host);
    if (!host)
        return true;
    if (record->code == HOST_KEY_NONE) {
        host->key = (struct core_host_key){ 0 };
    } else if (record->code == HOST_KEY_MORE) {
        host->key = (struct core_host_key){ .version = version, .old = host->key.version };
        core->roster.keys.versions = version;
    } else if (version != host->key.version) {
        return false;
    } else {
        host->key.old = 0;
    }
    return true;
}

/* The driver starts. The keys that the journal names are admitted, and a change of keys that an
 * earlier driver began goes on. `met_us`: by then each agent that lives has dialled this driver. */
void keys_start(struct core *core)
{
    struct core_keys *keys = &core->roster.keys;
    int64_t lease_us = core->config.lease_us, start_us = core->config.agent_start_us;
    int64_t met_us = time_add(core->now_us, start_us > lease_us ? start_us : lease_us);

    keys->met_us = core->now_us; /* In a new job there are no agents of an earlier driver. */
    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        struct core_host *host = core->roster.hosts.items[i];

        if (host->key.old) {
            tell_key(core, host, host->key.old, true /* the key is accepted */);
            host->key.until_us = time_add(core->now_us, core->config.driver_grace_us);
            keys->left++;
        }
        if (host->key.version) {
            tell_key(core, host, host->key.version, true /* the key is accepted */);
            keys->met_us = met_us;
        }
    }
    if (!keys->left)
        return;
    keys->changing = true;
    keys->hosts = keys->told = keys->left;
    keys->look_us = core->now_us;
    CORE_TRACE(core, FACTS(.kind = KIND_KEYS_CHANGING),
               "an earlier driver began to change the keys; hosts with an old key: %zu",
               keys->left);
}
