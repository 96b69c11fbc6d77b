/*
 * authority.c: decides which messages of an agent are believed (PROTOCOL.md, "What an agent is
 * believed"). agents.c asks before it gives a message to its handler, hello.c before it accepts a
 * hello. There are three answers: the message is believed; the message is dropped, because it is
 * about another host or about a number that no driver gave; the connection is closed, because no
 * honest agent sends such a message. A refused message changes nothing in the core.
 */
#include "driver/core/authority.h"

#include "discovery/hosts.h"
#include "driver/core/elect.h"
#include "driver/core/roster.h"
#include "driver/core/tell.h"
#include "proto/catalog.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#define REFUSALS_WINDOW_US (10 * TIME_S)
#define REFUSALS_BURST     3
#define PORT_MAX           65535

/* Logs `what` about a host, at most REFUSALS_BURST lines in REFUSALS_WINDOW_US; `limit` counts
 * them. The next line that is logged says how many were left out before it (`unlogged`). */
static void authority_log(struct core *core, const struct core_host *host, struct log_limit *limit,
                          const char *what)
{
    unsigned unlogged;

    limit->window_us = REFUSALS_WINDOW_US;
    limit->burst = REFUSALS_BURST;
    if (!log_limit_pass(limit, core->now_us, &unlogged))
        return;
    if (unlogged)
        CORE_WARN(core, FACTS(.kind = KIND_MESSAGE_REFUSED, .host = host->name, .cause = what),
                  "%s: %s; %u more such messages were not logged", host->name, what, unlogged);
    else
        CORE_WARN(core, FACTS(.kind = KIND_MESSAGE_REFUSED, .host = host->name, .cause = what),
                  "%s: %s", host->name, what);
}

/* Logs that a statement of this host's agent is refused, for the reason `what`. The caller drops
 * the statement. */
void authority_refuse(struct core *core, struct core_host *host, const char *what)
{
    authority_log(core, host, &host->limits.refusals,
                  tell_text(core, "a statement of this host's agent is refused: %s", what));
}

/* Logs that a message about the worker `incarnation` came after the worker's end (PROTOCOL.md, K2).
 * The caller drops the message. */
void authority_note_late(struct core *core, struct core_host *host, uint64_t incarnation)
{
    authority_log(
        core, host, &host->limits.late,
        tell_text(core, "a message about worker #%" PRIu64 " was dropped: that worker has ended",
                  incarnation));
}

/* Returns why no agent can know a round with this number; NULL: an agent may know it. PROTOCOL.md,
 * "Durable before visible": no agent is told of a round whose number is not in the journal. */
static const char *authority_judge_round(struct core *core, uint64_t round)
{
    if (round <= core->rounds.told)
        return NULL;
    return tell_text(core,
                     "the agent names round %" PRIu64
                     ", but no agent has been told of a round after %" PRIu64 "",
                     round, core->rounds.told);
}

/* True: `address`, up to its end or a slash, is an IP address and a port in their usual spelling;
 * an IPv6 address stands in brackets. Each address has one usual spelling, so equal addresses have
 * equal texts. */
static bool authority_is_address(const char *address)
{
    unsigned char ip[sizeof(struct in6_addr)];
    char host[INET6_ADDRSTRLEN], usual[INET6_ADDRSTRLEN];
    size_t length = strcspn(address, "/"), digits;
    const char *colon = memrchr(address, ':', length), *zone = NULL;
    bool is_v6 = colon && colon - address > 2 && address[0] == '[' && colon[-1] == ']';
    uint32_t port = 0;

    digits = colon ? strspn(colon + 1, "0123456789") : 0;
    for (size_t i = 1; i <= digits && port <= PORT_MAX; i++)
        port = port * 10 + (uint32_t)(colon[i] - '0');
    /* The port reaches to the end of the address, and has no 0 in front. */
    if (!colon || colon[1] == '0' || !port || port > PORT_MAX ||
        colon + 1 + digits != address + length)
        return false;
    /* From here on `address` and `length` are the IP address alone, without port and brackets. */
    length = (size_t)(colon - address) - (is_v6 ? 2 : 0);
    address += is_v6;
    /* An IPv6 link-local address ends in '%' and the name of a network interface. This zone is not
     * empty, and has no bracket: the bracket that ends the address is the only one. */
    if (is_v6)
        zone = memchr(address, '%', length);
    if (zone && (zone + 1 == address + length || memchr(address, ']', length)))
        return false;
    length = zone ? (size_t)(zone - address) : length;
    if (length >= sizeof(host))
        return false;
    memcpy(host, address, length);
    host[length] = '\0';
    return inet_pton(is_v6 ? AF_INET6 : AF_INET, host, ip) == 1 &&
           inet_ntop(is_v6 ? AF_INET6 : AF_INET, ip, usual, sizeof(usual)) && !strcmp(host, usual);
}

