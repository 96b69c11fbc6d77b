/*
 * orphan.c: looks at a job whose driver has died. The verbs status and hosts call it, through
 * main.c. The job's journal is replayed into a core of its own, which makes its first step and is
 * thrown away: none of its actions is carried out. Invariant: the job's files are only read, so a
 * driver may take the job over at the same time.
 */
#include "driver/orphan.h"

#include "base/mem.h"
#include "base/time.h"
#include "driver/core/core.h"
#include "driver/invocation.h"
#include "driver/journal/job_file.h"
#include "driver/journal/job_path.h"
#include "driver/options.h"
#include "os/clock.h"
#include "os/state_home.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_NAME_MAX 107

/* Reads the settings of the job: its options are those with which it was started. */
static int orphan_config(const char *folder, char *job, struct core_config *ret_config,
                         struct hvd_err *err)
{
    char words[][12] = { "hvd-elastic", "--resume" };
    char *const argv[] = { words[0], words[1], job, NULL };
    char *const envp[] = { NULL };
    struct driver_options options;
    struct invocation before = { .text = NULL };
    int rc = options_init(&options);

    if (rc)
        return err_set(err, rc, "%s", err_text(rc));
    rc = options_read(&options, 3, argv, envp, err);
    if (!rc)
        rc = invocation_load(folder, &before, err);
    if (!rc)
        rc = options_load(&options, "the options that the job was started with", before.options,
                          strlen(before.options), err);
    if (!rc)
        rc = options_to_core(&options, job, 1 /* any seed */, ret_config, err);
    invocation_release(&before);
    options_release(&options);
    return rc;
}

static int orphan_record(void *arg, const struct journal_record *record, struct hvd_err *err)
{
    return core_replay(arg, record, err);
}

static int orphan_blacklist(void *arg, const struct blacklist_record *record, struct hvd_err *err)
{
    return core_replay_blacklist(arg, record, clock_now_us(), clock_wall_us(), err);
}

/* Replays the journal, makes the first step of a driver, and keeps only the view after it. */
static int orphan_replay(struct store *store, const struct core_config *config,
                         struct core_view *ret_view, struct hvd_err *err)
{
    struct event start = { .kind = EVENT_START,
                           .now_us = clock_now_us(),
                           .wall_us = clock_wall_us() };
    struct core *core = core_create(config, NULL);
    struct action_list actions;
    int rc = core ? 0 : HVD_E_NOMEM;

    if (rc)
        return err_set(err, rc, "%s", err_text(rc));
    action_list_init(&actions);
    rc = store_replay(store, orphan_record, core, err);
    if (!rc)
        rc = store_blacklist(store, orphan_blacklist, core, err);
    if (!rc) {
        rc = core_step(core, &start, &actions);
        if (!rc)
            rc = core_view(core, ret_view);
        if (rc)
            err_set(err, rc, "%s", err_text(rc));
    }
    action_list_release(&actions);
    core_free(core);
    return rc;
}

/* True: an agent of this user listens on the socket whose name is in the file. */
static bool orphan_listens(const char *file)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char name[SOCKET_NAME_MAX + 1] = "";
    FILE *stream = fopen(file, "re");
    struct ucred peer = { .uid = (uid_t)-1 };
    socklen_t peer_size = sizeof(peer);
    size_t length;
    int fd;

    if (!stream)
        return false;
    length = fread(name, 1, SOCKET_NAME_MAX, stream);
    fclose(stream);
    fd = length && name[0] == '@' ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
                                  : -1;
    if (fd < 0)
        return false;
    memcpy(address.sun_path + 1, name + 1, length - 1); /* a name in the abstract namespace */
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size))
        peer.uid = (uid_t)-1;
    close(fd);
    return peer.uid == geteuid();
}

/* Says of each host with workers whether its agent lives on this machine. The file with the name of
 * an agent's socket lies where agent/processes puts it. */
static int orphan_look_at_agents(const char *job, struct core_view *view)
{
    struct view_host *hosts = arena_alloc_array(&view->memory, view->host_count, sizeof(*hosts));
    char state[LIMIT_PATH_BYTES] = "";
    char file[2 * LIMIT_PATH_BYTES], other[2 * LIMIT_PATH_BYTES];

    if (!hosts)
        return HVD_E_NOMEM;
    if (state_home(state, NULL)) /* then the file is below /tmp */
        state[0] = '\0';
    for (size_t i = 0; i < view->host_count; i++) {
        hosts[i] = view->hosts[i];
        snprintf(file, sizeof(file), "%s/%s/%s.agent", state, job, hosts[i].name);
        snprintf(other, sizeof(other), "/tmp/hvd-agent-%u/%s/%s.agent", (unsigned)geteuid(), job,
                 hosts[i].name);
        if (orphan_listens(file) || orphan_listens(other))
            hosts[i].why = "its agent lives on this machine";
        else if (hosts[i].worker_count)
            hosts[i].why = "its agent is on another machine, which was not asked, or has ended";
        else
            hosts[i].why = hosts[i].draining ? "it is being drained" : "";
    }
    view->hosts = hosts;
    return 0;
}

/* When a driver last wrote something: to the log of events, or else to the job's file. */
static int64_t orphan_last_sign_us(const char *folder)
{
    static const char *const names[] = { "events.log", "job.db" };
    char path[LIMIT_PATH_BYTES + 16];
    struct stat st;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if (!stat(path, &st))
            return st.st_mtim.tv_sec * TIME_S + st.st_mtim.tv_nsec / 1000;
    }
    return clock_wall_us();
}

int orphan_view(const char *folder, struct core_view *ret_view, struct table_facts *ret_facts,
                struct hvd_err *err)
{
    char *path = job_path_join(folder, "job.db");
    struct core_config config;
    struct job_facts facts;
    struct store *store = NULL;
    char *job = NULL;
    int rc;

    if (!path)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    rc = job_file_look(path, &store, err);
    mem_free(path);
    if (!rc)
        rc = store_facts(store, &facts, err);
    if (!rc && facts.ended)
        rc = err_set(err, HVD_E_STATE, "job %s has ended: %s", facts.job, facts.text);
    if (!rc)
        rc = orphan_config(folder, facts.job, &config, err);
    if (!rc)
        rc = orphan_replay(store, &config, ret_view, err);
    if (!rc)
        job = arena_alloc(&ret_view->memory, sizeof(facts.job));
    if (!rc && (!job || orphan_look_at_agents(facts.job, ret_view))) {
        rc = HVD_E_NOMEM;
        err_set(err, rc, "%s", err_text(rc));
    }
    if (!rc) {
        memcpy(job, facts.job, sizeof(facts.job));
        ret_view->term--; /* the look has begun a term, and no driver has */
        *ret_facts =
            (struct table_facts){ .job = job,
                                  .state_dir = folder,
                                  .np = config.np,
                                  .min_np = config.min_np,
                                  .max_np = config.max_np,
                                  .now_us = clock_now_us(),
                                  .orphan = true,
                                  .silent_us = clock_wall_us() - orphan_last_sign_us(folder) };
    }
    store_close(store);
    explicit_bzero(facts.key, sizeof(facts.key));
    return rc;
}
