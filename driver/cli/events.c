/*
 * events.c: the verb "events": shows what has happened to the job, one line for each event. A
 * driver answers from its memory (control/events.c). Without a driver the lines come from
 * events.log in the job's folder, to which all drivers of the job have appended. A line looks the
 * same from either.
 */
#include "driver/cli/verbs.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "driver/cli/client.h"
#include "driver/control/events.h"
#include "driver/control/tables.h"

#include <inttypes.h>
#include <stdio.h>

#define ESCAPED_MAX 6 /* one byte of the file becomes at most 6 bytes of JSON, \u001f */

/* Makes the request: its argument is the number of lines, and --follow keeps the answer going. */
static int events_read_words(struct cli_request *request, struct hvd_err *err)
{
    (void)err;
    snprintf(request->number, sizeof(request->number), "%" PRIu64, request->options.lines);
    cli_add_arg(request, request->number);
    request->ask.follow = request->options.follow;
    return 0;
}

/* Prints one line of events.log: as text without the facts at its end, or as JSON. `out` is memory
 * for the text that is made. */
static int events_print_line(struct span line, bool json, struct buf *out)
{
    struct events_parsed parsed = events_parse(line);
    char *moment = mem_strndup(parsed.moment.at, parsed.moment.length);
    char *text = mem_strndup(parsed.text.at, parsed.text.length);
    char *facts = mem_strndup(parsed.facts.at, parsed.facts.length);
    int rc = HVD_E_NOMEM;

    buf_clear(out);
    if (moment && text && facts)
        rc = table_event(moment, parsed.level, text, facts, json, out);
    if (!rc && json)
        fputs(buf_text(out), stdout);
    else if (!rc)
        rc = client_print(buf_text(out), out->length);
    mem_free(moment);
    mem_free(text);
    mem_free(facts);
    return rc;
}

/* Answers without a driver: prints the newest lines of events.log in the job's folder, as text or
 * each as one line of JSON. */
static int events_answer_offline(const struct cli_request *request, const struct cli_place *place,
                                 struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES + sizeof("/events.log")];
    uint64_t lines = request->options.lines;
    struct span rest, line;
    struct buf text;
    struct buf out;
    size_t at;
    int rc;

    if (!place->folder)
        return err_set(err, HVD_E_NOTFOUND,
                       "job %s has no state directory on this machine; ask on the machine of its "
                       "last driver",
                       place->job);
    snprintf(path, sizeof(path), "%s/events.log", place->folder);
    buf_init(&text, EVENTS_FILE_MAX);
    buf_init(&out, ESCAPED_MAX * EVENTS_FILE_MAX);
    rc = events_read(path, &text, err);
    if (!rc) {
        /* Moves `at` from the end of the text back to the beginning of the newest `lines` lines.
         * Each line ends in a newline. */
        for (at = text.length; lines && at; lines--) {
            at--;
            while (at && buf_text(&text)[at - 1] != '\n')
                at--;
        }
        rest = (struct span){ buf_text(&text) + at, text.length - at };
        while (!rc && span_next(&rest, '\n', &line))
            if (line.length)
                rc = events_print_line(line, request->options.json, &out);
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
    .read = events_read_words,
    .answer_offline = events_answer_offline,
};