/* Returns the name of a host other than `except` whose agent has named the same contact
 * ("state=IP:PORT", where an agent serves commits); NULL: no other host's agent has. */
static const char *authority_find_owner(const struct core *core, const struct core_host *except,
                                        const char *contact)
{
    /* contacts are compared up to a slash, behind which a secret may stand */
    size_t length = strcspn(contact, "/");

    for (size_t i = 0; i < core->roster.hosts.count; i++) {
        const struct core_host *host = core->roster.hosts.items[i];

        if (host == except || (host->agent != AGENT_THERE && host->agent != AGENT_AWAY))
            continue;
        for (size_t k = 0; k < host->addresses.count; k++) {
            const char *other = host->addresses.items[k];

            if (strcspn(other, "/") == length && !strncmp(other, contact, length))
                return host->name;
        }
    }
    return NULL;
}

/*
 * Judges the contacts of a READY or of a hello: the addresses at which other hosts reach the worker
 * and its agent. *ret_absurd is set as in authority_believes. A contact that another host's agent
 * has named before is logged, and counts for both hosts: the driver cannot know which of the two
 * agents lies. If only the first counted, a liar could name another host's address first and so
 * exclude that host's worker. A lie costs little: a fetch that comes to an agent without the commit
 * goes on with the next source.
 */
void authority_judge_contacts(struct core *core, struct core_host *host,
                              const struct msg_texts *contacts, const char **ret_absurd)
{
    for (size_t i = 0; i < contacts->count && !*ret_absurd; i++) {
        const char *text = contacts->items[i], *address, *owner;
        /* "state=ADDRESS" is where the agent serves commits, "data=ADDRESS" where the worker is
         * reached. */
        bool serves_commits = !strncmp(text, "state=", strlen("state=")), judged = false;

        /* A contact that an earlier READY of this host has named was judged with that READY. */
        for (size_t k = 0; k < host->addresses.count && !judged; k++)
            judged = !strcmp(host->addresses.items[k], text);
        if (judged || (!serves_commits && strncmp(text, "data=", strlen("data=")) != 0))
            continue;
        address = strchr(text, '=') + 1;
        if (!authority_is_address(address))
            *ret_absurd =
                tell_text(core, "the agent's contact \"%.*s\" is not an IP address with a port",
                          (int)strcspn(address, "/"), address);
        owner = serves_commits && !*ret_absurd ? authority_find_owner(core, host, text) : NULL;
        if (owner)
            authority_log(core, host, &host->limits.refusals,
                          tell_text(core,
                                    "the agent of this host names the contact \"%s\", which the "
                                    "agent of %s has named, too",
                                    text, owner));
    }
}

/* Logs each commit of a round of which no agent was ever told. Such a commit comes from an agent
 * that invents commits, or from a damaged snapshot. elect.c ignores the commit; the rest of the
 * message counts. */
static void authority_judge_commits(struct core *core, struct core_host *host,
                                    const struct msg_held_list *held)
{
    for (size_t i = 0; i < held->count; i++)
        if (!elect_believes(core, held->items[i].commit))
            authority_refuse(core, host,
                             tell_text(core,
                                       "the agent names a commit of round %" PRIu64
                                       ", but no agent has been told of a round after %" PRIu64 "",
                                       COMMIT_ROUND_OF(held->items[i].commit), core->rounds.told));
}

/* Decides whether a message of the host's agent is handled. False: the message is dropped. Then
 * `why` was logged here, or *ret_absurd says why no honest agent sends such a message, and the
 * caller closes the connection. */
