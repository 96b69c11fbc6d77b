/* body_commits.c: the state of workers: its memory, and the thread that serves and fetches it. */
#include "agent/io/body_state.h"

#include "os/clock.h"

#include <stdio.h>

#define ADDRESS_KIND "state="

static void on_fetched(void *arg, uint64_t who, const struct msg *fetched)
{
    struct body *body = arg;

    workers_link_fetched(body->workers, who, fetched);
}

static const struct state_ops state_ops = { on_fetched };

int body_commits_create(struct body *body, struct hvd_err *err)
{
    int rc = snapshots_create(&body->snapshots, err);
    struct state_config config = {
        .tls = body->config.tls,
        .snapshots = body->snapshots,
        .host = body->config.mind.host,
    };

    if (rc)
        return rc;
    return state_thread_start(body->base, &config, &state_ops, body, &body->state, err);
}

void body_commits_release(struct body *body)
{
    state_thread_stop(body->state);
    body->state = NULL;
    snapshots_free(body->snapshots);
    body->snapshots = NULL;
}

struct started *body_started(const struct body *body, uint64_t incarnation)
{
    for (size_t i = 0; i < body->started.count; i++) {
        if (body->started.items[i].incarnation == incarnation)
            return &body->started.items[i];
    }
    return NULL;
}

void body_forget_started(struct body *body, uint64_t incarnation)
{
    struct started *started = body_started(body, incarnation);

    if (started)
        *started = body->started.items[body->started.count - 1];
    if (started)
        body->started.count--;
}

void body_commits_driver_up(struct body *body)
{
    char host[ADDRESS_TEXT_MAX];

    snapshots_tidy(body->snapshots, clock_now_us());
    if (!driver_link_local_host(body->driver, host))
        state_thread_listen(body->state, host);
}

int body_commits_welcome(struct body *body, uint32_t worker, const struct msg *msg,
                         struct hvd_err *err)
{
    const char *address = state_thread_address(body->state);
    char text[sizeof(ADDRESS_KIND) + ADDRESS_TEXT_MAX];
    const char *texts[] = { text };
    struct msg welcome = *msg;

    snprintf(text, sizeof(text), ADDRESS_KIND "%s", address ? address : "");
    welcome.u.welcome_worker.addresses = (struct msg_texts){ texts, address ? 1 : 0 };
    return workers_link_send(body->workers, worker, &welcome, err);
}

int body_commits_snapshot(void *arg, uint64_t incarnation, const struct msg_snapshot *wanted,
                          int *ret_fd, struct hvd_err *err)
{
    struct body *body = arg;
    const struct started *started = body_started(body, incarnation);
    const struct snapshot_shape shape = {
        .manifest = wanted->manifest,
        .replicated_bytes = wanted->replicated_bytes,
        .bytes = wanted->bytes,
    };

    if (!started)
        return err_set(err, HVD_E_NOTFOUND, "no such incarnation runs here");
    return snapshots_grant(body->snapshots, started->slot, incarnation, &shape, ret_fd, err);
}

void body_commits_fetch(void *arg, uint64_t who, const struct msg *msg)
{
    struct body *body = arg;
    const struct started *started = body_started(body, msg->incarnation);

    if (started && state_thread_fetch(body->state, who, started->slot, msg))
        body_give_up(body, HVD_E_NOMEM, "a fetch");
}

void body_commits_hung_up(void *arg, uint64_t who)
{
    struct body *body = arg;

    if (body->state)
        state_thread_forget(body->state, who);
}
