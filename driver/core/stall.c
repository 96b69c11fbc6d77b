#include "driver/core/stall.h"

#include "driver/core/change.h"
#include "driver/core/clock.h"
#include "driver/core/loss.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/tell.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CHECK_OPERATION "check"
#define GATHER_US_MAX   (2 * TIME_S) /* from what the first one says until all have been heard */
#define NAMES_MAX       5            /* that one line has */

typedef bool worker_is_fn(const struct core *core, const struct worker *worker);

/* ---- who waits ------------------------------------------------------------------------------ */

static int64_t warning_us(const struct core *core)
{
    return core->config.stall_warning_us;
}

/* Who waits says so again in each warning time, and may say it somewhat later. */
static int64_t repeat_us(const struct core *core)
{
    return time_add(warning_us(core), warning_us(core) / 2 + GATHER_US_MAX);
}

/* It waits still. */
static bool is_fresh(const struct core *core, const struct worker *worker)
{
    return worker->wait.waited_us &&
           time_add(worker->wait.said_us, repeat_us(core)) >= core->now_us;
}

static bool is_waiting(const struct core *core, const struct worker *worker)
{
    return is_fresh(core, worker) && !worker->wait.itself;
}

/* The others may wait for it in a collective: of this round, or of the one that it leaves. */
static bool is_in_round(const struct worker *worker)
{
    return worker_state(worker) == WORKER_MEMBER || worker->tied;
}

static bool waits_at_check(const struct core *core, const struct worker *worker)
{
    return is_waiting(core, worker) && worker->wait.at_check;
}

static bool is_running(const struct core *core)
{
    return job_state(core) >= JOB_RUNNING && job_state(core) <= JOB_PENDING;
}

void stall_moved(struct worker *worker)
{
    worker->wait.waited_us = 0;
}

/* ---- who is waited for ---------------------------------------------------------------------- */

/* Everybody that is found to be missing, those that wait themselves included. */
struct blame {
    struct core *core;
    struct worker *unasked; /* a list: for whom these wait is still to be looked at */
    size_t guilty;          /* of them, who do not wait */
};

static void blame(struct blame *all, struct worker *worker)
{
    if (!worker || worker->blamed || !is_in_round(worker))
        return;
    worker->blamed = true;
    all->guilty += !is_waiting(all->core, worker);
    worker->next_blamed = all->unasked;
    all->unasked = worker;
}

/* Nobody says who is missing at a check: who has not said AT. */
static void blame_unchecked(struct blame *all)
{
    const struct round *round = &all->core->current;

    for (size_t i = 0; i < round->members.count && job_state(all->core) == JOB_PENDING; i++) {
        struct worker *worker = roster_worker(all->core, round->members.items[i]);

        if (worker && !worker->at)
            blame(all, worker);
    }
}

static void blame_missing(struct blame *all, const struct worker *waiter)
{
    for (size_t i = 0; i < waiter->wait.count; i++)
        blame(all, roster_worker(all->core, waiter->wait.missing[i]));
}

/* Marks whoever those are missing that have waited for so long, and whom these wait for in turn.
 * How many of them do not wait themselves. */
static size_t blame_all(struct core *core, int64_t waited_us)
{
    struct blame all = { .core = core };
    struct worker *worker;
    bool at_check = false;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        worker->blamed = false;
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        if (!is_fresh(core, worker) || worker->wait.waited_us < waited_us)
            continue;
        at_check |= worker->wait.at_check;
        blame_missing(&all, worker);
    }
    if (at_check)
        blame_unchecked(&all);
    while (all.unasked) {
        worker = all.unasked;
        all.unasked = worker->next_blamed;
        if (is_waiting(core, worker))
            blame_missing(&all, worker);
    }
    return all.guilty;
}

static bool is_guilty(const struct core *core, const struct worker *worker)
{
    return worker->blamed && !is_waiting(core, worker);
}

