/*
 * pace.c: keeps what heartbeats say of workers, and judges which worker is silent or behind. Called
 * by agents.c with each heartbeat, by stall.c for its warnings, and by view.c. Invariant: no other
 * file of the core reads these fields, so a pulse that lies can only be shown.
 */
#include "driver/core/pace.h"

#include "driver/core/authority.h"
#include "driver/core/elect.h"
#include "driver/core/roster.h"
#include "driver/core/round.h"
#include "driver/core/say.h"
#include "driver/core/tell.h"

#include <inttypes.h>

/* How many heartbeat intervals a worker may be silent, or behind. Worker and agent send a heartbeat
 * once in an interval, so a worker that is well may seem silent for two. */
#define SILENT_BEATS 4
#define BEHIND_BEATS 5
/* A round must be at least this many heartbeat intervals old before the number of its commits per
 * time is shown: then each agent has sent a heartbeat. */
#define RATE_BEATS 2
/* A worker is behind when another member has this many commits more; members that are in the same
 * collective may be one commit apart */
#define BEHIND_COMMITS 2
#define PACE_REMEDY    "let each rank commit equally often"
#define MARK_US        (10 * TIME_S) /* the time from one mark (struct pace_mark) to the next */

/* Returns the moment `us` microseconds before this step, but not a moment before 0. */
static int64_t pace_ago(const struct core *core, int64_t us)
{
    return us < core->now_us ? core->now_us - us : 0;
}

/* Takes what a heartbeat says of one worker. A worker counts as behind since behind_us, as long as
 * its newest commit stays the same: a member that seems to have an older commit than another one
 * may only have been looked at earlier. */
static void pace_on_pulse(struct core *core, struct worker *worker, const struct msg_pulse *pulse)
{
    struct core_pace *pace = &core->rounds.pace;
    bool moved = worker->pulse.commit != pulse->commit;

    worker->pulse.heard_us = pace_ago(core, pulse->silent_us);
    if (!pulse->commit || !elect_believes(core, pulse->commit))
        return;
    worker->pulse.commit = pulse->commit;
    worker->pulse.commit_us = pace_ago(core, pulse->commit_us);
    if (worker->entered && pace->newest < pulse->commit) {
        pace->newest = pulse->commit;
        pace->newest_us = worker->pulse.commit_us;
    }
    if (!worker->entered || pace->newest - pulse->commit < BEHIND_COMMITS) {
        worker->pulse.behind_us = TIME_NEVER;
    } else if (moved || worker->pulse.behind_us == TIME_NEVER ||
               worker->pulse.behind_round != core->current.number) {
        worker->pulse.behind_us = core->now_us;
        worker->pulse.behind_round = core->current.number;
    }
}

/* Returns a sentence for a worker that has made fewer commits than another one, with the remedy. */
static const char *pace_sentence(struct core *core, const struct worker *worker)
{
    uint64_t newest = core->rounds.pace.newest, own = worker->pulse.commit;
    uint64_t round = COMMIT_ROUND_OF(newest);
    char name[WORKER_NAME_MAX];

    return tell_text(core,
                     "rank %" PRIu32 " (%s) has made %" PRIu32 " commits in round %" PRIu64
                     ", another rank %" PRIu32 ": " PACE_REMEDY,
                     worker->rank, worker_name(worker, name),
                     COMMIT_ROUND_OF(own) == round ? COMMIT_PLACE_OF(own) : 0, round,
                     COMMIT_PLACE_OF(newest));
}

/* Warns, once in a round, of a member that is behind. */
static void pace_warn(struct core *core, struct worker *worker)
{
    const char *sentence;

    if (!pace_is_behind(core, worker) || worker->pulse.told_round == core->current.number)
        return;
    worker->pulse.told_round = core->current.number;
    sentence = pace_sentence(core, worker);
    CORE_WARN(core,
              FACTS(.kind = KIND_WORKER_BEHIND, OF_WORKER(worker), .commit = worker->pulse.commit,
                    .cause = sentence),
              "%s", sentence);
}

/* The member that is named has two commits (BEHIND_COMMITS) fewer than another one; or others have
 * left the last round at their agreed check, and this member has not come to that check. */
