/*
 * prune.c: the verb "prune": removes what ended jobs have left in the user's state directory. For
 * each job it takes the lock, reads once more that the job has ended, renames the folder, and then
 * removes it: so a process that dies in the middle leaves no half of a job under its name, and the
 * next prune removes the rest. A living or orphaned job is never touched, nor one whose file cannot
 * be read.
 */
#include "driver/cli/verbs.h"

#include "base/mem.h"
#include "base/text.h"
#include "driver/cli/job_list.h"
#include "driver/journal/job_file.h"
#include "driver/journal/job_path.h"
#include "driver/journal/job_private.h"
#include "os/clock.h"
#include "os/lock.h"
#include "os/remedy.h"
#include "os/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Without --retain these jobs stay: of those that have ended within RETAIN_US, the newest
 * RETAIN_COUNT. */
#define RETAIN_US    (30 * TIME_DAY)
#define RETAIN_COUNT 100

/* The beginning of the name of a folder that is being removed. Verbs and drivers ignore names that
 * begin with a dot. */
#define PRUNED ".pruned-"

/* Which ended jobs stay: of those that ended less than `us` ago, the `count` newest. */
struct retain {
    int64_t us;
    uint64_t count;
};

/* Reads --retain: a number alone says how many jobs stay, a time with a unit for how long. `text`
 * NULL: --retain was not given. */
static int prune_read_retain(const char *text, struct retain *ret_retain, struct hvd_err *err)
{
    struct retain retain = { TIME_NEVER, UINT64_MAX };
    struct span span = { text ? text : "", text ? strlen(text) : 0 };
    int rc = 0;

    if (!text)
        retain = (struct retain){ RETAIN_US, RETAIN_COUNT };
    else if (span.length && strspn(text, "0123456789") == span.length)
        rc = text_parse_u64(span, 0, UINT32_MAX, "--retain", &retain.count, err);
    else
        rc = time_parse(text, &retain.us, err);
    if (rc)
        return err_set(err, HVD_E_INVAL,
                       "--retain: \"%s\": write a number of jobs, \"100\", or a time with a unit, "
                       "\"30d\"",
                       text);
    *ret_retain = retain;
    return 0;
}

/* Checks the options of the verb. prune_run reads --retain again. */
static int prune_read(struct cli_request *request, struct hvd_err *err)
{
    struct retain retain;

    if (request->options.state_dir)
        return err_set(err, HVD_E_INVAL,
                       "prune: removes only jobs in the user's own state directory, and takes no "
                       "--state-dir; remove the folder %s yourself",
                       request->options.state_dir);
    return prune_read_retain(request->options.retain, &retain, err);
}

/* Removes the folders that an earlier prune has renamed, but not removed completely. */
static int prune_leftovers(const char *root, struct hvd_err *err)
{
    struct dirent *item;
    DIR *dir = opendir(root);
    int rc = 0;

    while (dir && !rc && (item = readdir(dir))) {
        char *path = NULL;

        if (strncmp(item->d_name, PRUNED, strlen(PRUNED)) != 0)
            continue;
        path = job_path_join(root, item->d_name);
        rc = path ? job_private_check(path, false /* do not make the folder */, err)
                  : err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
        if (!rc)
            rc = remove_tree(path, err);
        mem_free(path);
    }
    if (dir)
        closedir(dir);
    return rc;
}

/* Removes the folder of an ended job. *ret_removed stays false, without an error, if a driver has
 * taken the job since it was listed, or if the job in the folder has not ended. */
static int prune_job_folder(const char *root, const struct job_entry *entry, bool *ret_removed,
                            struct hvd_err *err)
{
    char aside[LIMIT_PATH_BYTES];
    struct job_facts facts = { .ended = false };
    struct store *store = NULL;
    char *lock = job_path_join(entry->folder, "lock");
    pid_t holder;
    int fd = -1;
    int rc = lock ? lock_take(lock, &fd, &holder, err)
                  : err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));

    mem_free(lock);
    if (rc)
        return rc == HVD_E_BUSY ? 0 : rc;
    /* This process has the job's lock now, so no driver can take the job. */
    rc = job_file_look(entry->file, &store, err);
    if (!rc)
        rc = store_facts(store, &facts, err);
    store_close(store);
    explicit_bzero(facts.key, sizeof(facts.key));
    if (!rc && facts.ended) {
        snprintf(aside, sizeof(aside), "%s/" PRUNED "%s-%" PRIx64, root, facts.job,
                 (uint64_t)facts.created_wall_us);
        if (rename(entry->folder, aside))
            rc = remedy_set(err, entry->folder, "cannot be renamed", errno);
        if (!rc)
            rc = remove_tree(aside, err);
        *ret_removed = !rc;
    }
    close(fd);
    return rc;
}

/* Removes the ended jobs of the list that need not stay. In the list the job that ended first comes
 * first: `ended` counts the ended jobs from this one on, so that the newest retain->count are kept.
 */
static int prune_list(const char *root, const struct job_list *list, const struct retain *retain,
                      size_t *ret_removed, struct hvd_err *err)
{
    static const char *const suffixes[] = { "-wal", "-shm", "" };
    char path[LIMIT_PATH_BYTES + 8];
    const struct job_entry *entry;
    size_t ended = 0;
    int rc = 0;

    VEC_EACH (entry, list)
        ended += entry->life == JOB_ENDED;
    for (size_t i = 0; i < list->count && !rc; i++) {
        bool removed = false;

        entry = &list->items[i];
        if (entry->life != JOB_ENDED)
            continue;
        if (ended-- <= retain->count &&
            (retain->us == TIME_NEVER || clock_wall_us() - entry->last_wall_us < retain->us))
            continue;
        if (!entry->aside)
            rc = prune_job_folder(root, entry, &removed, err);
        /* A file NAME.db goes last, after the files that SQLite keeps beside it: as long as NAME.db
         * exists, the next prune finds the job. */
        for (size_t k = 0; entry->aside && !rc && k < ARRAY_SIZE(suffixes); k++) {
            snprintf(path, sizeof(path), "%s%s", entry->file, suffixes[k]);
            if (unlink(path) && errno != ENOENT)
                rc = remedy_set(err, path, "cannot be removed", errno);
            removed = !rc;
        }
        *ret_removed += removed;
    }
    return rc;
}

/* Runs the verb: removes what an earlier prune has left, then the ended jobs in the user's state
 * directory that need not stay, and prints how many jobs were removed. */
static int prune_run(const struct cli_request *request, struct hvd_err *err)
{
    struct job_list list;
    struct retain retain = { TIME_NEVER, UINT64_MAX };
    size_t removed = 0;
    char *root = NULL;
    int rc = prune_read_retain(request->options.retain, &retain, err);

    job_list_init(&list);
    if (!rc)
        rc = job_path_root(&root, err);
    if (!rc)
        rc = prune_leftovers(root, err);
    if (!rc)
        rc = job_list_root(&list, root, err);
    if (!rc) {
        job_list_sort(&list);
        rc = prune_list(root, &list, &retain, &removed, err);
    }
    if (!rc && request->options.json)
        printf("{\"ok\":true,\"removed\":%zu}\n", removed);
    else if (!rc)
        printf("ended jobs that were removed: %zu\n", removed);
    job_list_release(&list);
    mem_free(root);
    return rc;
}

const struct cli_verb cli_prune = {
    .name = "prune",
    .words = "",
    .about = "Removes the state of ended jobs, except the newest 100 that ended in the last 30 "
             "days, or the jobs that --retain names. Living and orphaned jobs are never touched.",
    .read = prune_read,
    .run = prune_run,
};
