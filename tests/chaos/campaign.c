/*
 * campaign.c: runs a campaign: chooses the next fault by the seed, strikes (causes the fault) and
 * relents (undoes the fault), waits until the job is whole again (every listed slot trains), judges
 * the job and records the cost. The first violation or hang ends the campaign.
 */
#include "tests/chaos/campaign.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"
#include "tests/chaos/arena_checkpoints.h"
#include "tests/chaos/report.h"
#include "tests/chaos/slip.h"
#include "tests/chaos/strike.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_     1024
#define PROCESSES_MAX (256 * 1024)
#define REST_STEPS    12 /* the most steps between two faults */
/* after this many steps without a fault the usual time of a step is known */
#define PEACE_STEPS 50
/* one of this many faults strikes before the job is whole after the previous fault */
#define HURRIED_ONE_IN 6
/* two faults take one host each, and a third host must keep the training state */
#define HURRIED_HOSTS 3
#define TRIES         64 /* how many faults are tried to find one that is possible now */

struct campaign {
    struct chaos *chaos;
    struct record *record;
    struct judge judge;
    const struct fault **usable;
    size_t usable_count, total_weight;
    /* faults struck in the first pass, in which each fault comes once, in random order */
    size_t first;
    int64_t until_us;
};

/* ---- the faults that are possible here ---- */

static bool is_chosen(const struct chaos_plan *plan, const char *name)
{
    struct span rest = { plan->only, plan->only ? strlen(plan->only) : 0 }, part;

    while (span_next(&rest, ',', &part))
        if (span_is(span_trim(part), name))
            return true;
    return !plan->only;
}

int campaign_check(const struct chaos_plan *plan, struct hvd_err *err)
{
    struct span rest = { plan->only, plan->only ? strlen(plan->only) : 0 }, part;
    const struct fault *fault;

    for (size_t i = 0; (fault = fault_at(i)); i++)
        ASSERT(!fault->names != !fault->quiet); /* the row says one of both */
    while (span_next(&rest, ',', &part)) {
        struct span name = span_trim(part);

        if (!fault_named(name.at, name.length))
            return err_set(err, HVD_E_INVAL, "--only: there is no fault \"%.*s\"; see --list",
                           (int)name.length, name.at);
    }
    return 0;
}

/* Makes the list of the faults that the plan names and that are possible here; records why the
 * other faults are not possible. */
static int choose(struct campaign *campaign, struct hvd_err *err)
{
    const struct chaos *chaos = campaign->chaos;
    char text[RECORD_TEXT];
    int rc = 0;

    campaign->usable = mem_zalloc_array(fault_count(), sizeof(const struct fault *));
    if (!campaign->usable)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    for (size_t i = 0; !rc && i < fault_count(); i++) {
        const struct fault *fault = fault_at(i);
        const char *missing = fault->missing ? fault->missing(chaos) : NULL;

        if (!is_chosen(chaos->arena.plan, fault->name))
            continue;
        if (missing) {
            (void)snprintf(text, sizeof(text), "%s: %s", fault->name, missing);
            rc = record_skipped(campaign->record, text);
            continue;
        }
        campaign->usable[campaign->usable_count++] = fault;
        campaign->total_weight += fault->weight;
    }
    if (!rc && !campaign->usable_count)
        return err_set(err, HVD_E_UNSUPPORTED, "none of these faults can be done here; see --list");
    return rc ? err_set(err, rc, "out of memory") : 0;
}

/* Picks the next fault: first each fault once, then by weight. */
static const struct fault *pick(struct campaign *campaign)
{
    uint64_t place;

    if (campaign->first < campaign->usable_count)
        return campaign->usable[campaign->first++];
    place = rng_below(&campaign->chaos->rng, campaign->total_weight);
    for (size_t i = 0; i < campaign->usable_count; i++) {
        if (place < campaign->usable[i]->weight)
            return campaign->usable[i];
        place -= campaign->usable[i]->weight;
    }
    return campaign->usable[0];
}

