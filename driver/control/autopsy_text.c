/*
 * autopsy_text.c: shows an autopsy. The verb "autopsy" calls it. Invariant: any AUTOPSY that
 * msg_decode accepts is shown, since agents, and the files of the folder, are foreign input.
 */
#include "driver/control/autopsy_text.h"

#include "base/limits.h"
#include "base/text.h"
#include "base/time.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define END_MAX   128
#define LABEL     "  %-11s"
#define DOING_MAX 256

/* Returns how the worker ended: "killed by signal 11 (SIGSEGV)". */
static const char *autopsy_end(const struct msg_autopsy *of, char text[END_MAX])
{
    char name[TEXT_SIGNAL_MAX];

    switch ((enum msg_ended)of->ended) {
    case ENDED_EXIT: snprintf(text, END_MAX, "exit code %" PRId32, of->value); break;
    case ENDED_SIGNAL: snprintf(text, END_MAX, "killed by %s", text_signal(of->value, name)); break;
    case ENDED_SILENT:
        snprintf(text, END_MAX, "silent for longer than its lease, and killed by its agent");
        break;
    case ENDED_NOT:
    case ENDED_COUNT: snprintf(text, END_MAX, "alive in a stall"); break;
    }
    return text;
}

/* Writes "allreduce 2.17, 4096 bytes": the name, its round and its number. */
static const char *autopsy_activity(const struct msg_activity *activity, char text[DOING_MAX])
{
    int length = snprintf(text, DOING_MAX, "%s", activity->name);

    if (activity->round)
        length += snprintf(text + length, DOING_MAX - (size_t)length, " %" PRIu64, activity->round);
    if (activity->round && activity->number)
        length +=
            snprintf(text + length, DOING_MAX - (size_t)length, ".%" PRIu64, activity->number);
    if (activity->bytes)
        snprintf(text + length, DOING_MAX - (size_t)length, ", %" PRIu64 " bytes", activity->bytes);
    return text;
}

/* Returns what the worker was doing: "in allreduce 2.17, 4096 bytes, for 12ms". */
static const char *autopsy_doing(const struct msg_autopsy *of, char text[DOING_MAX])
{
    const struct msg_activity *last =
        NULL; /* of those that had not ended, the one that began last */
    char what[DOING_MAX], time[TIME_TEXT_MAX], step[64] = "";

    for (size_t i = 0; i < of->activities.count; i++)
        if (of->activities.items[i].took_us == TIME_NEVER)
            last = &of->activities.items[i];
    if (of->step)
        snprintf(step, sizeof(step), ", in step %" PRIu64, of->step);
    if (!of->activities.count)
        snprintf(text, DOING_MAX, "nothing that the library knows: it had not called hvd_init");
    else if (of->step && (!last || !strcmp(last->name, "train")))
        snprintf(text, DOING_MAX, "code of the program, in round %" PRIu64 "%s", of->last_round,
                 step);
    else if (!last)
        snprintf(text, DOING_MAX, "no call of the library: its part in the job was over");
    else if (!strcmp(last->name, "begin") || !strcmp(last->name, "agree"))
        snprintf(text, DOING_MAX, "waiting for its next round, for %s",
                 time_brief(last->ago_us, time));
    else
        snprintf(text, DOING_MAX, "%.160s, for %s%s", autopsy_activity(last, what),
                 time_brief(last->ago_us, time), step);
    return text;
}

/* Writes "HOST:SLOT#INCARNATION, rank 1 of 4: END". */
static int autopsy_title(const struct msg *msg, struct buf *out)
{
    const struct msg_autopsy *of = &msg->u.autopsy;
    char end[END_MAX];
    int rc = buf_printf(out, "%s:%" PRIu32 "#%" PRIu64, of->host, of->slot, msg->incarnation);

    if (!rc && of->size)
        rc = buf_printf(out, ", rank %" PRIu32 " of %" PRIu32, of->rank, of->size);
    return rc ? rc : buf_printf(out, ": %s", autopsy_end(of, end));
}