bool authority_believes(struct core *core, struct core_host *host, const struct msg *msg,
                        const char **ret_absurd)
{
    const struct worker *worker = roster_worker(core, msg->incarnation);
    const char *name = msg_kind(msg->type)->name, *why = authority_judge_round(core, msg->round);
    /* The table may have a DOOMED worker on the wrong host, because of a hello that lied (hello.c).
     * The worker is dead in any case, so its EXITED is believed of each agent, and agents.c only
     * answers FORGET. */
    bool ends_doomed = worker && worker->state == WORKER_DOOMED && msg->type == MSG_EXITED;

    *ret_absurd = NULL;
    if (!why && worker && worker->host != host && !ends_doomed)
        why = tell_text(core, "the agent sends %s about worker #%" PRIu64 ", which runs on %s",
                        name, msg->incarnation, worker->host->name);
    else if (!why && msg->incarnation > core->roster.incarnations)
        why = tell_text(core,
                        "the agent sends %s about worker #%" PRIu64 ", which was never launched",
                        name, msg->incarnation);
    else if (!why && worker && msg->type == MSG_READY)
        authority_judge_contacts(core, host, &msg->u.ready.addresses, ret_absurd);
    /* `check` is UINT64_MAX when the worker comes to no further check. */
    if (!why && msg->type == MSG_PERSIST)
        why = authority_judge_round(core, COMMIT_ROUND_OF(msg->u.persist.commit));
    if (!why && worker && msg->type == MSG_NEXT_CHECK && msg->u.next_check.check > LIMIT_CHECKS &&
        msg->u.next_check.check != UINT64_MAX)
        *ret_absurd =
            tell_text(core,
                      "worker #%" PRIu64 " says that its next check is %" PRIu64
                      "; the greatest possible check is %" PRIu64
                      " (LIMIT_CHECKS); install the same version of hvd-elastic on its host",
                      msg->incarnation, msg->u.next_check.check, LIMIT_CHECKS);
    if (why)
        authority_refuse(core, host, why);
    if (why || *ret_absurd)
        return false;
    if (msg->type == MSG_READY)
        authority_judge_commits(core, host, &msg->u.ready.held);
    if (msg->type == MSG_RECOVERING)
        authority_judge_commits(core, host, &msg->u.recovering.held);
    return true;
}

/* True: the driver uses what a BEAT of this host's agent says of the worker `incarnation`, because
 * the worker runs on this host. False: that part of the BEAT is left out. A false statement is
 * logged; one about a worker that has ended is not, because the agent may not know of the end
 * yet. */
bool authority_believes_beat(struct core *core, struct core_host *host, uint64_t incarnation)
{
    const struct worker *worker = roster_worker(core, incarnation);

    if (worker && worker->host == host)
        return true;
    if (worker || incarnation > core->roster.incarnations)
        authority_refuse(core, host,
                         tell_text(core, "the agent's BEAT names worker #%" PRIu64 ", which %s %s",
                                   incarnation, worker ? "runs on" : "was never",
                                   worker ? worker->host->name : "launched"));
    return false;
}

/* Returns why the HELLO_AGENT of an agent is refused; NULL: it is accepted. event->host is the host
 * whose key the connection has proved, event->key_version the number of that key (0: the version is
 * not checked). */
const char *authority_judge_hello(struct core *core, const struct event *event)
{
    const struct msg_hello_agent *hello = &event->msg->u.hello_agent;
    const struct core_host *host = roster_find_host(core, event->host);
    struct hvd_err err;
    const char *why = NULL;

    if (strcmp(hello->job, core->config.job) != 0)
        return "the agent belongs to another job";
    if (host_name_check(hello->host, strlen(hello->host), &err))
        return tell_text(core, "the agent's host name is not valid: %s", err.text);
    if (strcmp(hello->host, event->host) != 0)
        return tell_text(core, "the agent says that its host is %s, but has the key of host %s",
                         hello->host, event->host);
    /* The host's key may have been ended after the handshake of this connection. */
    if (event->key_version &&
        (!host || (event->key_version != host->key.version && event->key_version != host->key.old)))
        return "the agent's key is no longer valid: the host has left the job, or has a newer key";
    /* PROTOCOL.md, REKEY: during a change of keys the old key is good only for the agent process
     * that had it before. Another process with the old key may have stolen it on that host. */
    if (event->key_version && event->key_version == host->key.old && host->agent_id &&
        host->agent_id != hello->agent && (host->agent == AGENT_THERE || host->agent == AGENT_AWAY))
        return "the agent has the old key of its host, but another agent process was given that "
               "key";
    if (!hello->agent)
        return "the agent does not say which start of the agent this is";
    for (size_t i = 0; i < hello->slots.count && !why; i++) {
        const struct msg_slot_report *report = &hello->slots.items[i];
        const struct worker *worker = roster_worker(core, report->incarnation);

        if (!report->incarnation || report->incarnation > core->roster.incarnations)
            return tell_text(core,
                             "the agent reports worker #%" PRIu64 ", which was never launched",
                             report->incarnation);
        /* The driver may know a DOOMED worker only from a false hello of another host. So this
         * hello is not refused, and hello.c has the worker killed. */
        if (worker && worker->state != WORKER_DOOMED &&
            (strcmp(worker->host->name, hello->host) != 0 || worker->slot != report->slot))
            return tell_text(core,
                             "the agent reports worker #%" PRIu64
                             ", which runs in another slot or on another host",
                             report->incarnation);
        why = authority_judge_round(core, report->round);
    }
    return why;
}