/* ---- one fault ---- */

/* Causes a fault, waits for its time, and undoes the fault. HVD_DONE: there was no process to
 * hit. */
static int strike(struct campaign *campaign, const struct fault *fault, struct record_fault *entry,
                  struct hvd_err *err)
{
    struct chaos *chaos = campaign->chaos;
    int64_t struck_us;
    int rc, relented = 0;

    chaos->deed[0] = '\0';
    chaos->lasts_us = 0;
    chaos->victim_count = 0;
    chaos->cut_count = 0;
    chaos->own = NULL;
    proc_scan_take(&chaos->scan, &chaos->arena);
    struck_us = clock_now_us();
    rc = fault->strike(chaos, err);
    if (rc == HVD_DONE)
        return rc;
    if (!rc) {
        /* Waits until the time, and reads the steps meanwhile, because a fault may last for
         * seconds. */
        int64_t until_us = struck_us + chaos->lasts_us;

        while (!rc && clock_now_us() < until_us && !*chaos->arena.broken_off) {
            int64_t slice_us = clock_now_us() + 100 * TIME_MS;

            rc = steps_await(&chaos->steps, chaos->steps.count,
                             slice_us < until_us ? slice_us : until_us, NULL);
            if (!rc || rc == HVD_E_TIMEOUT)
                rc = steps_read(&chaos->steps, err);
        }
    }
    if (fault->relent)
        relented = fault->relent(chaos, rc ? NULL : err);
    if (!entry->at_us)
        entry->at_us = struck_us;
    entry->lasted_us = clock_now_us() - entry->at_us;
    return rc ? rc : relented;
}

/* Prints the processes of a job that hangs, for the person who looks for the reason. */
static void show_processes(struct campaign *campaign)
{
    struct chaos *chaos = campaign->chaos;
    struct buf out;

    buf_init(&out, PROCESSES_MAX);
    proc_scan_take(&chaos->scan, &chaos->arena);
    proc_scan_show(&chaos->scan, &out);
    printf("%s", buf_text(&out));
    (void)fflush(stdout);
    buf_release(&out);
}

/* Waits until the job is whole after the fault, checks it, and fills in the entry's costs and
 * violation. */
static int judge(struct campaign *campaign, struct record_fault *entry, const struct fault *fault,
                 size_t first, bool alone, struct hvd_err *err)
{
    struct chaos *chaos = campaign->chaos;
    int64_t over_us = clock_now_us();
    struct hvd_err why = { .text = "" };
    int rc = judge_whole(&campaign->judge, chaos, over_us, over_us + chaos->arena.plan->patience_us,
                         &why);
    const struct steps *steps;
    int64_t longest_us;

    if (rc == HVD_E_STATE)
        return rc;
    entry->whole_us = clock_now_us() - entry->at_us;
    entry->hung = rc == HVD_E_TIMEOUT;
    if (entry->hung)
        show_processes(campaign);
    if (!rc)
        rc = judge_right(&campaign->judge, chaos, fault_cost_of(chaos, fault, entry->lasted_us),
                         &why);
    /* Of two faults at once one may hide the other. */
    if (!rc && alone)
        rc = judge_blame(&campaign->judge, chaos, fault, &entry->named, &why);
    entry->quiet = !rc && alone && fault->quiet;
    /* Fills in the costs of the fault, from the steps and rounds since its strike. */
    steps = &campaign->chaos->steps;
    longest_us = steps_longest_us(steps, first);
    entry->pause_us =
        longest_us > campaign->record->usual_us ? longest_us - campaign->record->usual_us : 0;
    entry->repeated = steps_repeated(steps, first);
    entry->rounds = judge_rounds_since(&campaign->judge, chaos);
    for (size_t i = first; i < steps->count; i++)
        if (i == first || steps->list[i].size < entry->least)
            entry->least = steps->list[i].size;
    if (rc)
        (void)snprintf(entry->violation, sizeof(entry->violation), "%.*s", 2 * RECORD_TEXT - 1,
                       why.text);
    rc = record_fault(campaign->record, entry);
    return rc ? err_set(err, rc, "out of memory") : 0;
}

