/*
 * loop_commits.c: the commits of workers: their memory, and the thread that serves and fetches
 * commits. Called by loop.c and loop_actions.c, and by the connections of workers
 * (workers_link_ops). Invariant: when a worker gets the memory of its slot, the thread writes
 * nothing for earlier workers of that slot any more.
 */
#include "agent/io/loop_internal.h"

#include "os/clock.h"
#include "wire/address.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The thread that moves commits has the result of a FETCH: the worker that asked gets it. */
static void commits_on_fetched(void *arg, uint64_t requester, const struct msg *fetched)
{
    struct agent_loop *loop = arg;

    workers_link_fetched(loop->workers, requester, fetched);
}

static const struct state_ops state_ops = { commits_on_fetched };

/* Makes the table of snapshots and the thread that moves commits. Its TLS settings begin without a
 * key (NULL): the driver sends a key for each round. */
int loop_commits_create(struct agent_loop *loop, struct hvd_err *err)
{
    struct state_config config = { .key_us = LIMIT_STATE_KEY_US, .host = loop->config.core.host };
    int rc = snapshots_create(&loop->snapshots, err);

    if (!rc)
        rc = tls_create("", NULL, &loop->state_tls, err);
    config.tls = loop->state_tls;
    config.snapshots = loop->snapshots;
    return rc ? rc : state_thread_start(loop->base, &config, &state_ops, loop, &loop->state, err);
}

/* Stops the thread first, because it uses the TLS settings and the snapshots. */
void loop_commits_release(struct agent_loop *loop)
{
    state_thread_stop(loop->state);
    loop->state = NULL;
    tls_free(loop->state_tls);
    loop->state_tls = NULL;
    snapshots_free(loop->snapshots);
    loop->snapshots = NULL;
}

/* Serves commits on the address from which this host reaches the driver, because other agents can
 * reach this address; or on the address that the operator has given. If that one belongs to another
 * machine, which translates it (NAT), the agent listens on its own and announces the other one. */
void loop_commits_driver_up(struct agent_loop *loop)
{
    const char *given = loop->config.address;
    char host[ADDRESS_TEXT_MAX];

    snapshots_tidy(loop->snapshots, clock_now_us());
    if (given && address_is_own(given))
        state_thread_listen(loop->state, given);
    else if (!driver_link_local_host(loop->driver, host))
        state_thread_listen(loop->state, host);
}

/* Gives the key of a round to the thread that moves commits. A STATE_KEY without a key means that
 * no commit is fetched in that round. */
void loop_commits_key(struct agent_loop *loop, const struct msg *msg)
{
    const struct msg_bytes *key = &msg->u.state_key.key;

    if (key->length == STATE_KEY_BYTES)
        state_thread_key(loop->state, msg->round, key->at);
    else
        log_warning(STATE, "round %" PRIu64 ": the driver has sent no key, so no commit is fetched",
                    msg->round);
}

/* Writes the address where other agents find the commits that this one serves: the host that the
 * operator has given, with the port of the listener. Returns `text`; NULL: it serves none. */
const char *loop_commits_address(struct agent_loop *loop, char text[STATE_CONTACT_MAX])
{
    const char *address = state_thread_address(loop->state), *given = loop->config.address;
    bool six = given && strchr(given, ':');

    if (!address)
        return NULL;
    if (given)
        snprintf(text, STATE_CONTACT_MAX, STATE_ADDRESS_KIND "%s%s%s%s", six ? "[" : "", given,
                 six ? "]" : "", strrchr(address, ':'));
    else
        snprintf(text, STATE_CONTACT_MAX, STATE_ADDRESS_KIND "%s", address);
    return text;
}

/* Sends a worker its welcome, with the address where this agent serves commits; if that is not the
 * one on which this host listens, also with this one. Without such an address the list of addresses
 * is empty. */
int loop_commits_welcome(struct agent_loop *loop, uint32_t worker, const struct msg *msg,
                         struct hvd_err *err)
{
    char text[STATE_CONTACT_MAX], here[STATE_CONTACT_MAX];
    const char *address = state_thread_address(loop->state);
    const char *texts[] = { loop_commits_address(loop, text), here };
    struct msg welcome = *msg;
    size_t count = texts[0] ? 1 : 0;

    if (count && strcmp(text + strlen(STATE_ADDRESS_KIND), address) != 0) {
        snprintf(here, sizeof(here), "here=%s", address);
        count++;
    }
    welcome.u.welcome_worker.addresses = (struct msg_texts){ texts, count };
    return workers_link_send(loop->workers, worker, &welcome, err);
}

/* A worker asks for the memory of its commits (SNAPSHOT): gives the descriptor of the snapshot of
 * its slot. */
int loop_commits_snapshot(void *arg, uint64_t incarnation, const struct msg_snapshot *wanted,
                          int *ret_fd, struct hvd_err *err)
{
    struct agent_loop *loop = arg;
    const struct started *started = loop_started(loop, incarnation);
    const struct snapshot_shape shape = {
        .manifest = wanted->manifest,
        .replicated_bytes = wanted->replicated_bytes,
        .bytes = wanted->bytes,
    };

    if (!started)
        return err_set(err, HVD_E_NOTFOUND,
                       "no worker with incarnation %" PRIu64 " runs on this host", incarnation);
    return snapshots_grant(loop->snapshots, started->slot, incarnation, &shape, ret_fd, err);
}

/* Starts a FETCH of a worker. A FETCH of a worker that has ended meanwhile is dropped. */
void loop_commits_fetch(void *arg, uint64_t requester, const struct msg *msg)
{
    struct agent_loop *loop = arg;
    const struct started *started = loop_started(loop, msg->incarnation);

    if (started && state_thread_fetch(loop->state, requester, started->slot, msg))
        loop_give_up(loop, HVD_E_NOMEM, "a fetch cannot begin");
}

/* The connection of a worker that may have a FETCH under way is closed: the fetch is abandoned. At
 * the end of the agent the thread may be gone before the connections. */
void loop_commits_hung_up(void *arg, uint64_t requester)
{
    struct agent_loop *loop = arg;

    if (loop->state)
        state_thread_forget(loop->state, requester);
}