bool stall_waits_for(struct core *core, const struct core_host *host)
{
    bool waits = false;

    (void)blame_all(core, 0);
    for (uint32_t slot = 0; slot < host->seat_count; slot++) {
        const struct worker *worker = host->seats[slot].worker;

        waits |= worker && is_guilty(core, worker);
    }
    return waits;
}

/* ---- what is said of it --------------------------------------------------------------------- */

#define NAMES_TEXT_MAX 1024

struct name_list {
    char text[NAMES_TEXT_MAX];
    size_t used, count;
};

static void add_name(struct name_list *names, const char *format, ...) PRINTF_LIKE(2, 3);
static void add_name(struct name_list *names, const char *format, ...)
{
    va_list args;

    if (names->used >= sizeof(names->text))
        return;
    va_start(args, format);
    names->used += (size_t)vsnprintf(names->text + names->used, sizeof(names->text) - names->used,
                                     format, args);
    va_end(args);
}

static void name_one(struct name_list *names, const struct worker *worker)
{
    const char *comma = names->count ? ", " : "";
    char name[WORKER_NAME_MAX];

    if (names->count++ >= NAMES_MAX)
        return;
    if (worker->rank == RANK_NONE)
        add_name(names, "%s%s", comma, worker_name(worker, name));
    else
        add_name(names, "%srank %" PRIu32 " (%s)", comma, worker->rank, worker_name(worker, name));
}

/* "rank 0 (a:0#1), rank 1 (a:1#2)"; of many the first, and how many more. */
static const char *names_text(struct core *core, const struct name_list *names)
{
    if (names->count <= NAMES_MAX)
        return tell_text(core, "%s", names->text);
    return tell_text(core, "%s and %zu more", names->text, names->count - NAMES_MAX);
}

static const char *seconds_text(int64_t us, char text[TIME_TEXT_MAX])
{
    return time_format(us < TIME_S ? us : us - us % TIME_S, text);
}

/* Once in each warning time, whoever is the first to say so; they do not say it at one moment. */
static bool may_warn(struct core *core)
{
    if (core->now_us < time_add(core->stalls.said_us, warning_us(core) - warning_us(core) / 4))
        return false;
    core->stalls.said_us = core->now_us;
    return true;
}

/* Of those for which this is true, who has said it of the longest time; NULL: none. */
static struct worker *longest(const struct core *core, worker_is_fn *is, size_t *ret_count)
{
    struct worker *worker, *one = NULL;

    *ret_count = 0;
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        if (!is(core, worker))
            continue;
        ++*ret_count;
        if (!one || worker->wait.waited_us > one->wait.waited_us)
            one = worker;
    }
    return one;
}

/* Whom the verdict has found. */
static const char *whose_fault(struct core *core)
{
    struct name_list names = { .count = 0 };
    struct worker *worker;
    bool any = false;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        any |= worker->blamed;
        if (is_guilty(core, worker))
            name_one(&names, worker);
    }
    if (names.count)
        return names_text(core, &names);
    return any ? "each other" : "nobody who is known";
}

/* Where nobody is to blame: an example of those between whom something stands, or "". */
static const char *for_example(struct core *core, const struct worker *waiter)
{
    const struct worker *missing =
        waiter->wait.count ? roster_worker(core, waiter->wait.missing[0]) : NULL;
    char name[WORKER_NAME_MAX], other[WORKER_NAME_MAX];

    if (!missing || missing == waiter || !is_waiting(core, missing))
        return "";
    return tell_text(core, ": %s for %s", worker_name(waiter, name), worker_name(missing, other));
}

static void warn(struct core *core)
{
    char text[TIME_TEXT_MAX];
    size_t count, blamed;
    const char *what = "wait for";
    const char *of;
    const struct worker *one = longest(core, is_waiting, &count);

    if (!one) {
        one = longest(core, is_fresh, &count);
        what = "do not move:";
    }
    if (!one || !may_warn(core))
        return;
    blamed = blame_all(core, 0);
    of = tell_text(core, "%s, for %s in %s%s", whose_fault(core),
                   seconds_text(one->wait.waited_us, text), one->wait.operation,
                   blamed ? "" : for_example(core, one));
    snprintf(core->stalls.said, sizeof(core->stalls.said), "%s", of);
    CORE_TRACE(core, "round %" PRIu64 ": %zu of %zu %s %s", core->current.number, count,
               core->current.members.count, what, of);
}

