/*
 * job_folder.c: opens the state directory of a job for a driver: makes and checks the folders,
 * takes the lock, opens job.db or the store in etcd, and claims it. run.c calls it once. The order
 * matters: nothing in a folder that another user can change is believed, only the holder of the
 * lock opens the file, and only the owner that claimed the file may write to it.
 */
#include "driver/job_folder.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "driver/journal/job_file.h"
#include "driver/journal/job_path.h"
#include "driver/journal/job_private.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/remedy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How long the claim waits while the driver that is being replaced has the file locked: that driver
 * may be in the middle of a write. */
#define CLAIM_TIMEOUT_MS 5000
#define LOCK_AGAIN_MS    10 /* the pause between two attempts to take the lock */

/* Sets the error HVD_E_NOMEM, and returns it. */
static int job_folder_no_memory(struct hvd_err *err)
{
    (void)err_set(err, HVD_E_NOMEM,
                  "no memory for the path of the state directory; free memory on this host");
    return HVD_E_NOMEM;
}

/* Fills memory for a key or name with random bytes of the kernel. A weaker source is never used in
 * its place. */
static int fill_random(void *at, size_t length, struct hvd_err *err)
{
    if (getrandom(at, length, 0) == (ssize_t)length)
        return 0;
    return err_set(
        err, HVD_E_IO,
        "the kernel gives no random bytes: %s; allow the call getrandom in this container",
        strerror(errno));
}

/* Makes a job name from the time and random digits, "20261121-093001-4f3a". */
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

/* Takes the file "lock", which shows that the job has a living driver. The lock stops no other
 * driver from writing: the claim does that. With `takeover` the lock is taken even from a living
 * driver. *ret_alone is true if the lock was free at once: no driver that had this folder lives any
 * more. */
static int take_lock(struct job_folder *folder, bool takeover, bool *ret_alone, struct hvd_err *err)
{
    char *path = job_path_join(folder->path, "lock");
    pid_t holder = 0;
    int rc;

    if (!path)
        return job_folder_no_memory(err);
    rc = lock_take(path, &folder->lock_fd, &holder, err);
    *ret_alone = !rc;
    /* The holder is dead (ESRCH), but a child that it has forked still has the lock, until the
     * child runs its program. So the lock is tried again for a while. */
    for (int i = 0; rc == HVD_E_BUSY && holder && i < CLAIM_TIMEOUT_MS / LOCK_AGAIN_MS; i++) {
        if (!kill(holder, 0) || errno != ESRCH)
            break;
        (void)poll(NULL, 0, LOCK_AGAIN_MS);
        rc = lock_take(path, &folder->lock_fd, &holder, err);
    }
    if (rc == HVD_E_BUSY && takeover) {
        log_warning(
            JOB,
            "%s: the driver of this job lives (pid %d), and is replaced: the earlier driver ends "
            "when it next reads the job's file; if it does not end, use kill -KILL on its pid",
            folder->path, (int)holder);
        rc = lock_take_over(path, &folder->lock_fd, err);
    }
    mem_free(path);
    if (!rc)
        folder->former = holder;
    if (rc != HVD_E_BUSY)
        return rc;
    return err_set(err, rc,
                   "%s: the driver of this job lives (pid %d); end it first, or take its job over "
                   "with --takeover",
                   folder->path, (int)holder);
}

/* Makes the facts of a new job: its name, a random key, and a port that is free now; port 0: none
 * was found. If another program takes the port later, the driver listens at another port. */
static int make_facts(struct job_facts *fresh, const char *job, struct hvd_err *err)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t address_size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *fresh = (struct job_facts){ .created_wall_us = clock_wall_us() };
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)) &&
        !getsockname(fd, (struct sockaddr *)&address, &address_size))
        fresh->port = ntohs(address.sin_port);
    if (fd >= 0)
        close(fd);
    snprintf(fresh->job, sizeof(fresh->job), "%s", job);
    return fill_random(fresh->key, sizeof(fresh->key), err);
}

/* Opens job.db at `path`, and reads the facts of its job. A missing file is made, with the facts of
 * a new job with the name `job`. */
static int job_folder_open_file(struct job_folder *folder, const char *path, const char *job,
                                struct hvd_err *err)
{
    const struct db_options options = { .busy_ms = CLAIM_TIMEOUT_MS };
    struct job_facts fresh;
    int rc = make_facts(&fresh, job, err);

    if (!rc)
        rc = job_file_open(path, &options, &fresh, &folder->store, err);
    explicit_bzero(&fresh, sizeof(fresh));
    return rc ? rc : store_facts(folder->store, &folder->facts, err);
}

