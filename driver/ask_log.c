#include "driver/ask_log.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "driver/ask/json.h"
#include "os/file.h"

#include <stdio.h>
#include <string.h>

/* Past the limit the file grows until the next driver starts a new one. */
#define MOST_BYTES (2 * LIMIT_EVENTS_LOG_BYTES)

/* Where the newest lines begin. */
static struct span newest(struct span text, uint64_t lines)
{
    size_t at = text.length;

    while (lines && at) {
        at--; /* the end of a line */
        while (at && text.at[at - 1] != '\n')
            at--;
        lines--;
    }
    return (struct span){ text.at + at, text.length - at };
}

/* "TIME what happened" as a line of JSON. */
static int show_json(struct span line, struct buf *out)
{
    struct json json = { .out = out };
    struct span moment = { line.at, 0 };
    char *text;
    size_t cut;

    span_next(&line, ' ', &moment);
    cut = moment.length;
    text = mem_strndup(moment.at, cut + 1 + line.length);
    if (!text)
        return HVD_E_NOMEM;
    text[cut] = '\0';
    json_open(&json, NULL, '{');
    json_text(&json, "time", text);
    json_text(&json, "text", line.length ? text + cut + 1 : "");
    json_close(&json, '}');
    mem_free(text);
    return json.rc ? json.rc : buf_append_text(out, "\n");
}

static int show(struct span text, bool json)
{
    struct span line;
    struct buf out;
    int rc = 0;

    if (!json) {
        fwrite(text.at, 1, text.length, stdout);
        return 0;
    }
    buf_init(&out, LIMIT_CONFIG_LINE_BYTES);
    while (!rc && span_next(&text, '\n', &line)) {
        if (!line.length)
            continue;
        buf_clear(&out);
        rc = show_json(line, &out);
        if (!rc)
            fputs(buf_text(&out), stdout);
    }
    buf_release(&out);
    return rc;
}

int ask_log(const char *folder, uint64_t lines, bool json, struct hvd_err *err)
{
    char path[LIMIT_PATH_BYTES + sizeof("/events.log")];
    struct buf text;
    int rc;

    snprintf(path, sizeof(path), "%s/events.log", folder);
    buf_init(&text, MOST_BYTES);
    rc = file_read(path, &text, err);
    if (!rc) {
        rc = show(newest((struct span){ buf_text(&text), text.length }, lines), json);
        if (rc)
            err_set(err, rc, "%s: %s", path, err_text(rc));
    }
    buf_release(&text);
    return rc;
}
