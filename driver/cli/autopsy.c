/*
 * autopsy.c: the verb "autopsy": what workers were doing when they died. The driver of the job has
 * kept it in the job's folder (control/autopsy_file.h), so the verb reads the files there, whether
 * the driver lives or not.
 */
#include "driver/cli/verbs.h"

#include "base/text.h"
#include "driver/cli/client.h"
#include "driver/control/autopsy_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Takes the worker, HOST:SLOT or HOST:SLOT#INCARNATION or #INCARNATION, out of the words, in any
 * place; the other word names the job. */
static int autopsy_read(struct cli_request *request, struct hvd_err *err)
{
    (void)err;
    for (size_t i = 0; i < request->word_count; i++) {
        const char *word = request->words[i];

        if (!strpbrk(word, ":#"))
            continue;
        memmove(&request->words[1], &request->words[0], i * sizeof(request->words[0]));
        request->words[0] = word;
        cli_add_arg(request, cli_next_word(request));
        break;
    }
    return 0;
}

/* True: the autopsy is of the worker that the operator wants; NULL: of any. */
static bool autopsy_is_wanted(const struct autopsy *autopsy, const char *wanted)
{
    const struct msg_autopsy *of = &autopsy->msg.u.autopsy;
    char number[32], name[LIMIT_HOST_NAME_BYTES + 64];

    if (!wanted)
        return true;
    snprintf(number, sizeof(number), "#%" PRIu64, autopsy->msg.incarnation);
    if (wanted[0] == '#')
        return !strcmp(wanted, number);
    snprintf(name, sizeof(name), "%s:%" PRIu32 "%s", of->host, of->slot,
             strchr(wanted, '#') ? number : "");
    return !strcmp(wanted, name);
}

/* Writes the autopsies that `wanted` matches. Each is written in full if the operator has named a
 * slot or a worker, or if there is only one; otherwise each is one line. `of_job`: the words by
 * which the verb finds the job again. *ret_count: how many match. */
static int autopsy_show(const struct autopsy_list *list, const char *wanted, const char *of_job,
                        struct buf *out, size_t *ret_count)
{
    size_t count = 0, shown = 0;
    int rc = 0;

    for (size_t i = 0; i < list->found.count; i++)
        count += autopsy_is_wanted(&list->found.items[i], wanted);
    for (size_t i = 0; !rc && i < list->found.count; i++) {
        const struct autopsy *autopsy = &list->found.items[i];

        if (!autopsy_is_wanted(autopsy, wanted))
            continue;
        if (!wanted && count > 1) {
            rc = autopsy_text_line(autopsy, out);
            continue;
        }
        rc = shown++ ? buf_append_text(out, "\n") : 0;
        if (!rc)
            rc = autopsy_text_whole(autopsy, out);
    }
    if (!rc && !wanted && count > 1)
        rc = buf_printf(out, "More of one of them: hvd-elastic autopsy %s HOST:SLOT#NUMBER\n",
                        of_job);
    *ret_count = count;
    return rc;
}

/* Prints what the folder has. */
static int autopsy_print(struct cli_request *request, const char *folder, struct hvd_err *err)
{
    const char *wanted = request->ask.args.count ? request->ask.args.items[0] : NULL;
    const char *state_dir = request->options.state_dir;
    char of_job[LIMIT_PATH_BYTES + sizeof("--state-dir ")];
    struct autopsy_list list;
    struct buf out;
    struct json json = { .out = &out };
    size_t count = 0;
    int rc = autopsy_file_list(folder, &list, err);

    if (rc)
        return rc;
    /* A job whose folder was given is not found by its name. */
    snprintf(of_job, sizeof(of_job), "%s%s", state_dir ? "--state-dir " : "",
             state_dir ? state_dir : strrchr(folder, '/') + 1);
    buf_init(&out, LIMIT_ANSWER_BYTES);
    if (request->options.json) {
        json_open(&json, NULL, '{');
        json_open(&json, "autopsies", '[');
        for (size_t i = 0; i < list.found.count; i++)
            if (autopsy_is_wanted(&list.found.items[i], wanted))
                autopsy_text_json(&list.found.items[i], &json);
        json_close(&json, ']');
        json_number(&json, "damaged", list.damaged);
        rc = json_end(&json);
    } else {
        rc = autopsy_show(&list, wanted, of_job, &out, &count);
    }
    if (!rc && request->options.json)
        fputs(buf_text(&out), stdout);
    else if (!rc && count)
        rc = client_print(buf_text(&out), out.length);
    else if (!rc && wanted)
        rc = err_set(err, HVD_E_STATE, /* HVD_E_NOTFOUND would be a job without a driver */
                     "no death of %s is known; 'hvd-elastic autopsy %s' lists those that are "
                     "(the newest %d are kept)",
                     wanted, of_job, AUTOPSIES_KEPT);
    else if (!rc)
        puts("No worker of this job has died.");
    if (rc && !(wanted && rc == HVD_E_STATE))
        err_set(err, rc, "%s: %s", folder, err_text(rc));
    if (!rc && list.damaged && !request->options.json)
        fprintf(stderr, "hvd-elastic: %zu files in %s/autopsies are damaged and left out\n",
                list.damaged, folder);
    buf_release(&out);
    autopsy_list_release(&list);
    return rc;
}

/* autopsy_print has answered for a job with a folder. A job whose journal is in etcd may have none
 * on this machine. */
static int autopsy_offline(const struct cli_request *request, const struct cli_place *place,
                           struct hvd_err *err)
{
    (void)request;
    return err_set(err, HVD_E_STATE,
                   "job %s has no state directory on this machine; ask on the machine whose driver "
                   "served the job when the worker died",
                   place->job);
}

const struct cli_verb cli_autopsy = {
    .name = "autopsy",
    .words = "[HOST:SLOT[#NUMBER]] ",
    .about = "Shows what workers were doing when they died: the collective, commit or step, what "
             "they did before, the last lines of their output, the signal or exit code, and how to "
             "get a backtrace. Without a worker, and after several deaths, a line for each.",
    .read = autopsy_read,
    .live = autopsy_print,
    .answer_offline = autopsy_offline,
};
