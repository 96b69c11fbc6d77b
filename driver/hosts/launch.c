#include "driver/hosts/launch.h"

#include "base/list.h"
#include "base/mem.h"
#include "discovery/hosts.h"
#include "driver/hosts/launch_text.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 1024

/*
 *     waiting ── its turn, and none for the host before it ──► running ──► done ── told ──► freed
 */
enum start_state { START_WAITING, START_RUNNING, START_DONE };

struct start {
    struct list link;    /* of launcher->starts[state] */
    struct list by_host; /* of its bucket */
    struct launcher *launcher;
    enum start_state state;
    char *host;
    bool local;
    char *input; /* holds the key */
    struct launch_words words;
    struct command_spec spec;
    struct command *command;
    bool worked;
    struct hvd_err failure;
};

struct launcher {
    struct event_base *base;
    struct launch_config config;
    struct launch_ops ops;
    void *arg;
    struct buf remote;
    struct list starts[START_DONE + 1];
    uint32_t running;
    struct event turn; /* something can be started, or told */
    struct list buckets[BUCKETS];
};

static struct list *bucket_of(struct launcher *launcher, const char *host)
{
    uint32_t hash = 2166136261u;

    for (; *host; host++)
        hash = (hash ^ (unsigned char)*host) * 16777619u;
    return &launcher->buckets[hash % BUCKETS];
}

static struct start *find(struct launcher *launcher, const char *host, enum start_state state)
{
    LIST_EACH (it, bucket_of(launcher, host)) {
        struct start *start = CONTAINER_OF(it, struct start, by_host);

        if (start->state == state && !strcmp(start->host, host))
            return start;
    }
    return NULL;
}

static void take_turn_soon(struct launcher *launcher)
{
    event_active(&launcher->turn, EV_TIMEOUT, 1);
}

static void set_state(struct start *start, enum start_state state)
{
    list_remove(&start->link);
    start->state = state;
    list_append(&start->launcher->starts[state], &start->link);
}

static void forget_text(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    mem_free(text);
}

static void start_free(struct start *start)
{
    if (!start)
        return;
    command_free(start->command);
    list_remove(&start->link);
    list_remove(&start->by_host);
    launch_words_release(&start->words);
    forget_text(start->input);
    mem_free(start->host);
    mem_free(start);
}

static struct start *start_make(struct launcher *launcher, const char *host, bool local,
                                const char *input)
{
    struct start *start = mem_zalloc(sizeof(*start));

    if (!start)
        return NULL;
    list_init(&start->link);
    list_init(&start->by_host);
    launch_words_init(&start->words);
    start->launcher = launcher;
    start->local = local;
    start->host = mem_strdup(host);
    start->input = mem_strdup(input);
    if (start->host && start->input)
        return start;
    start_free(start);
    return NULL;
}

static void ended(void *arg, const struct command_end *end)
{
    struct start *start = arg;
    struct launcher *launcher = start->launcher;

    start->worked = launch_worked(&start->spec, end, start->host, start->local, &start->failure);
    command_free(start->command);
    start->command = NULL;
    launcher->running--;
    set_state(start, START_DONE);
    take_turn_soon(launcher);
}

static int run(struct start *start)
{
    static const struct command_ops ops = { .ended = ended };
    struct launcher *launcher = start->launcher;
    const struct launch_config *config = &launcher->config;
    int rc = start->local
                 ? launch_local(config, &start->words)
                 : launch_ssh(config, start->host, buf_text(&launcher->remote), &start->words);

    if (rc)
        return err_set(&start->failure, rc, "%s: no agent is started: %s", start->host,
                       err_text(rc));
    start->spec = (struct command_spec){ .argv = start->words.argv.items,
                                         .input = start->input,
                                         .limit_us = config->limit_us,
                                         .linger_us = INT64_MAX,
                                         .dies_with_us = SIGTERM };
    rc = command_run(launcher->base, &start->spec, &ops, start, &start->command, &start->failure);
    if (rc)
        err_prefix(&start->failure, rc, "%s: no agent is started", start->host);
    return rc;
}