const char *pace_difference(struct core *core)
{
    uint64_t newest = core->rounds.pace.newest, round;
    const struct worker *worker;
    char name[WORKER_NAME_MAX];
    bool leaves;

    /* A member that has left the last round has a newer commit, and does not train yet. */
    for (size_t i = 0; (worker = roster_next_member(core, &core->current, &i));)
        newest = worker->pulse.commit > newest ? worker->pulse.commit : newest;
    round = COMMIT_ROUND_OF(newest);
    leaves = core->current.cause == CAUSE_SWITCH && round == core->current.number;
    for (size_t i = 0; (worker = roster_next_member(core, &core->current, &i));) {
        uint64_t own = worker->pulse.commit;

        if (!own)
            continue;
        if (COMMIT_ROUND_OF(own) == round && newest - own >= BEHIND_COMMITS)
            return tell_text(core, ": %s", pace_sentence(core, worker));
        if (leaves && COMMIT_ROUND_OF(own) < round && round_has(&core->last, worker))
            return tell_text(
                core,
                ": rank %" PRIu32 " (%s) has made %" PRIu32 " commits in round %" PRIu64
                ", and has not come to the check at which others left it: " PACE_REMEDY,
                worker->rank, worker_name(worker, name), COMMIT_PLACE_OF(own),
                COMMIT_ROUND_OF(own));
    }
    return "";
}

/* Returns how many commits of the current round are known. */
static uint64_t pace_made(const struct core *core)
{
    uint64_t newest = core->rounds.pace.newest;

    return COMMIT_ROUND_OF(newest) == core->current.number ? COMMIT_PLACE_OF(newest) : 0;
}

/* Takes the pulses of a heartbeat of this host's agent, and moves the marks from which pace_commits
 * measures. */
void pace_on_beat(struct core *core, struct core_host *host, const struct msg_beat *beat)
{
    struct pace_mark *marks = core->rounds.pace.marks;
    struct pace_mark now = { core->current.number, 0, core->now_us };

    for (size_t i = 0; i < beat->pulses.count; i++) {
        const struct msg_pulse *pulse = &beat->pulses.items[i];

        if (!authority_believes_beat(core, host, pulse->incarnation))
            continue;
        pace_on_pulse(core, roster_worker(core, pulse->incarnation), pulse);
        pace_warn(core, roster_worker(core, pulse->incarnation));
    }
    /* marks[0] is the older mark: 10 to 20 s old, or as old as the round. */
    now.made = pace_made(core);
    if (marks[1].round != now.round)
        marks[0] = marks[1] = now;
    if (core->now_us - marks[1].at_us < MARK_US)
        return;
    marks[0] = marks[1];
    marks[1] = now;
}

void pace_heard(const struct core *core, struct worker *worker)
{
    worker->pulse.heard_us = core->now_us;
}

/* True: the worker is alive and was heard before, but not for SILENT_BEATS heartbeat intervals. */
bool pace_is_silent(const struct core *core, const struct worker *worker)
{
    return worker_is_alive(worker) && worker->pulse.heard_us != TIME_NEVER &&
           core->now_us - worker->pulse.heard_us > SILENT_BEATS * core->config.beat_us;
}

/* True: the member has been behind (BEHIND_COMMITS) for more than BEHIND_BEATS heartbeat
 * intervals. */
bool pace_is_behind(const struct core *core, const struct worker *worker)
{
    return round_has(&core->current, worker) && worker->pulse.behind_us != TIME_NEVER &&
           core->now_us - worker->pulse.behind_us > BEHIND_BEATS * core->config.beat_us;
}

/* Returns how many commits were made since the older mark, and in *ret_us the time since then (0:
 * not known yet). */
uint64_t pace_commits(const struct core *core, int64_t *ret_us)
{
    const struct pace_mark *from = &core->rounds.pace.marks[0];

    *ret_us = 0;
    /* Before an agent has sent its second heartbeat, the rate would be 0 after each change. */
    if (!core->current.number || from->round != core->current.number ||
        core->now_us - from->at_us < RATE_BEATS * core->config.beat_us)
        return 0;
    *ret_us = core->now_us - from->at_us;
    /* A commit of the next round may be known before that round begins; then pace_made is 0, and no
     * number below 0 is returned. */
    return pace_made(core) > from->made ? pace_made(core) - from->made : 0;
}