static void show_line(const struct campaign *campaign)
{
    struct buf line;

    buf_init(&line, LINE_MAX_);
    report_line(campaign->record, campaign->record->fault_count - 1, &line);
    fputs(buf_text(&line), stdout);
    fflush(stdout);
    buf_release(&line);
}

/* Strikes a second fault before the job is whole after the first. Each may take one host at most:
 * with three hosts, one is left that has the training state. */
static int hurry(struct campaign *campaign, const struct fault *before, struct record_fault *entry,
                 struct hvd_err *err)
{
    char deed[FAULT_TEXT];
    const struct fault *fault = NULL;
    int rc = HVD_DONE;

    (void)snprintf(deed, sizeof(deed), "%.60s", campaign->chaos->deed);
    for (int i = 0; rc == HVD_DONE && i < TRIES; i++) {
        fault = pick(campaign);
        campaign->chaos->hurried = true;
        rc = fault->cost == FAULT_COSTS_A_ROUND ? strike(campaign, fault, entry, err) : HVD_DONE;
        campaign->chaos->hurried = false;
    }
    if (rc)
        return rc == HVD_DONE ? 0 : rc;
    (void)snprintf(entry->name, sizeof(entry->name), "two-at-once");
    (void)snprintf(entry->deed, sizeof(entry->deed), "%.20s %.50s, %.20s %.50s", before->name, deed,
                   fault->name, campaign->chaos->deed);
    return 0;
}

/* Records a violation that was found during a fault, or after it. */
static int note_broken(struct campaign *campaign, struct record_fault *entry, bool hung,
                       struct hvd_err *err)
{
    int rc;

    entry->hung = hung;
    (void)snprintf(entry->violation, sizeof(entry->violation), "%.*s", 2 * RECORD_TEXT - 1,
                   err->text);
    rc = record_fault(campaign->record, entry);
    if (rc)
        return err_set(err, rc, "out of memory");
    show_line(campaign);
    return 0;
}

/* After a strike that found no victim for its second part and has undone the first: waits until the
 * job is whole, so that the next fault is not charged with the first part. */
static int settle(struct campaign *campaign, struct hvd_err *err)
{
    struct chaos *chaos = campaign->chaos;
    int64_t now_us = clock_now_us();
    int rc =
        judge_whole(&campaign->judge, chaos, now_us, now_us + chaos->arena.plan->patience_us, err);

    return rc ? rc : judge_right(&campaign->judge, chaos, FAULT_COSTS_A_ROUND, err);
}

/* Causes a fault that finds a victim, sometimes a second one in a hurry, and judges and records the
 * result. */
