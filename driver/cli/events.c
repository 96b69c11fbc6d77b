/*
 * events.c: the verb "events": shows what has happened to the job, one line for each event. A
 * driver answers from its memory (control/events.c). Without a driver the lines come from
 * events.log in the job's folder, to which all drivers of the job have appended. The lines look the
 * same in both cases.
 */
#include "driver/cli/verbs.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "driver/cli/client.h"
#include "driver/control/tables.h"
#include "os/file.h"

#include <inttypes.h>
#include <stdio.h>

/* The driver renames a file of more than LIMIT_EVENTS_LOG_BYTES, but until then the file may have
 * some more bytes. */
#define LOG_BYTES_MAX (2 * LIMIT_EVENTS_LOG_BYTES)

static int events_read(struct cli_request *request, struct hvd_err *err)
{
    (void)err;
    snprintf(request->number, sizeof(request->number), "%" PRIu64, request->options.lines);
    cli_add_arg(request, request->number);
    request->ask.follow = request->options.follow;
    return 0;
}

/* Prints the newest lines of events.log, as they are or each as one line of JSON. */
static int events_answer_offline(const struct cli_request *request, const char *folder,
                                 struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES + sizeof("/events.log")];
    uint64_t lines = request->options.lines;
    struct span rest, line, moment;
    struct buf text;
    struct buf out;
    size_t at;
    char *words;
    int rc;

    snprintf(path, sizeof(path), "%s/events.log", folder);
    buf_init(&text, LOG_BYTES_MAX);
    buf_init(&out, LIMIT_CONFIG_LINE_BYTES);
    rc = file_read(path, &text, err);
    if (!rc) {
        /* Moves `at` back to the beginning of the newest `lines` lines. Each line ends in a
         * newline. */
        for (at = text.length; lines && at; lines--) {
            at--;
            while (at && buf_text(&text)[at - 1] != '\n')
                at--;
        }
        rest = (struct span){ buf_text(&text) + at, text.length - at };
        if (!request->options.json)
            rc = client_print(rest.at, rest.length);
        /* A line of the file is "TIME TEXT". */
        while (request->options.json && !rc && span_next(&rest, '\n', &line)) {
            if (!line.length)
                continue;
            moment = (struct span){ line.at, 0 };
            span_next(&line, ' ', &moment);
            words = mem_strndup(moment.at, moment.length + 1 + line.length);
            if (words) {
                words[moment.length] = '\0';
                buf_clear(&out);
                rc = table_event(words, line.length ? words + moment.length + 1 : "",
                                 true /* as JSON */, &out);
                if (!rc)
                    fputs(buf_text(&out), stdout);
            } else {
                rc = HVD_E_NOMEM;
            }
            mem_free(words);
        }
        if (rc)
            err_set(err, rc, "%s: %s", path, err_text(rc));
    }
    buf_release(&out);
    buf_release(&text);
    return rc;
}

const struct cli_verb cli_events = {
    .name = "events",
    .words = "",
    .about = "Shows what has happened to the job.",
    .read = events_read,
    .answer_offline = events_answer_offline,
};
