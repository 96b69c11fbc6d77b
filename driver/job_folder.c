#include "driver/job_folder.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/lock.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CLAIM_PATIENCE_MS 5000 /* for a driver that is replaced and writes */

static int no_memory(struct hvd_err *err)
{
    (void)err_set(err, HVD_E_NOMEM, "no memory for the state directory");
    return HVD_E_NOMEM;
}

/* "a/b" of its parts; NULL without memory. */
static char *join(const char *folder, const char *name)
{
    struct buf path;
    char *joined = NULL;

    buf_init(&path, LIMIT_PATH_BYTES);
    if (!buf_printf(&path, "%s/%s", folder, name))
        joined = mem_strdup(buf_text(&path));
    buf_release(&path);
    return joined;
}

int job_folder_root(char **ret_path, struct hvd_err *err)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    char *local;

    if (state && *state == '/') {
        *ret_path = join(state, "hvd-elastic");
        return *ret_path ? 0 : no_memory(err);
    }
    if (!home || *home != '/') {
        (void)err_set(err, HVD_E_NOTFOUND,
                      "HOME: not set, so there is no place for state; give --state-dir");
        return HVD_E_NOTFOUND;
    }
    local = join(home, ".local/state");
    *ret_path = local ? join(local, "hvd-elastic") : NULL;
    mem_free(local);
    return *ret_path ? 0 : no_memory(err);
}

static int make_absolute(const char *path, char **ret_path, struct hvd_err *err)
{
    char cwd[LIMIT_PATH_BYTES];

    if (*path != '/' && !getcwd(cwd, sizeof(cwd))) {
        (void)err_set(err, HVD_E_NOTFOUND, "the current folder: %s", strerror(errno));
        return HVD_E_NOTFOUND;
    }
    *ret_path = *path == '/' ? mem_strdup(path) : join(cwd, path);
    return *ret_path ? 0 : no_memory(err);
}

int job_folder_path(const char *state_dir, const char *job, char **ret_path, struct hvd_err *err)
{
    char *root;
    int rc;

    if (state_dir)
        return make_absolute(state_dir, ret_path, err);
    rc = job_name_check(job, err);
    if (!rc)
        rc = job_folder_root(&root, err);
    if (rc)
        return rc;
    *ret_path = join(root, job);
    mem_free(root);
    return *ret_path ? 0 : no_memory(err);
}

static bool is_no_folder(const char *path)
{
    struct stat found;

    if (stat(path, &found) || S_ISDIR(found.st_mode))
        return false;
    errno = ENOTDIR;
    return true;
}

static int make_folders(const char *path, struct hvd_err *err)
{
    char part[LIMIT_PATH_BYTES + 1];

    for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", slash ? (int)(slash - path) : (int)strlen(path), path);
        if (mkdir(part, 0700) && (errno != EEXIST || is_no_folder(part)))
            return err_set(err, errno == ENOSPC ? HVD_E_FULL : HVD_E_DENIED,
                           "%s: cannot be made: %s; choose another --state-dir", part,
                           strerror(errno));
        if (!slash)
            return 0;
    }
}

static int fill_random(void *at, size_t length, struct hvd_err *err)
{
    if (getrandom(at, length, 0) == (ssize_t)length)
        return 0;
    return err_set(err, HVD_E_IO, "the kernel gives no random bytes: %s", strerror(errno));
}

/* "20261121-093001-4f3a" */
static int make_name(char job[JOB_NAME_MAX + 1], struct hvd_err *err)
{
    time_t now = (time_t)(clock_wall_us() / 1000000);
    uint16_t random;
    struct tm tm;
    char text[32];
    int rc = fill_random(&random, sizeof(random), err);

    if (rc)
        return rc;
    gmtime_r(&now, &tm);
    strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &tm);
    snprintf(job, JOB_NAME_MAX + 1, "%s-%04x", text, random);
    return 0;
}

/* One that is free now; whether it still is when it is wanted is seen then. */
static uint16_t pick_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint16_t port = 0;

    if (fd < 0)
        return 0;
    if (!bind(fd, (struct sockaddr *)&address, sizeof(address)) &&
        !getsockname(fd, (struct sockaddr *)&address, &length))
        port = ntohs(address.sin_port);
    close(fd);
    return port;
}

static int make_facts(const char *job, struct job_facts *ret_facts, struct hvd_err *err)
{
    struct job_facts facts = { .created_wall_us = clock_wall_us(), .port = pick_port() };
    int rc = fill_random(facts.key, sizeof(facts.key), err);

    snprintf(facts.job, sizeof(facts.job), "%s", job);
    if (!rc)
        *ret_facts = facts;
    return rc;
}

static int lock(struct job_folder *folder, bool takeover, struct hvd_err *err)
{
    char *path = join(folder->path, "lock");
    pid_t holder = 0;
    int rc;

    if (!path)
        return no_memory(err);
    rc = lock_take(path, &folder->lock_fd, &holder, err);
    if (rc == HVD_E_BUSY && takeover) {
        log_warning(JOB,
                    "%s: its driver lives (pid %d), and is replaced: it ends when it notices; "
                    "kill -KILL it if it never does",
                    folder->path, (int)holder);
        rc = lock_take_over(path, &folder->lock_fd, err);
    }
    mem_free(path);
    if (rc != HVD_E_BUSY)
        return rc;
    return err_set(err, rc,
                   "%s: the driver of this job lives (pid %d); end it first, or take its job over "
                   "with --takeover",
                   folder->path, (int)holder);
}