static void run_next(struct launcher *launcher)
{
    LIST_EACH_SAFE (it, after, &launcher->starts[START_WAITING]) {
        struct start *start = CONTAINER_OF(it, struct start, link);

        if (launcher->running >= launcher->config.parallel)
            return;
        if (find(launcher, start->host, START_RUNNING) || find(launcher, start->host, START_DONE))
            continue;
        if (run(start)) {
            set_state(start, START_DONE);
        } else {
            launcher->running++;
            set_state(start, START_RUNNING);
        }
    }
}

/* One a turn: its owner may free the launcher in there, so nothing of it is touched after that. */
static void tell_one(struct launcher *launcher)
{
    struct list *done = &launcher->starts[START_DONE];
    struct start *start;

    if (list_empty(done))
        return;
    start = CONTAINER_OF(done->next, struct start, link);
    list_remove(&start->link);
    list_remove(&start->by_host);
    take_turn_soon(launcher); /* the host is free for its next start */
    if (start->worked)
        launcher->ops.started(launcher->arg, start->host);
    else
        launcher->ops.failed(launcher->arg, start->host, start->failure.text);
    start_free(start);
}

static void turn(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    run_next(arg);
    tell_one(arg);
}

static int check(const struct launch_config *config, struct hvd_err *err)
{
    const char *key = config->ssh_identity_file;

    if (config->ssh_port > UINT16_MAX)
        return err_set(err, HVD_E_INVAL, "--ssh-port: there are ports from 1 to %d", UINT16_MAX);
    if (key && access(key, R_OK))
        return err_set(err, HVD_E_NOTFOUND, "%s: %s; name the key that ssh is to use", key,
                       strerror(errno));
    if (config->agent_path && !*config->agent_path)
        return err_set(err, HVD_E_INVAL, "--agent-path: empty; name the agent's path over there");
    return 0;
}

int launch_create(struct event_base *base, const struct launch_config *config,
                  const struct launch_ops *ops, void *arg, struct launcher **ret_launcher,
                  struct hvd_err *err)
{
    struct launcher *launcher;
    int rc = check(config, err);

    if (rc)
        return rc;
    launcher = mem_zalloc(sizeof(*launcher));
    if (!launcher)
        return err_set(err, HVD_E_NOMEM, "no memory to start agents");
    launcher->base = base;
    launcher->config = *config;
    if (launcher->config.parallel == 0)
        launcher->config.parallel = 1;
    launcher->ops = *ops;
    launcher->arg = arg;
    for (size_t i = 0; i < ARRAY_SIZE(launcher->starts); i++)
        list_init(&launcher->starts[i]);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&launcher->buckets[i]);
    event_assign(&launcher->turn, base, -1, 0, turn, launcher);
    buf_init(&launcher->remote, (size_t)8 * LIMIT_PATH_BYTES);
    rc = launch_remote(config, &launcher->remote);
    if (rc) {
        launch_free(launcher);
        return err_set(err, rc, "the agent's path on other hosts: %s", err_text(rc));
    }
    *ret_launcher = launcher;
    return 0;
}

void launch_free(struct launcher *launcher)
{
    if (!launcher)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(launcher->starts); i++)
        LIST_EACH_SAFE (it, after, &launcher->starts[i])
            start_free(CONTAINER_OF(it, struct start, link));
    event_del(&launcher->turn);
    buf_release(&launcher->remote);
    mem_free(launcher);
}

/* The one that waits takes over what the new one was to say. */
static int renew(struct start *start, bool local, const char *input)
{
    char *copy = mem_strdup(input);

    if (!copy)
        return HVD_E_NOMEM;
    forget_text(start->input);
    start->input = copy;
    start->local = local;
    return 0;
}

int launch_start(struct launcher *launcher, const char *host, bool local, const char *input,
                 struct hvd_err *err)
{
    struct start *start = find(launcher, host, START_WAITING);
    int rc = host_name_check(host, strlen(host), err);

    if (rc)
        return rc;
    if (start) {
        rc = renew(start, local, input);
        return rc ? err_set(err, rc, "%s: no memory to start an agent", host) : 0;
    }
    start = start_make(launcher, host, local, input);
    if (!start)
        return err_set(err, HVD_E_NOMEM, "%s: no memory to start an agent", host);
    set_state(start, START_WAITING);
    list_append(bucket_of(launcher, host), &start->by_host);
    take_turn_soon(launcher);
    return 0;
}