/* Opens the job in etcd. A job that has not ended goes on (folder->resumed); otherwise a new job
 * begins, unless the user asked to resume one (wish->resume). The result HVD_E_BUSY of etcd becomes
 * HVD_E_TIMEOUT, because HVD_E_BUSY of this file means that a driver holds the lock. */
static int open_in_etcd(struct job_folder *folder, const char *job,
                        const struct job_folder_wish *wish, struct hvd_err *err)
{
    struct job_facts fresh;
    int rc = make_facts(&fresh, job, err);

    if (!rc)
        rc = etcd_store_open(wish->store, job, wish->resume ? NULL : &fresh, &folder->store, err);
    if (!rc)
        rc = store_facts(folder->store, &folder->facts, err);
    if (!rc && folder->facts.ended && wish->resume)
        rc = err_set(err, HVD_E_STATE,
                     "job %s has ended: %s; without --resume the command begins a new one", job,
                     folder->facts.text);
    else if (!rc && folder->facts.ended)
        rc = etcd_store_begin_anew(folder->store, &fresh, err);
    else if (!rc)
        /* A key that differs from the fresh one shows that the job was in etcd before. */
        folder->resumed = memcmp(folder->facts.key, fresh.key, sizeof(fresh.key)) != 0;
    explicit_bzero(&fresh, sizeof(fresh));
    if (!rc)
        rc = store_facts(folder->store, &folder->facts, err);
    return rc == HVD_E_BUSY ? HVD_E_TIMEOUT : rc;
}

/* Sets the error for a --resume of a job that is not in the folder. Returns HVD_E_NOTFOUND. */
static int nothing_to_resume(const struct job_folder *folder, struct hvd_err *err)
{
    return err_set(
        err, HVD_E_NOTFOUND,
        "%s: there is no job to resume; give the name and the --state-dir that the job was "
        "started with",
        folder->path);
}

/* Opens job.db in the folder. A job there that has not ended goes on (folder->resumed); otherwise a
 * new job with the name `job` begins, unless the user asked to resume one. `name`: the name that
 * the user gave; NULL: the user gave none, so any job in the folder is meant. */
static int open_or_begin(struct job_folder *folder, const char *job,
                         const struct job_folder_wish *wish, struct hvd_err *err)
{
    const char *name = wish->resume ? wish->resume : wish->job;
    const struct job_facts *facts = &folder->facts;
    char *path = job_path_join(folder->path, "job.db");
    bool exists = path && access(path, F_OK) == 0;
    char aside_name[JOB_NAME_MAX + 4];
    char *aside = NULL;
    int rc = 0;

    if (!path)
        return job_folder_no_memory(err);
    if (!exists && wish->resume)
        rc = nothing_to_resume(folder, err);
    if (!rc)
        rc = job_folder_open_file(folder, path, job, err);
    if (rc || !exists) {
        /* The file could not be opened (rc), or it was made just now for a new job: nothing is left
         * to do. */
    } else if (!facts->ended && name && strcmp(facts->job, name) != 0) {
        rc = err_set(
            err, HVD_E_EXISTS,
            "%s: the job in this folder is %s, not %s, and has not ended; give another --state-dir",
            folder->path, facts->job, name);
    } else if (!facts->ended) {
        folder->resumed = true;
    } else if (wish->resume) {
        rc = err_set(err, HVD_E_STATE,
                     "job %s has ended: %s; without --resume the command begins a new one",
                     facts->job, facts->text);
    } else {
        /* The file of an ended job is kept under the name of that job. */
        store_close(folder->store);
        folder->store = NULL;
        snprintf(aside_name, sizeof(aside_name), "%s.db", facts->job);
        aside = job_path_join(folder->path, aside_name);
        if (!aside)
            rc = job_folder_no_memory(err);
        else
            rc = job_file_put_aside(path, aside, err);
        mem_free(aside);
        if (!rc)
            rc = job_folder_open_file(folder, path, job, err);
    }
    mem_free(path);
    return rc;
}

/* Returns the number in the file "claim" of the folder; 0: there is no such file, or no number in
 * it. */
uint64_t job_folder_claim(const char *folder)
{
    char *path = job_path_join(folder, "claim");
    uint64_t token = 0;
    struct buf text;

    buf_init(&text, 64);
    if (path && !file_read(path, &text, NULL) &&
        text_parse_u64((struct span){ buf_text(&text), text.length }, 1, INT64_MAX, "a claim",
                       &token, NULL))
        token = 0;
    buf_release(&text);
    mem_free(path);
    return token;
}

/* Claims the store for this driver. A former driver can write no more after the claim, and its last
 * error names the process that has claimed (`who`). `alone`: no driver that had this folder lives.
 */
