/*
 * summary.c: the lines that a driver logs when its job has ended: rounds, time training and time
 * lost by cause, failures by host, the checkpoint, where the logs are. driver/io/shown.c calls it
 * with the last view of the core; tables.c uses the words for goodput. Invariant: the number of
 * lines does not grow with the number of hosts that have failed.
 */
#include "driver/control/summary.h"

#include "base/panic.h"
#include "base/time.h"
#include "proto/commit.h"

#include <inttypes.h>
#include <stdio.h>

/* The most hosts with failures that summary_write names. */
#define SUMMARY_HOSTS 6

/* The uses of the workers' time, in words for operators. */
static const char *const words[] = {
    [GOODPUT_TRAINING] = "training",
    [GOODPUT_START] = "start",
    [GOODPUT_RECOVERY] = "recovery",
    [GOODPUT_REBUILD] = "rebuilding rounds",
    [GOODPUT_SWITCH] = "switches",
    [GOODPUT_WAITING] = "waiting for workers",
    [GOODPUT_LOST_STEPS] = "steps made again",
    [GOODPUT_NO_DRIVER] = "without a driver",
    [GOODPUT_ENDING] = "the end",
};

const char *goodput_words(enum goodput_use use)
{
    ASSERT((size_t)use < ARRAY_SIZE(words));
    return words[use];
}

/* Returns the time of all workers together, of all uses. TIME_NEVER: the sum is too large for a
 * number. */
static int64_t goodput_whole(const struct view_goodput *goodput)
{
    int64_t whole_us = 0;

    for (enum goodput_use use = GOODPUT_TRAINING; use < GOODPUT_COUNT; use++)
        whole_us = time_add(whole_us, goodput->sums[use].worker_us);
    return whole_us;
}

/* Returns the part of the time of all workers that was training; 0 if no time was counted. */
double goodput_ratio(const struct view_goodput *goodput)
{
    int64_t whole_us = goodput_whole(goodput);

    return whole_us ? (double)goodput->sums[GOODPUT_TRAINING].worker_us / (double)whole_us : 0;
}

/* Writes goodput_ratio as a percentage with one digit behind the point, rounded down. */
const char *goodput_part(const struct view_goodput *goodput, char text[GOODPUT_PART_MAX])
{
    int per_mille = (int)(goodput_ratio(goodput) * 1000);

    snprintf(text, GOODPUT_PART_MAX, "%d.%d%%", per_mille / 10, per_mille % 10);
    return text;
}

/* Writes how long workers did not train, for each cause with some time, and a newline; "none" if
 * they always trained. */
int goodput_causes(const struct view_goodput *goodput, struct buf *out)
{
    const char *separator = "";
    char text[TIME_TEXT_MAX];
    int rc = 0;

    for (enum goodput_use use = GOODPUT_TRAINING + 1; use < GOODPUT_COUNT && !rc; use++) {
        if (!goodput->sums[use].worker_us)
            continue;
        rc = buf_printf(out, "%s%s %s", separator, goodput_words(use),
                        time_brief(goodput->sums[use].worker_us, text));
        separator = ", ";
    }
    return rc ? rc : buf_append_text(out, *separator ? "\n" : "none\n");
}

/* Writes the line of status about goodput, the part of the workers' time that was training. No line
 * before any time was counted. */
int goodput_line(const struct view_goodput *goodput, struct buf *out)
{
    char part[GOODPUT_PART_MAX], text[TIME_TEXT_MAX];
    int64_t whole_us = goodput_whole(goodput);
    int rc;

    if (!whole_us)
        return 0;
    rc = buf_printf(out, "goodput    %s of %s of workers' time; not training: ",
                    goodput_part(goodput, part), time_brief(whole_us, text));
    return rc ? rc : goodput_causes(goodput, out);
}

/* Writes the objects "goodput" (the time of each use) and "failures" (of workers, by host) into the
 * open object. */