int autopsy_text_line(const struct autopsy *autopsy, struct buf *out)
{
    char stamp[TIME_STAMP_MAX], doing[DOING_MAX];
    int rc = buf_printf(out, "%s ", time_stamp(autopsy->wall_us, stamp));

    if (!rc)
        rc = autopsy_title(&autopsy->msg, out);
    return rc ? rc : buf_printf(out, "; %s\n", autopsy_doing(&autopsy->msg.u.autopsy, doing));
}

/* Writes the end of a stream of output, each line behind a bar. */
static int autopsy_output(const char *label, struct msg_bytes bytes, struct buf *out)
{
    struct span rest = { (const char *)bytes.at, bytes.length }, line;
    int rc = 0;

    if (rest.length && rest.at[rest.length - 1] == '\n')
        rest.length--;
    if (!bytes.length)
        return buf_printf(out, LABEL "nothing was printed\n", label);
    while (!rc && span_next(&rest, '\n', &line)) {
        rc = buf_printf(out, LABEL "| ", label);
        if (!rc)
            rc = buf_append(out, line.at, line.length);
        if (!rc)
            rc = buf_append_text(out, "\n");
        label = "";
    }
    return rc;
}

/* Says how the operator gets a backtrace. */
static int autopsy_backtrace(const struct msg_autopsy *of, struct buf *out)
{
    /* The signals after which the kernel writes a core file, if the machine lets it. */
    static const int dumping[] = { SIGSEGV, SIGABRT, SIGBUS,  SIGFPE,  SIGILL,
                                   SIGQUIT, SIGSYS,  SIGTRAP, SIGXCPU, SIGXFSZ };
    const char *pattern = of->core_pattern;
    bool dumps = false;

    for (size_t i = 0; i < ARRAY_SIZE(dumping); i++)
        dumps = dumps || (of->ended == ENDED_SIGNAL && dumping[i] == of->value);
    if (of->ended == ENDED_NOT)
        return buf_printf(out,
                          LABEL "while it lives, on %s: gdb -p %" PRIu64
                                " -batch -ex 'thread apply all backtrace'; of Python: py-spy dump "
                                "--pid %" PRIu64 "\n",
                          "backtrace", of->host, of->pid, of->pid);
    if (of->ended == ENDED_SIGNAL && of->value == SIGKILL && !of->reason[0])
        return buf_printf(out,
                          LABEL "none after SIGKILL; this job has not sent it: look for the OOM "
                                "killer in the kernel's log of %s (journalctl -k)\n",
                          "backtrace", of->host);
    if (!dumps)
        return 0;
    if (of->dumped && strstr(pattern, "systemd-coredump"))
        return buf_printf(out, LABEL "on %s: coredumpctl debug %" PRIu64 "\n", "backtrace",
                          of->host, of->pid);
    if (of->dumped)
        return buf_printf(out,
                          LABEL "%s has a core file (core_pattern \"%s\", process %" PRIu64
                                "): gdb PROGRAM CORE, then: thread apply all backtrace\n",
                          "backtrace", of->host, pattern, of->pid);
    return buf_printf(out,
                      LABEL "no core file; the next death leaves one if \"ulimit -c unlimited\" "
                            "holds for the agent on %s (core_pattern \"%s\")\n",
                      "backtrace", of->host, pattern);
}

/* Writes an activity as a line. */
static int autopsy_one(const struct msg_autopsy *of, size_t at, struct buf *out)
{
    const struct msg_activity *activity = &of->activities.items[at];
    char ago[TIME_TEXT_MAX], took[TIME_TEXT_MAX], what[DOING_MAX];
    int rc = buf_printf(out, LABEL "%8s %s  %s, ", at ? "" : "activities",
                        time_brief(activity->ago_us, ago), of->ended ? "before" : "ago",
                        autopsy_activity(activity, what));

    if (!rc && activity->took_us == TIME_NEVER)
        return buf_append_text(out, "not ended\n");
    if (!rc)
        rc = buf_printf(out, "took %s", time_brief(activity->took_us, took));
    if (!rc && activity->code)
        rc = buf_printf(out, ": %s", err_name(activity->code));
    return rc ? rc : buf_append_text(out, "\n");
}

