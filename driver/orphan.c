/*
 * orphan.c: looks at a job whose driver has died. The verbs status, hosts and stop call
 * orphan_view, through main.c. The job's journal is replayed into a core that is made for this
 * look, makes its first step, and is thrown away: none of its actions is carried out. Invariant:
 * the job's files and its keys in etcd are only read, so a driver may take the job over at the same
 * time.
 */
#include "driver/orphan.h"

#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "base/time.h"
#include "driver/cli/job_list.h"
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

#define SOCKET_NAME_MAX 107 /* the size of sun_path of struct sockaddr_un, less 1 */

/* A job that has no driver: what was found in its folder or in etcd. */
struct orphan {
    struct store *store;
    struct job_facts facts;
    struct invocation before;      /* how the job's last driver was started */
    struct driver_options options; /* the options in `before`; valid if has_options */
    bool has_options;
    /* the URL of the job's store in etcd; NULL: the store is job.db in the job's folder */
    char *url;
    char last[LIMIT_REASON_BYTES + 1]; /* "pid 7 on host": the job's last driver */
};

static int orphan_no_memory(struct hvd_err *err)
{
    return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
}

/* Reads the options with which the job's last driver was started, from orphan->before. They are
 * read as those of a command "hvd-elastic --resume JOB" without an environment, so that no command
 * is required. */
static int orphan_read_options(struct orphan *orphan, struct hvd_err *err)
{
    char words[][12] = { "hvd-elastic", "--resume" };
    char *const argv[] = { words[0], words[1], orphan->facts.job, NULL };
    char *const envp[] = { NULL };
    int rc;

    if (orphan->has_options)
        options_release(&orphan->options);
    orphan->has_options = !options_init(&orphan->options);
    if (!orphan->has_options)
        return orphan_no_memory(err);
    rc = options_read(&orphan->options, 3, argv, envp, err);
    return rc ? rc
              : options_load(&orphan->options, "the options that the job was started with",
                             orphan->before.options, strlen(orphan->before.options), err);
}

/* Replays the journal into a new core, makes the first step of a driver, and keeps only the view
 * after this step. The step of a job that has ended gets the time of day at which the job began:
 * goodput.c takes that for a clock that was set back, and counts no time since the end of the job.
 */
static int orphan_replay(struct store *store, const struct job_facts *facts,
                         const struct core_config *config, struct core_view *ret_view,
                         struct hvd_err *err)
{
    struct event start = { .kind = EVENT_START,
                           .now_us = clock_now_us(),
                           .wall_us = facts->ended ? facts->created_wall_us : clock_wall_us() };
    struct core *core = core_create(config, NULL);
    struct action_list actions;
    int64_t gone_us = facts->ended ? clock_wall_us() - start.wall_us : 0;
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
    for (size_t i = 0; !rc && gone_us && i < ret_view->reports.count; i++) {
        struct view_report *report = &ret_view->reports.items[i];

        /* The reported values are as old as they are, and not as old as at that time of day. */
        report->at_us -= gone_us;
        for (size_t k = 0; k < report->point_count; k++)
            report->points[k].at_us -= gone_us;
    }
    action_list_release(&actions);
    core_free(core);
    return rc;
}

/* True: an agent of this user listens on the socket whose name is the text of `file`. The agent is
 * asked nothing: the connection is closed once the kernel has said which user listens
 * (SO_PEERCRED). */
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
    memcpy(address.sun_path + 1, name + 1,
           length - 1); /* the "@" of the text stands for the NUL with which names of the abstract
                           namespace begin */
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size))
        peer.uid = (uid_t)-1;
    close(fd);
    return peer.uid == geteuid();
}

/* Sets `why` of each host of the view: it says of a host with workers whether its agent lives on
 * this machine. An agent lives if it listens on the socket whose name is in its file;
 * agent/processes puts the file into one of the two folders that are tried. */
static int orphan_look_at_agents(const char *job, struct core_view *view)
{
    struct view_host *hosts = arena_alloc_array(&view->memory, view->host_count, sizeof(*hosts));
    char state[LIMIT_PATH_BYTES] = "";
    char file[2 * LIMIT_PATH_BYTES], other[2 * LIMIT_PATH_BYTES];

    if (!hosts)
        return HVD_E_NOMEM;
    if (state_home(state, NULL)) /* without a home folder, agents use STATE_HOME_TMP */
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
            hosts[i].why = hosts[i].draining ? "the host is drained" : "";
    }
    view->hosts = hosts;
    return 0;
}

/* Opens the job in etcd, and waits until the lease of its last driver is over. There is no wait if
 * the last driver has made the claim `dead`, whose driver is known to be dead; 0: none is known.
 * Reads the options of the job from etcd, too. */
static int orphan_find_in_etcd(struct orphan *orphan, const struct etcd_store_config *config,
                               uint64_t dead, struct hvd_err *err)
{
    struct hvd_err why;
    struct buf bytes;
    int rc = etcd_store_open(config, orphan->facts.job, NULL, &orphan->store, &why);

    if (!rc && dead)
        etcd_store_bury(orphan->store, dead);
    if (!rc)
        rc = etcd_store_await_orphan(orphan->store, orphan->last, &why);
    buf_init(&bytes, INVOCATION_BYTES_MAX);
    if (!rc)
        rc = etcd_store_load_command(orphan->store, &bytes, &why);
    invocation_release(&orphan->before);
    if (!rc)
        rc = invocation_decode(config->url, &bytes, &orphan->before, &why);
    buf_release(&bytes);
    if (rc == HVD_E_EXISTS)
        return err_set(err, rc, "%s; ask on its machine", why.text);
    if (rc) {
        err_set(err, rc, "%s", why.text);
        /* HVD_E_BUSY says here that etcd does not answer, which is a failure of the command and not
         * a refusal. HVD_E_NOTFOUND would mean that there is no job in the folder. */
        return rc == HVD_E_BUSY ? HVD_E_TIMEOUT : rc == HVD_E_NOTFOUND ? HVD_E_STATE : rc;
    }
    return orphan_read_options(orphan, err);
}

