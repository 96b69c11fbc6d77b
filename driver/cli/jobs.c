/*
 * jobs.c: the verb "jobs": lists the jobs of this user on this machine, living, orphaned and ended.
 * No driver is asked: job_list.c reads the state directories.
 */
#include "driver/cli/verbs.h"

#include "base/limits.h"
#include "base/mem.h"
#include "driver/cli/client.h"
#include "driver/cli/job_list.h"
#include "driver/control/json.h"
#include "driver/journal/job_path.h"
#include "os/become.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JOBS_ANSWER_BYTES ((size_t)256 * 1024 * 1024)

/* Returns the time from then_wall_us until now for an operator, in whole seconds; "-": then_wall_us
 * is 0, which means not known. */
static const char *jobs_ago(int64_t then_wall_us, char text[TIME_TEXT_MAX])
{
    int64_t ago_us = clock_wall_us() - then_wall_us;

    if (!then_wall_us)
        return "-";
    return time_format(ago_us > 0 ? ago_us / TIME_S * TIME_S : 0, text);
}

/* Writes the list as a table with a row for each job. BEGAN is the age of the job. LAST is the time
 * since a driver has last written something; for an ended job, since its end. */
static int jobs_text(const struct job_list *list, struct buf *out)
{
    const struct job_entry *entry;
    int width = 3;
    int rc;

    VEC_EACH (entry, list)
        width = (int)strlen(entry->job) > width ? (int)strlen(entry->job) : width;
    rc = buf_printf(out, "%-*s  %-8s  %-4s  %-10s  %-10s  %s\n", width, "JOB", "STATE", "CODE",
                    "BEGAN", "LAST", "STATE DIRECTORY");
    VEC_EACH (entry, list) {
        char began[TIME_TEXT_MAX], last[TIME_TEXT_MAX], status[16] = "-";

        if (entry->life == JOB_ENDED)
            snprintf(status, sizeof(status), "%d", entry->status);
        if (!rc)
            rc = buf_printf(
                out, "%-*s  %-8s  %-4s  %-10s  %-10s  %s\n", width, entry->job,
                job_life_name(entry->life), status, jobs_ago(entry->began_wall_us, began),
                jobs_ago(entry->last_wall_us, last), entry->aside ? entry->file : entry->folder);
    }
    return rc;
}

static int64_t jobs_age_us(int64_t then_wall_us)
{
    return then_wall_us ? clock_wall_us() - then_wall_us : TIME_NEVER;
}

/* Writes the list as JSON, with the same facts as the table. */
static int jobs_json(const struct job_list *list, struct buf *out)
{
    struct json json = { .out = out };
    const struct job_entry *entry;

    json_open(&json, NULL, '{');
    json_open(&json, "jobs", '[');
    VEC_EACH (entry, list) {
        json_open(&json, NULL, '{');
        json_text(&json, "job", entry->job);
        json_text(&json, "state", job_life_name(entry->life));
        if (entry->life == JOB_ENDED)
            json_number(&json, "code", (uint64_t)entry->status);
        else
            json_null(&json, "code");
        json_text(&json, "text", entry->text);
        json_seconds(&json, "age_s", jobs_age_us(entry->began_wall_us));
        json_seconds(&json, "last_s", jobs_age_us(entry->last_wall_us));
        json_text(&json, "state_dir", entry->folder);
        json_text(&json, "file", entry->file);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    return json_end(&json);
}

/* Lists the jobs of --state-dir if it is given; otherwise those in the user's own state directory,
 * where jobs are found by name. */
static int jobs_run(const struct cli_request *request, struct hvd_err *err)
{
    struct job_list list;
    struct buf out;
    char *path = NULL;
    int rc;

    job_list_init(&list);
    buf_init(&out, JOBS_ANSWER_BYTES);
    if (request->options.state_dir) {
        rc = job_path_folder(request->options.state_dir, NULL, &path, err);
        if (!rc)
            rc = become_owner(path, err); /* root may look at the jobs of any user */
        if (!rc)
            rc = job_list_folder(&list, path, err);
    } else {
        rc = job_path_root(&path, err);
        if (!rc)
            rc = job_list_root(&list, path, err);
    }
    if (!rc) {
        job_list_sort(&list);
        rc = request->options.json ? jobs_json(&list, &out) : jobs_text(&list, &out);
        if (!rc)
            rc = client_print(buf_text(&out), out.length);
        if (rc)
            err_set(err, rc, "%s", err_text(rc));
    }
    buf_release(&out);
    job_list_release(&list);
    mem_free(path);
    return rc;
}

const struct cli_verb cli_jobs = {
    .name = "jobs",
    .words = "",
    .about =
        "Lists your jobs on this machine: living, orphaned (no driver lives and the job has not "
        "ended), and ended with their exit codes.",
    .run = jobs_run,
};