void goodput_json(const struct view_goodput *goodput, struct json *json)
{
    int64_t whole_us = goodput_whole(goodput);

    json_open(json, "goodput", '{');
    json_seconds(json, "part", whole_us ? (int64_t)(goodput_ratio(goodput) * TIME_S) : TIME_NEVER);
    for (enum goodput_use use = GOODPUT_TRAINING; use < GOODPUT_COUNT; use++) {
        json_open(json, goodput_use_name(use), '{');
        json_seconds(json, "worker_s", goodput->sums[use].worker_us);
        json_seconds(json, "s", goodput->sums[use].time_us);
        json_close(json, '}');
    }
    json_close(json, '}');
    json_open(json, "failures", '[');
    for (size_t i = 0; i < goodput->failure_count; i++) {
        json_open(json, NULL, '{');
        json_text(json, "host", goodput->failures[i].host);
        json_number(json, "count", goodput->failures[i].count);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Writes the lines that the driver logs at the end of its job: rounds, time trained and lost,
 * failures by host, checkpoint, logs. */
int summary_write(const struct core_view *view, const struct table_facts *facts, struct buf *out)
{
    const struct view_goodput *goodput = &view->goodput;
    const struct view_checkpoint *checkpoint = &view->checkpoint;
    size_t named = 0, count = goodput->failure_count;
    char text[TIME_TEXT_MAX], part[GOODPUT_PART_MAX];
    uint64_t last_count = UINT64_MAX;
    int rc;

    if (view->round)
        rc = buf_printf(out,
                        "rounds: %" PRIu64 ", the last of %zu workers from commit %" PRIu64
                        ".%" PRIu32 "; drivers: %" PRIu64 "\n",
                        (uint64_t)view->resets + 1, view->member_count,
                        COMMIT_ROUND_OF(view->commit), COMMIT_PLACE_OF(view->commit), view->term);
    else
        rc = buf_append_text(out, "rounds: none\n");
    if (!rc)
        rc = buf_printf(out, "trained for %s: %s of the workers' time\n",
                        time_brief(goodput->sums[GOODPUT_TRAINING].time_us, text),
                        goodput_part(goodput, part));
    if (!rc)
        rc = buf_append_text(out, "lost, in workers' time: ");
    if (!rc)
        rc = goodput_causes(goodput, out);
    if (!rc)
        rc = buf_append_text(out, "failures of workers by host:");
    /* The hosts with the most failures come first: `next` is the greatest number of failures below
     * `last_count`, the number of the hosts that were named before. */
    while (named < count && named < SUMMARY_HOSTS && !rc) {
        uint64_t next = 0;

        for (size_t i = 0; i < count; i++)
            if (goodput->failures[i].count < last_count && goodput->failures[i].count > next)
                next = goodput->failures[i].count;
        for (size_t i = 0; i < count && named < SUMMARY_HOSTS && !rc; i++) {
            const struct view_failures *host = &goodput->failures[i];

            if (host->count == next)
                rc = buf_printf(out, "%s%s %" PRIu64, named++ ? ", " : " ",
                                *host->host ? host->host : "others", host->count);
        }
        last_count = next;
    }
    if (!rc && named < count)
        rc = buf_printf(out, ", and %zu more hosts", count - named);
    if (!rc)
        rc = buf_append_text(out, count ? "\n" : " none\n");
    if (!rc && !facts->checkpoint_dir)
        rc = buf_append_text(out, "checkpoint: none, as there was no --checkpoint-dir\n");
    else if (!rc && !checkpoint->commit)
        rc = buf_printf(out, "checkpoint: none in %s\n", facts->checkpoint_dir);
    else if (!rc)
        rc = buf_printf(out, "checkpoint: commit %" PRIu64 ".%" PRIu32 " in %s\n",
                        COMMIT_ROUND_OF(checkpoint->commit), COMMIT_PLACE_OF(checkpoint->commit),
                        facts->checkpoint_dir);
    if (rc)
        return rc;
    return buf_printf(out, "logs: %s/events.log; output of workers: %s\n", facts->state_dir,
                      facts->output_dir ? facts->output_dir : "kept only with --output-filename");
}