static int claim_job(const struct job_folder *folder, bool in_etcd, bool alone, struct hvd_err *err)
{
    char host[LIMIT_HOST_NAME_BYTES + 1] = "?", who[LIMIT_HOST_NAME_BYTES + 32];
    uint64_t token;
    int rc = fill_random(&token, sizeof(token), err);

    if (rc)
        return rc;
    /* The store keeps the token as a signed number, so at most 63 bits are used; the lowest bit is
     * set, because 0 means no token. */
    token = token >> 1 | 1;
    gethostname(host, sizeof(host) - 1);
    snprintf(who, sizeof(who), "pid %d on %s", (int)getpid(), host);
    /* The last driver of this folder is dead. etcd_store_bury says so with the number of its claim,
     * and then store_claim does not wait for the end of its lease. */
    if (in_etcd && alone)
        etcd_store_bury(folder->store, job_folder_claim(folder->path));
    rc = store_claim(folder->store, token, who, err);
    if (!rc && in_etcd) {
        char *path = job_path_join(folder->path, "claim");
        int fd =
            path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;

        /* If the token cannot be written to the folder, the next driver waits until the lease of
         * this driver ends. */
        if (fd >= 0) {
            (void)dprintf(fd, "%" PRIu64, token);
            close(fd);
        }
        mem_free(path);
    }
    if (rc == HVD_E_BUSY && in_etcd)
        return HVD_E_TIMEOUT; /* etcd does not answer; HVD_E_BUSY would say that a driver holds the
                                 lock (job_folder.h) */
    if (rc == HVD_E_BUSY)
        err_prefix(
            err, rc,
            "%s: the job's driver was stopped in the middle of a write; end that driver (kill "
            "-KILL)",
            folder->path);
    return rc;
}

/* Opens the folder of a job for this driver as `wish` says: makes or checks the folder, takes the
 * lock, opens job.db or the store in etcd, and claims it. After a failure nothing stays open. For
 * HVD_E_STATE ret_folder->facts says how the job has ended, without its key. */
int job_folder_open(const struct job_folder_wish *wish, struct job_folder *ret_folder,
                    struct hvd_err *err)
{
    struct job_folder folder = { .lock_fd = -1 };
    char made_up[JOB_NAME_MAX + 1];
    bool alone = false;
    char *agents;
    const char *job = wish->resume ? wish->resume : wish->job;
    int rc = 0;

    if (job) {
        rc = job_name_check(job, err);
    } else {
        rc = make_name(made_up, err);
        job = made_up;
    }
    if (!rc)
        rc = job_path_folder(wish->state_dir, job, &folder.path, err);
    /* --resume with a mistyped name must not leave an empty folder behind. */
    if (!rc && wish->resume && !wish->store && access(folder.path, F_OK))
        rc = nothing_to_resume(&folder, err);
    /* Before any file of the folder is used: checks that no other user can have changed the folder.
     */
    if (!rc)
        rc = job_private_check(folder.path, true /* make the folder */, err);
    /* Makes the folder for the logs of this machine's agents. */
    if (!rc) {
        agents = job_path_join(folder.path, "agents");
        if (!agents)
            rc = job_folder_no_memory(err);
        else if (mkdir(agents, 0700) && errno != EEXIST)
            rc = remedy_set(err, agents, "cannot be made", errno);
        mem_free(agents);
    }
    if (!rc)
        rc = take_lock(&folder, wish->takeover, &alone, err);
    if (!rc)
        rc = wish->store ? open_in_etcd(&folder, job, wish, err)
                         : open_or_begin(&folder, job, wish, err);
    if (!rc)
        rc = claim_job(&folder, wish->store, alone, err);
    if (rc == HVD_E_STATE) {
        if (folder.store) /* the job may have ended while the claim was waiting */
            (void)!store_facts(folder.store, &folder.facts, NULL);
        ret_folder->facts = folder.facts;
        explicit_bzero(ret_folder->facts.key, sizeof(ret_folder->facts.key));
    }
    if (rc)
        job_folder_release(&folder);
    else
        *ret_folder = folder;
    return rc;
}

void job_folder_release(struct job_folder *folder)
{
    if (folder->store)
        store_close(folder->store);
    if (folder->lock_fd >= 0)
        close(folder->lock_fd);
    mem_free(folder->path);
    explicit_bzero(folder->facts.key, sizeof(folder->facts.key));
    *folder = (struct job_folder){ .lock_fd = -1 };
}

void job_folder_say_begin(const struct job_folder *folder, bool told)
{
    const char *job = folder->facts.job;

    if (!folder->resumed)
        log_info(JOB, "job %s begins, its state is in %s", job, folder->path);
    else if (told || !folder->former || folder->former == getpid())
        log_info(JOB, "job %s is taken over, its state is in %s", job, folder->path);
    else
        log_warning(
            JOB,
            "job %s is taken over, because its driver (pid %d) has ended before the job; its "
            "state is in %s",
            job, (int)folder->former, folder->path);
}