int autopsy_text_whole(const struct autopsy *autopsy, struct buf *out)
{
    const struct msg_autopsy *of = &autopsy->msg.u.autopsy;
    char stamp[TIME_STAMP_MAX], ran[TIME_TEXT_MAX], doing[DOING_MAX];
    int rc = autopsy_title(&autopsy->msg, out);

    if (!rc)
        rc = buf_printf(out, "\n" LABEL "%s, after %s, process %" PRIu64 "\n", "when",
                        time_stamp(autopsy->wall_us, stamp), time_brief(of->ran_us, ran), of->pid);
    if (!rc && of->reason[0])
        rc = buf_printf(out, LABEL "%s\n", "reason", of->reason);
    if (!rc)
        rc = buf_printf(out, LABEL "%s\n", "doing", autopsy_doing(of, doing));
    for (size_t i = 0; !rc && i < of->activities.count; i++)
        rc = autopsy_one(of, i, out);
    if (!rc)
        rc = autopsy_output("stdout", of->output, out);
    if (!rc)
        rc = autopsy_output("stderr", of->errors, out);
    return rc ? rc : autopsy_backtrace(of, out);
}

/* Adds the end of a stream of output as a text; bytes that are not UTF-8 become U+FFFD. */
static void autopsy_json_output(struct json *json, const char *name, struct msg_bytes bytes)
{
    char text[LIMIT_STDERR_TAIL_BYTES + 1];
    size_t length = 0;

    for (size_t i = 0; i < bytes.length && i < LIMIT_STDERR_TAIL_BYTES; i++)
        text[length++] = bytes.at[i] ? (char)bytes.at[i] : '?';
    text[length] = '\0';
    json_text(json, name, text);
}

void autopsy_text_json(const struct autopsy *autopsy, struct json *json)
{
    const struct msg_autopsy *of = &autopsy->msg.u.autopsy;
    char stamp[TIME_STAMP_MAX], text[DOING_MAX];

    json_open(json, NULL, '{');
    json_text(json, "time", time_stamp(autopsy->wall_us, stamp));
    json_text(json, "host", of->host);
    json_number(json, "slot", of->slot);
    json_number(json, "incarnation", autopsy->msg.incarnation);
    json_number(json, "pid", of->pid);
    if (of->size) {
        json_number(json, "rank", of->rank);
        json_number(json, "size", of->size);
    } else {
        json_null(json, "rank");
        json_null(json, "size");
    }
    json_text(json, "ended", autopsy_end(of, text));
    if (of->ended == ENDED_EXIT)
        json_raw(json, "exit_code", (snprintf(text, sizeof(text), "%" PRId32, of->value), text));
    else
        json_null(json, "exit_code");
    if (of->ended == ENDED_SIGNAL && of->value > 0)
        json_number(json, "signal", (uint64_t)of->value);
    else
        json_null(json, "signal");
    json_seconds(json, "ran_s", of->ran_us);
    json_text(json, "reason", of->reason);
    json_number(json, "round", of->last_round);
    json_number(json, "step", of->step);
    json_text(json, "doing", autopsy_doing(of, text));
    json_open(json, "activities", '[');
    for (size_t i = 0; i < of->activities.count; i++) {
        const struct msg_activity *activity = &of->activities.items[i];

        json_open(json, NULL, '{');
        json_text(json, "name", activity->name);
        json_number(json, "round", activity->round);
        json_number(json, "number", activity->number);
        json_number(json, "bytes", activity->bytes);
        json_seconds(json, "ago_s", activity->ago_us);
        json_seconds(json, "took_s", activity->took_us);
        json_text(json, "code", activity->code ? err_name(activity->code) : "");
        json_close(json, '}');
    }
    json_close(json, ']');
    autopsy_json_output(json, "stdout", of->output);
    autopsy_json_output(json, "stderr", of->errors);
    json_bool(json, "dumped", of->dumped);
    json_text(json, "core_pattern", of->core_pattern);
    json_close(json, '}');
}
