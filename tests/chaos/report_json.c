/*
 * report_json.c: the JSON of a campaign and of a replay, for programs and for page.html. Times are
 * in microseconds from the beginning. The names in the JSON never change.
 */
#include "base/time.h"
#include "driver/control/json.h"
#include "tests/chaos/report.h"
#include "tests/chaos/tally.h"

/* of more steps than STEPS_SHOWN only every n-th is written, and the two steps around each change
 * that page.html shows */
#define STEPS_SHOWN 20000

/* Writes a time in microseconds from the beginning. */
static void put_us(struct json *json, const char *name, int64_t us)
{
    json_number(json, name, us > 0 ? (uint64_t)us : 0);
}

/* true: between both steps the page has something to show: another round, another size, or a pause.
 */
static bool has_change(const struct step *before, int64_t usual_us)
{
    const struct step *after = before + 1;

    return after->round != before->round || after->size != before->size ||
           after->at_us - before->at_us > 3 * usual_us + 10 * TIME_MS;
}

/* Writes the steps as lists of [time, round, step, size]. */
static void put_steps(struct json *json, const struct steps *steps, int64_t began_us,
                      int64_t usual_us)
{
    size_t every = steps->count / STEPS_SHOWN + 1;

    json_open(json, "steps", '{');
    json_number(json, "count", steps->count);
    json_number(json, "every", every);
    json_open(json, "list", '[');
    for (size_t i = 0; !json->rc && i < steps->count; i++) {
        const struct step *step = &steps->list[i];

        if (i % every && !has_change(step - 1, usual_us) &&
            (i + 1 == steps->count || !has_change(step, usual_us)))
            continue;
        json_open(json, NULL, '[');
        put_us(json, NULL, step->at_us - began_us);
        json_number(json, NULL, step->round);
        json_number(json, NULL, step->number);
        json_number(json, NULL, step->size);
        json_close(json, ']');
    }
    json_close(json, ']');
    json_close(json, '}');
}

/* ---- a campaign ------------------------------------------------------------------------------ */

static void put_times(struct json *json, const char *name, const struct tally_times *times)
{
    json_open(json, name, '{');
    put_us(json, "median_us", times->median_us);
    put_us(json, "p90_us", times->p90_us);
    put_us(json, "p99_us", times->p99_us);
    put_us(json, "most_us", times->most_us);
    put_us(json, "sum_us", times->sum_us);
    json_close(json, '}');
}

static void put_kind(struct json *json, const struct tally_kind *kind, const char *name)
{
    json_open(json, NULL, '{');
    json_text(json, "name", name);
    json_number(json, "count", kind->count);
    json_number(json, "violations", kind->violations);
    json_number(json, "hangs", kind->hangs);
    put_times(json, "pause", &kind->pause);
    put_times(json, "whole", &kind->whole);
    json_number(json, "repeated", kind->repeated);
    json_number(json, "rounds", kind->rounds);
    json_close(json, '}');
}

static void put_record(struct json *json, const struct record *record, const struct tally *tally)
{
    json_text(json, "title", record->title);
    json_text(json, "machine", record->machine);
    json_number(json, "seed", record->seed);
    put_us(json, "took_us", record->ended_us - record->began_us);
    put_us(json, "usual_step_us", record->usual_us);
    json_number(json, "violations", record->violations);
    json_number(json, "hangs", record->hangs);
    json_bool(json, "broken_off", record->broken_off);
    json_open(json, "kinds", '[');
    for (size_t i = 0; i < tally->count; i++)
        put_kind(json, &tally->kinds[i], tally->kinds[i].name);
    put_kind(json, &tally->all, "all");
    json_close(json, ']');
    json_open(json, "faults", '[');
    for (size_t i = 0; i < record->fault_count; i++) {
        const struct record_fault *fault = &record->faults[i];

        json_open(json, NULL, '{');
        json_text(json, "name", fault->name);
        json_text(json, "deed", fault->deed);
        put_us(json, "at_us", fault->at_us - record->began_us);
        put_us(json, "lasted_us", fault->lasted_us);
        put_us(json, "whole_us", fault->whole_us);
        put_us(json, "pause_us", fault->pause_us);
        json_number(json, "repeated", fault->repeated);
        json_number(json, "rounds", fault->rounds);
        json_number(json, "least", fault->least);
        json_number(json, "named", fault->named);
        json_bool(json, "hung", fault->hung);
        if (fault->violation[0])
            json_text(json, "violation", fault->violation);
        else
            json_null(json, "violation");
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open(json, "skipped", '[');
    for (size_t i = 0; i < record->skipped_count; i++)
        json_text(json, NULL, record->skipped[i]);
    json_close(json, ']');
}

int report_json(const struct record *record, const struct steps *steps, struct buf *out)
{
    struct json json = { .out = out };
    struct tally tally;

    json.rc = tally_take(&tally, record);
    json_open(&json, NULL, '{');
    put_record(&json, record, &tally);
    put_steps(&json, steps, record->began_us, record->usual_us);
    json_close(&json, '}');
    tally_release(&tally);
    return json.rc ? json.rc : buf_append_text(out, "\n");
}

/* ---- a replay -------------------------------------------------------------------------------- */

int report_replay_json(const struct replay *replay, const struct steps *steps, struct buf *out)
{
    struct json json = { .out = out };

    json_open(&json, NULL, '{');
    json_text(&json, "title", replay->title);
    json_text(&json, "machine", replay->machine);
    put_us(&json, "took_us", replay->ended_us - replay->began_us);
    put_us(&json, "usual_step_us", replay->usual_us);
    json_number(&json, "slots", replay->slots);
    json_bool(&json, "announced", replay->announced);
    json_open(&json, "worker_us", '{');
    put_us(&json, "available", replay->available_us);
    put_us(&json, "useful", replay->useful_us);
    put_us(&json, "limit", replay->limit_us);
    put_us(&json, "pauses", replay->lost_pause_us);
    put_us(&json, "again", replay->lost_again_us);
    put_us(&json, "not_yet", replay->lost_boot_us);
    json_close(&json, '}');
    json_number(&json, "kept", replay->steps);
    json_number(&json, "repeated", replay->repeated);
    json_number(&json, "rounds", replay->rounds);
    json_number(&json, "violations", replay->violations);
    if (replay->violations > 0)
        json_text(&json, "violation", replay->violation);
    else
        json_null(&json, "violation");
    json_open(&json, "changes", '[');
    for (size_t i = 0; i < replay->change_count; i++) {
        json_open(&json, NULL, '{');
        put_us(&json, "at_us", replay->changes[i].at_us - replay->began_us);
        json_number(&json, "hosts", replay->changes[i].hosts);
        json_bool(&json, "add", replay->changes[i].add);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    put_steps(&json, steps, replay->began_us, replay->usual_us);
    json_close(&json, '}');
    return json.rc ? json.rc : buf_append_text(out, "\n");
}
