/*
 * orphans.c: finds the job of a verb. cli.c calls it. A verb without the name of a job is for the
 * only driver that lives, and a job whose driver has died is easily forgotten: so it is named.
 * Invariant: without its name nothing is done to such a job.
 */
#include "driver/cli/orphans.h"

#include "base/mem.h"
#include "driver/cli/find_job.h"
#include "driver/cli/job_list.h"
#include "driver/journal/job_path.h"

#include <stdio.h>
#include <string.h>

#define ORPHANS_NAMED 8 /* at most so many orphans are named */

/* Writes which orphans are in the list, and the command for the first one; an empty text: there is
 * none. `answers`: the verb answers for an orphan too. */
static int orphans_text(const struct job_list *list, const char *verb, bool answers,
                        struct buf *out)
{
    const struct job_entry *entry;
    const char *first = NULL;
    size_t count = 0, named = 0;
    int rc = 0;

    VEC_EACH (entry, list)
        count += entry->life == JOB_ORPHANED;
    if (count > 1)
        rc = buf_printf(out, "%zu jobs have no driver: ", count);
    VEC_EACH (entry, list) {
        const char *name = strrchr(entry->folder, '/') + 1;

        if (rc || entry->life != JOB_ORPHANED || named == ORPHANS_NAMED)
            continue;
        first = first ? first : name;
        rc = buf_printf(out, "%s%s", count == 1 ? "job " : named ? ", " : "", name);
        named++;
    }
    if (!rc && count > ORPHANS_NAMED)
        rc = buf_append_text(out, ", ...");
    if (!rc && count)
        rc = buf_printf(out,
                        answers ? "%s; name %s: hvd-elastic %s %s"
                                : "%s; take %s over with: hvd-elastic %s %s",
                        count == 1 ? " has no driver" : "", count == 1 ? "it" : "one of them",
                        answers ? verb : "--resume", first);
    return rc;
}

int orphans_find_job(const struct cli_request *request, char **ret_folder, struct hvd_err *err)
{
    const struct cli_verb *verb = request->verb;
    bool answers = verb->answer_offline ||
                   /* "clear" of "blacklist" needs a driver */
                   (verb->orphan_table && !strcmp(request->ask.verb, verb->name));
    int rc = cli_find_job(request->options.state_dir, request->job, ret_folder, err);
    struct job_list list;
    char *root = NULL;
    struct buf text;

    if (request->options.state_dir || request->job ||
        (rc != HVD_E_NOTFOUND && (!answers || request->options.json)))
        return rc;
    job_list_init(&list);
    buf_init(&text, LIMIT_REASON_BYTES);
    /* The names are a help: a failure of the search changes nothing for the verb. */
    if (!job_path_root(&root, NULL) && !job_list_root(&list, root, NULL)) {
        job_list_sort(&list);
        if (!orphans_text(&list, verb->name, answers, &text) && text.length) {
            if (rc == HVD_E_NOTFOUND)
                rc = err_set(err, rc, "%s", buf_text(&text));
            else
                fprintf(stderr, "hvd-elastic: %s\n", buf_text(&text));
        }
    }
    buf_release(&text);
    job_list_release(&list);
    mem_free(root);
    return rc;
}
