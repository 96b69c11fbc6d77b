/*
 * trace.c: reads a trace of machines that come and go, and refuses an impossible line with its
 * number and a remedy.
 */
#include "tests/chaos/trace.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "base/vec.h"
#include "os/file.h"

#include <string.h>

#define TRACE_BYTES  (16 * 1024 * 1024)
#define TRACE_EVENTS (512 * 1024)
#define TRACE_NODES  4096 /* the most nodes; they are searched one by one */

/* The state of the reader: which nodes are present. */
struct reading {
    struct trace *trace;
    bool there[TRACE_NODES];
    uint64_t line;
    struct hvd_err *err;
};

static int refuse(const struct reading *reading, const struct span *culprit, const char *why)
{
    char quoted[TEXT_QUOTE_MAX];

    return err_set(reading->err, HVD_E_INVAL, "line %llu: %s: %s",
                   (unsigned long long)reading->line,
                   text_quote(culprit->at, culprit->length, quoted), why);
}

static int no_room(const struct reading *reading, int rc, const char *what, unsigned long long most)
{
    if (rc == HVD_E_LIMIT)
        return err_set(reading->err, rc, "line %llu: more than %llu %s; cut the trace in pieces",
                       (unsigned long long)reading->line, most, what);
    return err_set(reading->err, rc, "line %llu: no memory for more %s",
                   (unsigned long long)reading->line, what);
}

static bool good_name(const struct span *name)
{
    if (name->length == 0 || name->length >= sizeof(*((struct trace *)NULL)->nodes))
        return false;
    for (size_t i = 0; i < name->length; i++)
        if (name->at[i] <= ' ' || name->at[i] > '~' || name->at[i] == ',')
            return false;
    return true;
}

/* The index of a name; a new name gets the next index. */
static int find_node(struct reading *reading, const struct span *name, uint32_t *ret_node)
{
    struct trace *trace = reading->trace;
    int rc;

    for (size_t i = 0; i < trace->node_count; i++)
        if (span_is(*name, trace->nodes[i])) {
            *ret_node = (uint32_t)i;
            return 0;
        }
    if (!good_name(name))
        return refuse(reading, name, "not the name of a node; give it 1 to 63 letters and digits");
    rc = vec_reserve(&trace->nodes, &trace->node_room, trace->node_count, 1, TRACE_NODES,
                     sizeof(*trace->nodes));
    if (rc)
        return no_room(reading, rc, "nodes", TRACE_NODES);
    memcpy(trace->nodes[trace->node_count], name->at, name->length);
    trace->nodes[trace->node_count][name->length] = '\0';
    *ret_node = (uint32_t)trace->node_count++;
    return 0;
}

static int read_time(struct reading *reading, struct span text, int64_t *ret_us)
{
    const struct trace *trace = reading->trace;
    uint64_t ms;
    int rc = text_parse_u64(text, 0, LIMIT_DURATION_US / TIME_MS, "the time in milliseconds", &ms,
                            reading->err);

    if (rc)
        return err_prefix(reading->err, rc, "line %llu", (unsigned long long)reading->line);
    *ret_us = (int64_t)ms * TIME_MS;
    if (trace->count > 0 && *ret_us < trace->events[trace->count - 1].at_us)
        return refuse(reading, &text, "earlier than the line before; sort the lines by time");
    return 0;
}

/* Reads a line MILLISECONDS,add|remove,NODE. */
static int read_line(struct reading *reading, struct span line)
{
    struct trace *trace = reading->trace;
    struct trace_event event = { .at_us = 0 };
    struct span whole = line;
    struct span time;
    struct span word;
    int rc;

    if (!span_next(&line, ',', &time) || !span_next(&line, ',', &word) || !line.at)
        return refuse(reading, &whole, "write MILLISECONDS,add|remove,NODE");
    rc = read_time(reading, time, &event.at_us);
    if (rc)
        return rc;
    event.add = span_is(word, "add");
    if (!event.add && !span_is(word, "remove"))
        return refuse(reading, &word, "write add or remove");
    rc = find_node(reading, &line, &event.node);
    if (rc)
        return rc;
    if (event.add == reading->there[event.node])
        return refuse(reading, &line,
                      event.add ? "it is there already; take this line or the add before it out"
                                : "it is not there; take this line out, or add it before");
    rc = vec_reserve(&trace->events, &trace->room, trace->count, 1, TRACE_EVENTS,
                     sizeof(*trace->events));
    if (rc)
        return no_room(reading, rc, "events", TRACE_EVENTS);
    reading->there[event.node] = event.add;
    trace->events[trace->count++] = event;
    return 0;
}

int trace_parse(struct trace *trace, const char *text, size_t length, struct hvd_err *err)
{
    struct span rest = { text, length };
    struct reading reading = { .trace = trace, .err = err };
    struct span line;
    int rc = 0;

    memset(trace, 0, sizeof(*trace));
    if (length > 0 && text[length - 1] == '\n')
        rest.length--;
    while (!rc && length > 0 && span_next(&rest, '\n', &line)) {
        reading.line++;
        if (line.length > 0 && line.at[line.length - 1] == '\r')
            line.length--;
        rc = read_line(&reading, line);
    }
    if (!rc && trace->count == 0)
        return err_set(err, HVD_E_INVAL, "no events; write lines of MILLISECONDS,add|remove,NODE");
    return rc;
}

int trace_load(struct trace *trace, const char *path, struct hvd_err *err)
{
    struct buf text;
    int rc;

    memset(trace, 0, sizeof(*trace));
    buf_init(&text, TRACE_BYTES + 1);
    rc = file_read(path, &text, err);
    if (!rc && text.length > TRACE_BYTES)
        rc = err_set(err, HVD_E_LIMIT, "%s: longer than %d MiB; cut the trace in pieces", path,
                     TRACE_BYTES / 1024 / 1024);
    else if (!rc) {
        rc = trace_parse(trace, buf_text(&text), text.length, err);
        if (rc)
            err_prefix(err, rc, "%s", path);
    }
    buf_release(&text);
    return rc;
}

void trace_release(struct trace *trace)
{
    if (!trace)
        return;
    mem_free(trace->events);
    mem_free(trace->nodes);
    memset(trace, 0, sizeof(*trace));
}