const char *stall_said(const struct core *core)
{
    size_t count;

    return longest(core, is_fresh, &count) ? core->stalls.said : "";
}

/* ---- and done ------------------------------------------------------------------------------- */

/* Not whose agent is away, or has not been back for as long: it may wait itself, and could not say
 * so. If its agent does not come back that is its end. */
static void end_guilty(struct core *core, int64_t heard_us, const char *why)
{
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (is_guilty(core, worker) && worker_is_alive(worker) &&
            clock_is_heard(core, worker, heard_us))
            loss_kill(core, worker, why, false, 0);
}

static void send_back(struct core *core, const char *why)
{
    if (core->next.number)
        change_abandon(core, why);
    round_revoke(core, NULL, why);
}

/* If nobody is to blame, they all wait for each other; at a check that is decided when the change
 * is given up. */
static void judge(struct core *core)
{
    char text[TIME_TEXT_MAX];
    size_t count;
    const struct worker *one = longest(core, is_fresh, &count);
    const char *took;

    if (!one || one->wait.waited_us < core->config.stall_us)
        return;
    took =
        tell_text(core, "%s in %s", seconds_text(one->wait.waited_us, text), one->wait.operation);
    if (blame_all(core, core->config.stall_us))
        end_guilty(
            core, repeat_us(core),
            tell_text(core, "%s for %s",
                      one->wait.itself ? "it has not moved" : "the others have waited for it",
                      took));
    else if (!one->wait.at_check)
        send_back(core, tell_text(core, "they wait for %s, for %s", whose_fault(core), took));
}

static bool is_of_this_round(const struct core *core, const struct worker *worker,
                             const struct msg *msg)
{
    const struct round *round = &core->current;
    bool on_its_way = round->cause == CAUSE_SWITCH && msg->round == round->previous;

    return is_running(core) && is_in_round(worker) &&
           (msg->round == round->number || (on_its_way && !worker->entered));
}

static void note(struct core *core, struct worker *worker, const struct msg_stalled *stalled)
{
    struct worker_wait *wait = &worker->wait;

    *wait = (struct worker_wait){ .said_us = core->now_us, .waited_us = stalled->waited_us };
    if (!wait->waited_us)
        wait->waited_us = 1;
    snprintf(wait->operation, sizeof(wait->operation), "%s", stalled->operation);
    wait->at_check = !stalled->missing.count && !strcmp(wait->operation, CHECK_OPERATION);
    for (size_t i = 0; i < stalled->missing.count; i++) {
        if (stalled->missing.items[i] == worker->incarnation)
            wait->itself = true;
        if (wait->count < ARRAY_SIZE(wait->missing))
            wait->missing[wait->count++] = stalled->missing.items[i];
    }
}

void stall_on_stalled(struct core *core, struct worker *worker, const struct msg *msg)
{
    int64_t gather_us = warning_us(core) / 4;

    if (!is_of_this_round(core, worker, msg))
        return;
    note(core, worker, &msg->u.stalled);
    if (worker->wait.at_check && job_state(core) != JOB_PENDING)
        stall_moved(worker); /* it has been let go */
    if (core->stalls.look_us != TIME_NEVER)
        return;
    core->stalls.look_us =
        time_add(core->now_us, gather_us < GATHER_US_MAX ? gather_us : GATHER_US_MAX);
    clock_want(core, core->stalls.look_us);
}

static void look(struct core *core)
{
    core->stalls.look_us = TIME_NEVER;
    if (!is_running(core))
        return;
    warn(core);
    judge(core);
}