/* Opens what is there, or makes it as the file of a job of this name. */
static int open_file(struct job_folder *folder, const char *path, const char *job,
                     struct hvd_err *err)
{
    const struct db_options options = { .busy_ms = CLAIM_PATIENCE_MS };
    struct job_facts fresh;
    int rc = make_facts(job, &fresh, err);

    if (!rc)
        rc = job_file_open(path, &options, &fresh, &folder->file, err);
    explicit_bzero(&fresh, sizeof(fresh));
    return rc ? rc : job_file_facts(folder->file, &folder->facts, err);
}

/* The job that was here has ended: out of the way, but kept. */
static int put_aside(struct job_folder *folder, const char *path, struct hvd_err *err)
{
    char name[JOB_NAME_MAX + 4];
    char *aside;
    int rc = 0;

    job_file_close(folder->file);
    folder->file = NULL;
    snprintf(name, sizeof(name), "%s.db", folder->facts.job);
    aside = join(folder->path, name);
    if (!aside)
        return no_memory(err);
    if (rename(path, aside))
        rc =
            err_set(err, HVD_E_IO, "%s: cannot be renamed to %s: %s", path, aside, strerror(errno));
    mem_free(aside);
    return rc;
}

static int refuse_ended(const struct job_folder *folder, struct hvd_err *err)
{
    return err_set(err, HVD_E_STATE,
                   "job %s has ended: %s; without --resume the command begins a new one",
                   folder->facts.job, folder->facts.text);
}

static int nothing_there(const struct job_folder *folder, struct hvd_err *err)
{
    return err_set(err, HVD_E_NOTFOUND,
                   "%s: no job to resume there; its name and --state-dir must be those it was "
                   "started with",
                   folder->path);
}

/* What is there goes on, or is put aside. */
static int open_there(struct job_folder *folder, const char *path, const char *job,
                      const struct job_folder_wish *wish, struct hvd_err *err)
{
    const char *name = wish->resume ? wish->resume : wish->job;
    int rc = open_file(folder, path, job, err);

    if (rc)
        return rc;
    if (folder->facts.ended)
        return wish->resume ? refuse_ended(folder, err) : put_aside(folder, path, err);
    if (name && strcmp(name, folder->facts.job) != 0)
        return err_set(err, HVD_E_EXISTS, "%s: the job there is %s, not %s, and has not ended",
                       folder->path, folder->facts.job, name);
    folder->resumed = true;
    return 0;
}

static int open_or_begin(struct job_folder *folder, const char *job,
                         const struct job_folder_wish *wish, struct hvd_err *err)
{
    char *path = join(folder->path, "job.db");
    int rc = 0;

    if (!path)
        return no_memory(err);
    if (access(path, F_OK) == 0)
        rc = open_there(folder, path, job, wish, err);
    else if (wish->resume)
        rc = nothing_there(folder, err);
    if (!rc && !folder->file)
        rc = open_file(folder, path, job, err);
    mem_free(path);
    return rc;
}

static int claim(struct job_folder *folder, struct hvd_err *err)
{
    char host[LIMIT_HOST_NAME_BYTES + 1] = "?";
    char who[LIMIT_HOST_NAME_BYTES + 32];
    uint64_t token;
    int rc = fill_random(&token, sizeof(token), err);

    gethostname(host, sizeof(host) - 1);
    snprintf(who, sizeof(who), "pid %d on %s", (int)getpid(), host);
    if (!rc)
        rc = job_file_claim(folder->file, token >> 1, who, err);
    if (rc == HVD_E_BUSY)
        err_prefix(err, rc, "%s: its driver was stopped while it wrote; end it (kill -KILL)",
                   folder->path);
    return rc;
}

static int make_agents_folder(const struct job_folder *folder, struct hvd_err *err)
{
    char *path = join(folder->path, "agents");
    int rc = path ? make_folders(path, err) : no_memory(err);

    mem_free(path);
    return rc;
}

int job_folder_open(const struct job_folder_wish *wish, struct job_folder *ret_folder,
                    struct hvd_err *err)
{
    struct job_folder folder = { .lock_fd = -1 };
    char made_up[JOB_NAME_MAX + 1];
    const char *job = wish->resume ? wish->resume : wish->job;
    int rc = 0;

    if (job) {
        rc = job_name_check(job, err);
    } else {
        rc = make_name(made_up, err);
        job = made_up;
    }
    if (!rc)
        rc = job_folder_path(wish->state_dir, job, &folder.path, err);
    if (!rc && wish->resume && access(folder.path, F_OK))
        rc = nothing_there(&folder, err);
    if (!rc)
        rc = make_folders(folder.path, err);
    if (!rc)
        rc = make_agents_folder(&folder, err);
    if (!rc)
        rc = lock(&folder, wish->takeover, err);
    if (!rc)
        rc = open_or_begin(&folder, job, wish, err);
    if (!rc)
        rc = claim(&folder, err);
    if (rc)
        job_folder_release(&folder);
    else
        *ret_folder = folder;
    return rc;
}

void job_folder_release(struct job_folder *folder)
{
    if (folder->file)
        job_file_close(folder->file);
    if (folder->lock_fd >= 0)
        close(folder->lock_fd);
    mem_free(folder->path);
    explicit_bzero(folder->facts.key, sizeof(folder->facts.key));
    *folder = (struct job_folder){ .lock_fd = -1 };
}