static int one_fault(struct campaign *campaign, struct hvd_err *err)
{
    struct chaos *chaos = campaign->chaos;
    struct record_fault entry = { .name = "peace" };
    const struct fault *fault = NULL;
    size_t first = 0;
    bool hurried =
        campaign->first >= campaign->usable_count && !rng_below(&chaos->rng, HURRIED_ONE_IN);
    int rc = HVD_DONE;

    for (int i = 0; rc == HVD_DONE && i < TRIES; i++) {
        int settled = i ? settle(campaign, err) : 0;

        fault = pick(campaign);
        if (!settled && fault->cost == FAULT_COSTS_NOTHING)
            settled = judge_rest(&campaign->judge, chaos, err);
        if (settled == HVD_E_STATE)
            return settled;
        if (settled)
            return note_broken(campaign, &entry, settled == HVD_E_TIMEOUT, err);
        arena_log(&chaos->arena, "---- fault %zu: %s", campaign->record->fault_count + 1,
                  fault->name);
        judge_look(&campaign->judge, chaos);
        first = chaos->steps.count ? chaos->steps.count - 1 : 0;
        rc = strike(campaign, fault, &entry, err);
        (void)snprintf(entry.name, sizeof(entry.name), "%s", fault->name);
    }
    if (rc == HVD_DONE)
        return err_set(err, HVD_E_INTERNAL, "no fault can be done to this job");
    (void)snprintf(entry.deed, sizeof(entry.deed), "%s", chaos->deed);
    if (chaos->arena.plan->slip == SLIP_NAMELESS)
        arena_log(&chaos->arena, "00:00:00.000 warning job: a worker was killed by a signal");
    if (chaos->arena.plan->slip == SLIP_ACCUSE)
        arena_log(&chaos->arena, "00:00:00.000 warning job: %s: is slow",
                  chaos->arena.hosts[0].name);
    if (!rc && hurried && fault->cost == FAULT_COSTS_A_ROUND &&
        chaos->arena.host_count >= HURRIED_HOSTS)
        rc = hurry(campaign, fault, &entry, err);
    if (rc == HVD_E_MISMATCH)
        return note_broken(campaign, &entry, false, err);
    if (!rc)
        rc = judge(campaign, &entry, fault, first, !strcmp(entry.name, fault->name), err);
    if (!rc)
        show_line(campaign);
    return rc;
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

/* Waits until the job has done `count` more steps without a fault. Each step has the time of
 * --patience. HVD_E_MISMATCH: a trainer has found a mistake, after which no step may come. */
static int rest(struct campaign *campaign, uint64_t count, struct hvd_err *err)
{
    struct chaos *chaos = campaign->chaos;
    size_t until = chaos->steps.count + count;
    size_t seen = chaos->steps.count;
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    int rc = 0;

    while (!rc && chaos->steps.count < until && !*chaos->arena.broken_off) {
        if (clock_now_us() >= deadline_us)
            return err_set(err, HVD_E_TIMEOUT, "no step within --patience, in peace");
        rc = steps_await(&chaos->steps, chaos->steps.count, clock_now_us() + 100 * TIME_MS, NULL);
        if (!rc || rc == HVD_E_TIMEOUT)
            rc = steps_read(&chaos->steps, err);
        if (!rc)
            rc = judge_wrong(chaos, err);
        if (chaos->steps.count > seen) {
            seen = chaos->steps.count;
            deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
        }
    }
    return rc;
}

/* Waits some steps between two faults. */
static int rest_a_while(struct campaign *campaign, struct hvd_err *err)
{
    struct record_fault entry = { .name = "peace", .at_us = clock_now_us() };
    int rc = rest(campaign, rng_below(&campaign->chaos->rng, REST_STEPS + 1), err);

    return rc == HVD_E_TIMEOUT || rc == HVD_E_MISMATCH
               ? note_broken(campaign, &entry, rc == HVD_E_TIMEOUT, err)
               : rc;
}

/* Waits for the first checkpoint: from now on no fault loses everything. */
static int await_checkpoint(struct campaign *campaign, struct hvd_err *err)
{
    struct chaos *chaos = campaign->chaos;
    int64_t deadline_us = clock_now_us() + chaos->arena.plan->patience_us;
    struct checkpoint_seen seen;
    int rc;

    while ((rc = arena_checkpoints(&chaos->arena, false, &seen, err)) == HVD_DONE &&
           !*chaos->arena.broken_off) {
        if (clock_now_us() >= deadline_us)
            return err_set(err, HVD_E_TIMEOUT, "no checkpoint is complete within --patience");
        rc = steps_await(&chaos->steps, chaos->steps.count, clock_now_us() + 100 * TIME_MS, NULL);
        if (!rc || rc == HVD_E_TIMEOUT)
            rc = steps_read(&chaos->steps, err);
        if (rc)
            return rc;
    }
    return rc == HVD_DONE ? HVD_E_STATE : rc;
}

/* Starts the job, waits until it is whole, and measures it without faults. */
static int begin(struct campaign *campaign, struct hvd_err *err)
{
    struct chaos *chaos = campaign->chaos;
    int rc = arena_start(&chaos->arena, err);

    if (!rc)
        rc = judge_whole(&campaign->judge, chaos, 0,
                         clock_now_us() + chaos->arena.plan->patience_us, err);
    if (!rc)
        rc = rest(campaign, PEACE_STEPS, err);
    if (!rc)
        rc = await_checkpoint(campaign, err);
    if (!rc) {
        campaign->record->usual_us = steps_usual_us(&chaos->steps, 0);
        proc_scan_take(&chaos->scan, &chaos->arena);
        rc = judge_settle(&campaign->judge, chaos, err);
    }
    return rc;
}

static bool goes_on(const struct campaign *campaign)
{
    const struct record *record = campaign->record;

    return !*campaign->chaos->arena.broken_off && !record->violations && !record->hangs &&
           record->fault_count < campaign->chaos->arena.plan->faults &&
           clock_now_us() < campaign->until_us;
}

/* Tells the trainers to end, and waits until every process of the job has ended. */
static int end(struct campaign *campaign, struct hvd_err *err)
{
    struct chaos *chaos = campaign->chaos;
    struct record_fault entry = { .name = "the-end", .at_us = clock_now_us() };
    struct hvd_err why = { .text = "" };
    char path[ARENA_PATH];
    int fd = open(arena_path(&chaos->arena, "stop", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int rc;

    if (fd < 0)
        return err_set(err, HVD_E_IO, "%s: %s", path, strerror(errno));
    close(fd);
    rc = arena_await_driver(&chaos->arena, clock_now_us() + chaos->arena.plan->patience_us, &why);
    entry.hung = rc == HVD_E_TIMEOUT;
    if (!rc)
        rc = steps_read(&chaos->steps, &why);
    if (!rc)
        rc = judge_end(&campaign->judge, chaos, &why);
    if (!rc)
        return 0;
    (void)snprintf(entry.violation, sizeof(entry.violation), "%.*s", 2 * RECORD_TEXT - 1, why.text);
    rc = record_fault(campaign->record, &entry);
    if (!rc)
        show_line(campaign);
    return rc;
}

int campaign_run(struct chaos *chaos, struct record *record, struct hvd_err *err)
{
    const struct chaos_plan *plan = chaos->arena.plan;
    struct campaign campaign = { .chaos = chaos, .record = record };
    int rc = choose(&campaign, err);

    judge_open(&campaign.judge, chaos);
    record->began_us = clock_now_us();
    campaign.until_us =
        plan->duration_us ? time_add(record->began_us, plan->duration_us) : TIME_NEVER;
    if (!rc) {
        for (size_t i = campaign.usable_count; i > 1; i--) {
            size_t other = (size_t)rng_below(&campaign.chaos->rng, i);
            const struct fault *fault = campaign.usable[i - 1];

            campaign.usable[i - 1] = campaign.usable[other];
            campaign.usable[other] = fault;
        }
        rc = begin(&campaign, err);
    }
    while (!rc && goes_on(&campaign)) {
        rc = one_fault(&campaign, err);
        if (!rc && goes_on(&campaign))
            rc = rest_a_while(&campaign, err);
    }
    if (!rc && !record->violations && !record->hangs && !*chaos->arena.broken_off)
        rc = end(&campaign, err);
    record->ended_us = clock_now_us();
    judge_close(&campaign.judge);
    mem_free(campaign.usable);
    return *chaos->arena.broken_off ? HVD_E_STATE : rc;
}

void campaign_list(const struct chaos *chaos)
{
    for (size_t i = 0; i < fault_count(); i++) {
        const struct fault *fault = fault_at(i);
        const char *missing = fault->missing ? fault->missing(chaos) : NULL;

        printf("%-28s %s%s\n", fault->name, fault->what,
               fault->cost == FAULT_COSTS_NOTHING ? "; must cost nothing" : "");
        printf("%-28s   log: %s%s\n", "", fault->quiet ? "none, as " : "",
               fault->quiet ? fault->quiet : fault->names);
        if (missing)
            printf("%-28s   not here: %s\n", "", missing);
    }
}
