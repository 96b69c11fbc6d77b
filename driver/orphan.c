/*
 * orphan.c: looks at a job whose driver has died. The verbs status, hosts and stop call it, through
 * main.c. The job's journal is replayed into a core of its own, which makes its first step and is
 * thrown away: none of its actions is carried out. Invariant: the job's files and its keys in etcd
 * are only read, so a driver may take the job over at the same time.
 */
#include "driver/orphan.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/core/core.h"
#include "driver/invocation.h"
#include "driver/job_folder.h"
#include "driver/journal/job_file.h"
#include "driver/journal/job_path.h"
#include "driver/options.h"
#include "driver/store/store_core.h"
#include "os/clock.h"
#include "os/state_home.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_NAME_MAX 107

/* A job that has no driver, as it was found. */
struct orphan {
    struct store *store;
    struct job_facts facts;
    struct invocation before;      /* how its driver was started */
    struct driver_options options; /* the options in `before`; valid if has_options */
    bool has_options;
    char *url; /* of the job's store in etcd; NULL: the store is in the job's folder */
    char last[LIMIT_REASON_BYTES + 1]; /* the last driver of the job, if `url` is set */
};

static int orphan_no_memory(struct hvd_err *err)
{
    return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
}

/* Reads the options with which the driver of `before` was started. */
static int orphan_read_options(struct orphan *own, struct hvd_err *err)
{
    char words[][12] = { "hvd-elastic", "--resume" };
    char *const argv[] = { words[0], words[1], own->facts.job, NULL };
    char *const envp[] = { NULL };
    int rc;

    if (own->has_options)
        options_release(&own->options);
    own->has_options = !options_init(&own->options);
    if (!own->has_options)
        return orphan_no_memory(err);
    rc = options_read(&own->options, 3, argv, envp, err);
    return rc ? rc
              : options_load(&own->options, "the options that the job was started with",
                             own->before.options, strlen(own->before.options), err);
}

/* Replays the journal, makes the first step of a driver, and keeps only the view after it. A job
 * that has ended uses no time since: its step is made at the time of day of its beginning, which
 * goodput.c takes for a clock that was set back. */
static int orphan_replay(struct store *store, const struct job_facts *facts,
                         const struct core_config *config, struct core_view *ret_view,
                         struct hvd_err *err)
{
    struct event start = { .kind = EVENT_START,
                           .now_us = clock_now_us(),
                           .wall_us = facts->ended ? facts->created_wall_us : clock_wall_us() };
    struct core *core = core_create(config, NULL);
    struct action_list actions;
    uint64_t records;
    int rc = core ? 0 : HVD_E_NOMEM;

    if (rc)
        return err_set(err, rc, "%s", err_text(rc));
    action_list_init(&actions);
    rc = store_replay_core(store, core, &records, err);
    if (!rc)
        rc = store_blacklist_core(store, core, err);
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
        snprintf(file, sizeof(file), "%s/%s/%s" STATE_AGENT_ENDING, state, job, hosts[i].name);
        snprintf(other, sizeof(other), STATE_HOME_TMP "/%s/%s" STATE_AGENT_ENDING,
                 (unsigned)geteuid(), job, hosts[i].name);
        if (orphan_listens(file) || orphan_listens(other))
            hosts[i].why = "the agent of the host lives on this machine";
        else if (hosts[i].worker_count)
            hosts[i].why = "unknown: no agent of this host lives on this machine; it has ended, or "
                           "it runs on another machine, where this command cannot look";
        else
            hosts[i].why = hosts[i].draining ? "the host is being drained" : "";
    }
    view->hosts = hosts;
    return 0;
}

/* Finds the job in etcd, and waits until the lease of its last driver is over, unless that is the
 * driver with the claim `dead`. `before` becomes what etcd keeps. */
static int orphan_find_in_etcd(struct orphan *own, const struct etcd_store_config *config,
                               uint64_t dead, struct hvd_err *err)
{
    struct hvd_err why;
    struct buf bytes;
    int rc = etcd_store_open(config, own->facts.job, NULL, &own->store, &why);

    if (!rc && dead)
        etcd_store_bury(own->store, dead);
    if (!rc)
        rc = etcd_store_await_orphan(own->store, own->last, &why);
    buf_init(&bytes, INVOCATION_BYTES_MAX);
    if (!rc)
        rc = etcd_store_load_command(own->store, &bytes, &why);
    invocation_release(&own->before);
    if (!rc)
        rc = invocation_decode(config->url, &bytes, &own->before, &why);
    buf_release(&bytes);
    if (rc == HVD_E_EXISTS)
        return err_set(err, rc, "%s; ask on its machine", why.text);
    if (rc) {
        err_set(err, rc, "%s", why.text);
        /* HVD_E_NOTFOUND would mean that there is no job in the folder. */
        return rc == HVD_E_BUSY ? HVD_E_TIMEOUT : rc == HVD_E_NOTFOUND ? HVD_E_STATE : rc;
    }
    return orphan_read_options(own, err);
}

/* Finds the store of the job and its options: job.db in its folder, or etcd, by --store or by the
 * options that the folder has kept. */
