/*
 * report_text.c: the lines that a campaign and a replay print: one for each fault when it is over,
 * and the summary at the end.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/time.h"
#include "tests/chaos/report.h"
#include "tests/chaos/tally.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 1024

/* Appends a line. Text for which there is no memory is left out: the lines are only for a human
 * reader. */
PRINTF_LIKE(2, 3) static void say(struct buf *out, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (buf_append_text(out, line))
        return;
}

static const char *brief(int64_t us, char text[TIME_TEXT_MAX])
{
    return us < TIME_MS ? "<1ms" : time_brief(us, text);
}

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- a campaign ------------------------------------------------------------------------------ */

void report_line(const struct record *record, size_t index, struct buf *out)
{
    const struct record_fault *fault = &record->faults[index];
    char pause[TIME_TEXT_MAX];
    char whole[TIME_TEXT_MAX];

    say(out, "%5zu  %-21s  stood still %7s  whole after %7s", index + 1, fault->name,
        brief(fault->pause_us, pause), fault->hung ? "never" : brief(fault->whole_us, whole));
    say(out, "  %" PRIu64 " round%s", fault->rounds, plural(fault->rounds));
    if (fault->repeated > 0)
        say(out, ", %" PRIu64 " step%s again", fault->repeated, plural(fault->repeated));
    say(out, "  %s\n", fault->deed);
    if (fault->hung)
        say(out, "       HANGS: %s\n", fault->violation);
    else if (fault->violation[0])
        say(out, "       VIOLATION: %s\n", fault->violation);
}

static void say_kind(const struct tally_kind *kind, const char *name, struct buf *out)
{
    char text[6][TIME_TEXT_MAX];

    say(out, "%-21s %6zu %8s %8s %8s %8s  %8s %8s", name, kind->count,
        brief(kind->pause.median_us, text[0]), brief(kind->pause.p90_us, text[1]),
        brief(kind->pause.p99_us, text[2]), brief(kind->pause.most_us, text[3]),
        brief(kind->whole.median_us, text[4]), brief(kind->whole.most_us, text[5]));
    say(out, " %7" PRIu64 " %7" PRIu64 "\n", kind->rounds, kind->repeated);
}

static const char *reason_of(const char *skipped)
{
    const char *colon = strchr(skipped, ':');

    return colon ? colon : "";
}

/* Says how many kinds of faults the driver's log names. */
static void say_named(const struct tally *tally, struct buf *out)
{
    size_t named = 0, quiet = 0;

    for (size_t i = 0; i < tally->count; i++) {
        named += tally->kinds[i].named > 0;
        quiet += tally->kinds[i].quiet;
    }
    say(out,
        "the log: warnings and errors name %" PRIu64 " victims of %zu kinds of faults; %zu kinds "
        "are quiet on purpose\n",
        tally->all.named, named, quiet);
    for (size_t i = 0; i < tally->count; i++)
        if (!tally->kinds[i].named && !tally->kinds[i].quiet)
            say(out, "the log was not judged: %s\n", tally->kinds[i].name);
}

int report_summary(const struct record *record, const struct steps *steps, struct buf *out)
{
    char text[3][TIME_TEXT_MAX];
    struct tally tally;
    int rc = tally_take(&tally, record);

    if (!rc) {
        const char *reason;

        say(out, "\n%-21s %6s %8s %8s %8s %8s  %8s %8s %7s %7s\n", "", "", "stood", "still", "", "",
            "whole", "again", "", "steps");
        say(out, "%-21s %6s %8s %8s %8s %8s  %8s %8s %7s %7s\n", "fault", "times", "median", "p90",
            "p99", "most", "median", "most", "rounds", "again");
        for (size_t i = 0; i < tally.count; i++)
            say_kind(&tally.kinds[i], tally.kinds[i].name, out);
        say_kind(&tally.all, "all", out);
        say(out, "\n%s: %zu steps, %" PRIu64 " of them again; a step in peace %s; ", record->title,
            steps->count, tally.all.repeated, time_brief(record->usual_us, text[0]));
        say(out, "stood still %s of %s\n", time_brief(tally.all.pause.sum_us, text[1]),
            time_brief(record->ended_us - record->began_us, text[2]));
        say_named(&tally, out);
        for (size_t i = 0; i < record->fault_count; i++) {
            const struct record_fault *fault = &record->faults[i];

            if (fault->violation[0] || fault->hung)
                say(out, "%s: fault %zu, %s (%s): %s\n", fault->hung ? "HANGS" : "VIOLATION", i + 1,
                    fault->name, fault->deed, fault->violation);
        }
        /* Appends "not done: link-down, wall: hosts are one machine": faults with the same reason
         * share a line. */
        reason = NULL;
        for (size_t i = 0; i < record->skipped_count; i++) {
            const char *skipped = record->skipped[i];
            int name = (int)strcspn(skipped, ":");

            if (reason && !strcmp(reason, reason_of(skipped)))
                say(out, ", %.*s", name, skipped);
            else
                say(out, "%s%snot done: %.*s", reason ? reason : "", reason ? "\n" : "", name,
                    skipped);
            reason = reason_of(skipped);
        }
        if (reason)
            say(out, "%s\n", reason);
        if (record->broken_off)
            say(out, "broken off: the samples and the end were not judged\n");
        say(out, "%zu faults, %zu violation%s, %zu hang%s\n", record->fault_count,
            record->violations, plural(record->violations), record->hangs, plural(record->hangs));
    }
    tally_release(&tally);
    return rc;
}

/* ---- a replay -------------------------------------------------------------------------------- */

static void say_share(const struct replay *replay, const char *what, int64_t part, struct buf *out)
{
    say(out, "  %-34s %9.1f worker-s %6.2f %%\n", what, (double)part / (double)TIME_S,
        percent(part, replay->available_us));
}

void report_replay(const struct replay *replay, const struct steps *steps, struct buf *out)
{
    int64_t known =
        replay->useful_us + replay->lost_pause_us + replay->lost_again_us + replay->lost_boot_us;
    char took[TIME_TEXT_MAX];
    char usual[TIME_TEXT_MAX];

    say(out, "%s: goodput %.1f %% (the limit is %.1f %%)\n", replay->title,
        percent(replay->useful_us, replay->available_us),
        percent(replay->limit_us, replay->available_us));
    say_share(replay, "available", replay->available_us, out);
    say_share(replay, "useful", replay->useful_us, out);
    say_share(replay, "lost: there, and did not train", replay->lost_boot_us, out);
    say_share(replay, "lost: stood still between rounds", replay->lost_pause_us, out);
    say_share(replay, "lost: steps done again", replay->lost_again_us, out);
    say_share(replay, "lost: rest", replay->available_us - known, out);
    say(out, "%zu lines, %" PRIu64 " steps kept, %" PRIu64 " done again, %" PRIu64 " new rounds, ",
        steps->count, replay->steps, replay->repeated, replay->rounds);
    say(out, "%zu changes of hosts in %s; a step in peace %s; %s\n", replay->change_count,
        time_brief(replay->ended_us - replay->began_us, took), time_brief(replay->usual_us, usual),
        replay->machine);
    if (replay->violations > 0)
        say(out, "VIOLATION: %s\n", replay->violation);
}