/* ---- what the driver knows by itself -------------------------------------------------------- */

static bool has_not_stopped(const struct core *core, const struct worker *worker)
{
    (void)core;
    return worker_state(worker) == WORKER_REVOKED;
}

static bool has_not_begun(const struct core *core, const struct worker *worker)
{
    return worker_state(worker) == WORKER_MEMBER && !worker->entered && !is_waiting(core, worker);
}

static bool has_not_checked(const struct core *core, const struct worker *worker)
{
    return worker_state(worker) == WORKER_MEMBER && !worker->at && !is_waiting(core, worker);
}

/* Whom the driver waits for at present; NULL: nobody. The first warning comes somewhat later than
 * those of whoever waits, who are then known not to be meant. */
static worker_is_fn *who_is_absent(const struct core *core, const char **ret_what)
{
    if (job_state(core) == JOB_RECOVERING && core->count[WORKER_REVOKED]) {
        *ret_what = "stop for the recovery";
        return has_not_stopped;
    }
    if (job_state(core) == JOB_RUNNING && core->current.entered < core->current.members.count) {
        *ret_what = "begin to train";
        return has_not_begun;
    }
    if (job_state(core) == JOB_PENDING) {
        *ret_what = "come to a check";
        return has_not_checked;
    }
    return NULL;
}

void stall_watch(struct core *core)
{
    core->stalls.since_us = core->now_us;
    core->stalls.warn_us = time_add(core->now_us, warning_us(core) + warning_us(core) / 2);
    clock_want(core, core->stalls.warn_us);
}

static void warn_of_absent(struct core *core)
{
    const char *what = "";
    worker_is_fn *is_absent = who_is_absent(core, &what);
    struct name_list names = { .count = 0 };
    char text[TIME_TEXT_MAX];
    struct worker *worker;

    core->stalls.warn_us = TIME_NEVER;
    if (!is_absent)
        return;
    core->stalls.warn_us = time_add(core->now_us, warning_us(core));
    clock_want(core, core->stalls.warn_us);
    for (size_t i = 0; (worker = roster_next(core, &i));)
        if (is_absent(core, worker))
            name_one(&names, worker);
    if (names.count && may_warn(core))
        CORE_TRACE(core, "round %" PRIu64 ": after %s %zu of %zu are still to %s: %s",
                   core->current.number, seconds_text(core->now_us - core->stalls.since_us, text),
                   names.count, core->current.members.count, what, names_text(core, &names));
}

void stall_expire(struct core *core)
{
    if (core->stalls.look_us <= core->now_us)
        look(core);
    else
        clock_want(core, core->stalls.look_us);
    if (core->stalls.warn_us <= core->now_us)
        warn_of_absent(core);
    else
        clock_want(core, core->stalls.warn_us);
}

/* Ends those that are absent, if it is known of the others that they wait, or of them that they
 * stand still. */
static bool end_absent(struct core *core, worker_is_fn *is_absent, worker_is_fn *is_awaiting,
                       const char *why)
{
    bool any_waits = false, any = false;
    struct worker *worker;

    for (size_t i = 0; (worker = roster_next(core, &i));) {
        worker->blamed = false;
        any_waits |= is_in_round(worker) && is_awaiting(core, worker);
    }
    for (size_t i = 0; (worker = roster_next(core, &i));) {
        worker->blamed = is_absent(core, worker) && any_waits &&
                         clock_is_heard(core, worker, core->config.stall_us);
        any |= worker->blamed;
    }
    if (any)
        end_guilty(core, 0, why);
    return any;
}

/* Somebody waits, or stands still: then those are meant that do not wait, and were there to be told
 * all the time. */
bool stall_end_who_never_began(struct core *core)
{
    return end_absent(core, has_not_begun, is_fresh, "it did not begin to train in time");
}

bool stall_end_who_never_checked(struct core *core)
{
    return end_absent(core, has_not_checked, waits_at_check,
                      "it did not come to a check in time, and the others wait there");
}