static int orphan_find(struct orphan *own, const struct cli_place *place, struct hvd_err *err)
{
    char *path = place->folder ? job_path_join(place->folder, "job.db") : NULL;
    bool in_file = path && !access(path, F_OK);
    struct etcd_store_config config;
    uint64_t dead = 0; /* no driver listens in the folder, so the claim of its driver is dead */
    int rc = place->folder && !path ? orphan_no_memory(err) : 0;

    if (in_file)
        rc = job_file_look(path, &own->store, err);
    if (!rc && in_file)
        rc = store_facts(own->store, &own->facts, err);
    mem_free(path);
    if (!rc && place->folder && (in_file || !place->store)) {
        rc = invocation_load(place->folder, &own->before, err);
    }
    if (!rc && !in_file) {
        static const char option[] = "job = ";
        const char *options = own->before.options ? own->before.options : "";
        struct span rest = { options, strlen(options) };
        const char *name = place->job;
        struct span line;

        /* The name of the job in etcd. A place without a folder has the name that the user asked
         * for. Otherwise the name is the value of --job with which the job was started, or else the
         * name of the folder. */
        if (!name) {
            ASSERT(place->folder);
            name = strrchr(place->folder, '/');
            name = name ? name + 1 : place->folder;
        }
        snprintf(own->facts.job, sizeof(own->facts.job), "%s", name);
        while (!place->job && span_next(&rest, '\n', &line))
            if (line.length > strlen(option) && !memcmp(line.at, option, strlen(option)))
                snprintf(own->facts.job, sizeof(own->facts.job), "%.*s",
                         (int)(line.length - strlen(option)), line.at + strlen(option));
    }
    if (!rc && own->before.text)
        rc = orphan_read_options(own, err);
    if (rc || in_file)
        return rc;
    if (place->store)
        config = *place->store;
    else if (!own->has_options || !options_to_store(&own->options, &config))
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: there is no job in this folder; give the name and the --state-dir that "
                       "the job was started with",
                       place->folder);
    if (place->folder)
        dead = job_folder_claim(place->folder);
    own->url = mem_strdup(config.url);
    return own->url ? orphan_find_in_etcd(own, &config, dead, err) : orphan_no_memory(err);
}

/* Makes the facts for the tables; their texts lie in the view. */
static int orphan_tell(const struct orphan *own, const struct core_config *config,
                       const char *folder, struct core_view *view, struct table_facts *ret_facts)
{
    const char *texts[] = { own->facts.job, own->last, own->url,
                            own->facts.ended ? own->facts.text : NULL };
    static const char *const signs[] = { "events.log", "job.db" };
    char *kept[ARRAY_SIZE(texts)] = { NULL };
    char path[LIMIT_PATH_BYTES + 16];
    int64_t sign_us = 0;
    struct stat st;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (texts[i] && !(kept[i] = arena_alloc(&view->memory, strlen(texts[i]) + 1)))
            return HVD_E_NOMEM;
        if (texts[i])
            memcpy(kept[i], texts[i], strlen(texts[i]) + 1);
    }
    /* When a driver last wrote something: to the log of events, or else to the job's file. */
    for (size_t i = 0; !kept[2] && !sign_us && i < ARRAY_SIZE(signs); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, signs[i]);
        if (!stat(path, &st))
            sign_us = st.st_mtim.tv_sec * TIME_S + st.st_mtim.tv_nsec / 1000;
    }
    view->term--; /* the look has begun a term, and no driver has */
    *ret_facts = (struct table_facts){
        .job = kept[0],
        .last = kept[1],
        .store = kept[2],
        .state_dir = kept[2] ? kept[2] : folder,
        .np = config->np,
        .min_np = config->min_np,
        .max_np = config->max_np,
        .now_us = clock_now_us(),
        .orphan = true,
        .ended = kept[3],
        .ended_code = own->facts.code,
        .silent_us = kept[2]   ? TIME_NEVER
                     : sign_us ? clock_wall_us() - sign_us
                               : 0,
    };
    return 0;
}

int orphan_view(const struct cli_place *place, struct core_view *ret_view,
                struct table_facts *ret_facts, struct hvd_err *err)
{
    struct orphan own = { .store = NULL };
    struct core_config config;
    int rc = orphan_find(&own, place, err);

    if (!rc && own.url)
        rc = store_facts(own.store, &own.facts, err);
    if (!rc && own.facts.ended && !place->ended_too)
        rc = err_set(err, HVD_E_STATE, "job %s has ended: %s", own.facts.job, own.facts.text);
    if (!rc)
        rc = options_to_core(&own.options, own.facts.job, 1 /* any seed */, &config, err);
    if (!rc)
        rc = orphan_replay(own.store, &own.facts, &config, ret_view, err);
    if (!rc && (orphan_look_at_agents(own.facts.job, ret_view) ||
                orphan_tell(&own, &config, place->folder, ret_view, ret_facts)))
        rc = orphan_no_memory(err);
    store_close(own.store);
    explicit_bzero(own.facts.key, sizeof(own.facts.key));
    invocation_release(&own.before);
    if (own.has_options)
        options_release(&own.options);
    mem_free(own.url);
    return rc;
}
