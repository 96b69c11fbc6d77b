/*
 * job_list.c: finds the jobs of a user by their state directories, and says of each whether it
 * lives. jobs.c shows the list, prune.c removes ended jobs of the list. Invariant: nothing is
 * written here, so a job may be looked at while its driver works.
 */
#include "driver/cli/job_list.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/time.h"
#include "driver/cli/find_job.h"
#include "driver/core/core.h"
#include "driver/journal/job_file.h"
#include "driver/journal/job_path.h"
#include "driver/journal/job_private.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns the word that the verbs show for a state of a job. */
const char *job_life_name(enum job_life life)
{
    static const char *const names[] = { "living", "orphaned", "ended", "damaged" };

    return names[life];
}

/* Returns the exit code that the driver of an ended job had, as run.c makes it. The job's file does
 * not have the number of the signal that stopped the job, so the words of `text` say which it was.
 */
int job_list_status(int code, const char *text)
{
    switch (code) {
    case CORE_FINISHED: return 0;
    case CORE_TOO_FEW: return 3;
    case CORE_STOPPED:
        return 128 + (strstr(text, "Ctrl-C") ? SIGINT : strstr(text, "SIGHUP") ? SIGHUP : SIGTERM);
    default: return 1;
    }
}

/* Returns the time of day at which the file was last written; 0: it cannot be looked at. */
static int64_t job_list_changed_us(const char *path)
{
    struct stat st;

    return stat(path, &st) ? 0 : st.st_mtim.tv_sec * TIME_S + st.st_mtim.tv_nsec / 1000;
}

/* Adds the job whose file is `file`, a name in the folder: "job.db", or with `aside` "NAME.db", the
 * file of an ended job that a later job has renamed. A file that cannot be read is added as a
 * damaged job. */
static int job_list_add(struct job_list *list, const char *folder, const char *file, bool aside,
                        struct hvd_err *err)
{
    const char *name = aside ? file : strrchr(folder, '/') + 1;
    size_t length = strlen(name) - (aside ? strlen(".db") : 0);
    struct job_entry entry = { .aside = aside, .life = JOB_LIVING };
    struct job_facts facts = { .ended = false };
    struct store *store = NULL;
    struct hvd_err why = { .text = "" };
    char *log = job_path_join(folder, "events.log");
    int rc = VEC_RESERVE(list, 1, LIMIT_JOBS_LISTED);

    if (rc == HVD_E_LIMIT) {
        mem_free(log);
        return err_set(err, rc,
                       "%s: with this folder there are more than %d jobs; remove ended jobs: %s",
                       folder, LIMIT_JOBS_LISTED, "hvd-elastic prune");
    }
    snprintf(entry.job, sizeof(entry.job), "%.*s", (int)length, name);
    entry.folder = mem_strdup(folder);
    entry.file = job_path_join(folder, file);
    if (!rc && entry.file) {
        rc = job_file_look(entry.file, &store, &why);
        if (!rc)
            rc = store_facts(store, &facts, &why);
        store_close(store);
        explicit_bzero(facts.key, sizeof(facts.key));
        if (aside || !cli_driver_is_alive(folder))
            entry.life = rc ? JOB_DAMAGED : facts.ended || aside ? JOB_ENDED : JOB_ORPHANED;
        entry.began_wall_us = facts.created_wall_us;
        entry.status = job_list_status(facts.code, facts.text);
        if (!rc)
            snprintf(entry.job, sizeof(entry.job), "%s", facts.job);
        /* A file that cannot be read is no failure of the list: its job is damaged. */
        rc = 0;
    }
    entry.text = mem_strdup(entry.life == JOB_DAMAGED ? why.text : facts.text);
    if (!rc && entry.folder && entry.file && entry.text && log) {
        /* A driver writes each event, also the end of the job, to events.log, so that file shows
         * the last sign of the job. Later jobs of the folder write to the same file, so it says
         * nothing about a job that was put aside. */
        entry.last_wall_us = aside ? 0 : job_list_changed_us(log);
        if (!entry.last_wall_us)
            entry.last_wall_us = job_list_changed_us(entry.file);
        list->items[list->count++] = entry;
    } else {
        rc = err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
        mem_free(entry.folder);
        mem_free(entry.file);
        mem_free(entry.text);
    }
    mem_free(log);
    return rc;
}

/* Adds the job in job.db of the folder, and the ended jobs in other files NAME.db. A folder that
 * another user can change is an error. */
int job_list_folder(struct job_list *list, const char *folder, struct hvd_err *err)
{
    char *path = job_path_join(folder, "job.db");
    struct dirent *item;
    DIR *dir;
    int rc;

    if (!path)
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    rc = job_private_check(folder, false /* do not make the folder */, err);
    if (!rc && !access(path, F_OK))
        rc = job_list_add(list, folder, "job.db", false /* the file of the newest job */, err);
    dir = rc ? NULL : opendir(folder);
    while (dir && !rc && (item = readdir(dir))) {
        const char *end = strrchr(item->d_name, '.');

        if (end && end != item->d_name && !strcmp(end, ".db") &&
            strcmp(item->d_name, "job.db") != 0)
            rc =
                job_list_add(list, folder, item->d_name, true /* a file that was put aside */, err);
    }
    if (dir)
        closedir(dir);
    mem_free(path);
    return rc;
}

/* Adds the jobs of all folders in `root`. */
int job_list_root(struct job_list *list, const char *root, struct hvd_err *err)
{
    struct hvd_err ignored;
    struct dirent *item;
    DIR *dir = opendir(root);
    int rc = 0;

    /* A folder that another user can change is left out: its files may not be true. */
    while (dir && !rc && (item = readdir(dir))) {
        char *folder = *item->d_name == '.' ? NULL : job_path_join(root, item->d_name);

        if (folder && !job_private_check(folder, false /* do not make the folder */, &ignored))
            rc = job_list_folder(list, folder, err);
        mem_free(folder);
    }
    if (dir)
        closedir(dir);
    return rc;
}

void job_list_init(struct job_list *list)
{
    *list = (struct job_list){ .items = NULL };
}

void job_list_release(struct job_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        mem_free(list->items[i].folder);
        mem_free(list->items[i].file);
        mem_free(list->items[i].text);
    }
    VEC_RELEASE(list);
}

/* For qsort: the job that wrote something longest ago comes first; jobs with the same time are in
 * the order of their names. */
static int job_list_compare(const void *left, const void *right)
{
    const struct job_entry *a = left, *b = right;

    if (a->last_wall_us != b->last_wall_us)
        return a->last_wall_us < b->last_wall_us ? -1 : 1;
    return strcmp(a->job, b->job);
}

void job_list_sort(struct job_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), job_list_compare);
}