/* Opens the store of the job and reads its options. The store is job.db in the folder if there is
 * one; else it is in etcd, at the address of --store, or of the options that the folder has kept.
 */
static int orphan_find(struct orphan *orphan, const struct cli_place *place, struct hvd_err *err)
{
    char *path = place->folder ? job_path_join(place->folder, "job.db") : NULL;
    bool in_file = path && !access(path, F_OK);
    struct etcd_store_config config;
    uint64_t dead = 0; /* the claim of the folder's last driver, which is dead: no driver listens in
                          the folder */
    int rc = place->folder && !path ? orphan_no_memory(err) : 0;

    if (in_file)
        rc = job_file_look(path, &orphan->store, err);
    if (!rc && in_file)
        rc = store_facts(orphan->store, &orphan->facts, err);
    mem_free(path);
    if (!rc && place->folder && (in_file || !place->store)) {
        rc = invocation_load(place->folder, &orphan->before, err);
    }
    if (!rc && !in_file) {
        static const char option[] = "job = ";
        const char *options = orphan->before.options ? orphan->before.options : "";
        struct span rest = { options, strlen(options) };
        const char *name = place->job;
        struct span line;

        /* The name of the job in etcd is the name that the user asked for (place->job); else the
         * value of --job with which the job was started; else the name of the folder. */
        if (!name) {
            ASSERT(place->folder);
            name = strrchr(place->folder, '/');
            name = name ? name + 1 : place->folder;
        }
        snprintf(orphan->facts.job, sizeof(orphan->facts.job), "%s", name);
        while (!place->job && span_next(&rest, '\n', &line))
            if (line.length > strlen(option) && !memcmp(line.at, option, strlen(option)))
                snprintf(orphan->facts.job, sizeof(orphan->facts.job), "%.*s",
                         (int)(line.length - strlen(option)), line.at + strlen(option));
    }
    if (!rc && orphan->before.text)
        rc = orphan_read_options(orphan, err);
    if (rc || in_file)
        return rc;
    if (place->store)
        config = *place->store;
    else if (!orphan->has_options || !options_to_store(&orphan->options, &config))
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: there is no job in this folder; give the name and the --state-dir that "
                       "the job was started with",
                       place->folder);
    if (place->folder)
        dead = job_folder_claim(place->folder);
    orphan->url = mem_strdup(config.url);
    return orphan->url ? orphan_find_in_etcd(orphan, &config, dead, err) : orphan_no_memory(err);
}

/* Makes the facts that the tables of the verbs show. Their texts are copied into the memory of the
 * view: `kept` has the job, its last driver, the URL of its store, and how it has ended. */
static int orphan_tell(const struct orphan *orphan, const struct core_config *config,
                       const char *folder, struct core_view *view, struct table_facts *ret_facts)
{
    const char *texts[] = { orphan->facts.job, orphan->last, orphan->url,
                            orphan->facts.ended ? orphan->facts.text : NULL };
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
    /* The time at which a driver last wrote to the folder: to the log of events, or else to job.db.
     * A job in etcd (kept[2]) has no such sign. */
    for (size_t i = 0; !kept[2] && !sign_us && i < ARRAY_SIZE(signs); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, signs[i]);
        if (!stat(path, &st))
            sign_us = st.st_mtim.tv_sec * TIME_S + st.st_mtim.tv_nsec / 1000;
    }
    view->term--; /* the first step in orphan_replay has begun a term, which no driver has */
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
        .ended_code = job_list_status(orphan->facts.code, orphan->facts.text),
        .silent_us = kept[2]   ? TIME_NEVER
                     : sign_us ? clock_wall_us() - sign_us
                               : 0,
    };
    return 0;
}

/* Finds the job, checks that it may be shown, and makes its view and its facts. Everything else
 * that was opened is closed again. */
int orphan_view(const struct cli_place *place, struct core_view *ret_view,
                struct table_facts *ret_facts, struct hvd_err *err)
{
    struct orphan orphan = { .store = NULL };
    struct core_config config;
    int rc = orphan_find(&orphan, place, err);

    if (!rc && orphan.url)
        rc = store_facts(orphan.store, &orphan.facts, err);
    if (!rc && orphan.facts.ended && !place->ended_too)
        rc = err_set(err, HVD_E_STATE, "job %s has ended: %s", orphan.facts.job, orphan.facts.text);
    if (!rc)
        rc = options_to_core(&orphan.options, orphan.facts.job, 1 /* any seed */, &config, err);
    if (!rc)
        rc = orphan_replay(orphan.store, &orphan.facts, &config, ret_view, err);
    if (!rc && (orphan_look_at_agents(orphan.facts.job, ret_view) ||
                orphan_tell(&orphan, &config, place->folder, ret_view, ret_facts)))
        rc = orphan_no_memory(err);
    store_close(orphan.store);
    explicit_bzero(orphan.facts.key, sizeof(orphan.facts.key));
    invocation_release(&orphan.before);
    if (orphan.has_options)
        options_release(&orphan.options);
    mem_free(orphan.url);
    return rc;
}
