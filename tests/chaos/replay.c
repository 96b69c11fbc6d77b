/*
 * replay.c: replays a trace with real processes: lists hosts, removes hosts, waits until the next
 * change is due, and looks for violations meanwhile.
 */
#include "tests/chaos/replay.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/vec.h"
#include "os/clock.h"
#include "os/file.h"
#include "tests/chaos/replay_hosts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES_MAX (1024 * 1024)
/* scans after a host was removed, for processes that were just being started there */
#define SWEEPS      8
#define SWEEP_US    (250 * TIME_MS)
#define SETTLE_US   (20 * TIME_MS) /* between two looks whether all hosts train */
#define WRONG_BYTES 4096

/* The order of actions at one moment: a host that leaves makes room for a host that joins. */
enum replay_do { REPLAY_DRAIN, REPLAY_REMOVE, REPLAY_ADD };

struct action {
    int64_t at_us; /* from the beginning, at the speed of the replay */
    size_t place;  /* index in the trace */
    enum replay_do what;
    uint32_t node;
};

/* The state of a replay that runs. */
struct play {
    struct replay *replay;
    struct arena *arena;
    struct steps *steps;
    struct replay_hosts hosts;
    bool *drained; /* of each node: a drain lasts until undrain, also while the host is gone */
    struct action *actions;
    size_t action_count;
    uint32_t sweeps;  /* scans that are left to do */
    int64_t moved_us; /* when the last step or change was seen */
    int64_t over_us;  /* when the last change was carried out */
    int64_t late_us;  /* by so much the actions that are left are late */
    size_t seen;      /* number of steps at that time */
};

/* ---- the actions and their times ------------------------------------------------------------- */

static int by_time(const void *left, const void *right)
{
    const struct action *a = left;
    const struct action *b = right;

    if (a->at_us != b->at_us)
        return a->at_us < b->at_us ? -1 : 1;
    if (a->what != b->what)
        return a->what < b->what ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* Turns the trace into actions with times at the speed of the replay, sorted by time. */
static void plan_actions(struct play *play, const struct trace *trace)
{
    const struct chaos_plan *plan = play->arena->plan;
    int64_t speed = plan->speed > 0 ? (int64_t)plan->speed : 1;
    int64_t first_us = trace->events[0].at_us;

    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        int64_t at_us = (event->at_us - first_us) / speed;

        if (plan->duration_us > 0 && at_us > plan->duration_us)
            break;
        if (!event->add && plan->notice_us > 0 && !plan->command)
            play->actions[play->action_count++] =
                (struct action){ .at_us = at_us > plan->notice_us ? at_us - plan->notice_us : 0,
                                 .place = i,
                                 .what = REPLAY_DRAIN,
                                 .node = event->node };
        play->actions[play->action_count++] =
            (struct action){ .at_us = at_us,
                             .place = i,
                             .what = event->add ? REPLAY_ADD : REPLAY_REMOVE,
                             .node = event->node };
    }
    qsort(play->actions, play->action_count, sizeof(*play->actions), by_time);
}

/* ---- carrying out actions -------------------------------------------------------------------- */

static int note_change(struct play *play, int64_t at_us, bool add)
{
    struct replay *replay = play->replay;
    int rc = vec_reserve(&replay->changes, &replay->change_room, replay->change_count, 1,
                         CHANGES_MAX, sizeof(*replay->changes));

    if (!rc)
        replay->changes[replay->change_count++] =
            (struct replay_change){ .at_us = at_us, .hosts = play->arena->host_count, .add = add };
    return rc;
}

/* Asks the driver to drain or undrain a host. A host that is drained too late, or is not used any
 * more, leaves without notice. */
static void ask(struct play *play, const char *verb, uint32_t node)
{
    const struct chaos_plan *plan = play->arena->plan;
    const char *words[] = { verb, NULL, NULL, NULL, NULL };
    char deadline[TIME_TEXT_MAX];
    char address[ARENA_NAME];

    words[1] = replay_hosts_address(node, address);
    if (!strcmp(verb, "drain")) {
        words[2] = "--deadline";
        words[3] = time_format(plan->notice_us, deadline);
    }
    play->drained[node] = !strcmp(verb, "drain");
    if (arena_ask(play->arena, words, NULL, NULL) != 0)
        play->replay->announced = false;
}

/* Performs all actions of one time, from index first on. *ret_next: the first action of the next
 * time. */
static int perform(struct play *play, size_t first, size_t *ret_next, struct hvd_err *err)
{
    const struct action *action = &play->actions[first];
    const struct action *end = play->actions + play->action_count;
    int64_t at_us = action->at_us;
    int64_t now_us;
    bool gone = false;
    bool come;
    int rc;

    for (; action < end && action->at_us == at_us; action++) {
        if (action->what == REPLAY_DRAIN && replay_hosts_used(&play->hosts, action->node)) {
            ask(play, "drain", action->node);
        } else if (action->what == REPLAY_REMOVE) {
            gone = replay_hosts_remove(&play->hosts, action->node) || gone;
        } else if (action->what == REPLAY_ADD) {
            if (play->drained[action->node])
                ask(play, "undrain", action->node);
            replay_hosts_add(&play->hosts, action->node);
        }
    }
    *ret_next = (size_t)(action - play->actions);
    now_us = clock_now_us();
    rc = gone ? note_change(play, now_us, false) : 0;
    come = replay_hosts_fill(&play->hosts) > 0;
    if (!rc && come)
        rc = note_change(play, now_us, true);
    if (rc)
        return err_set(err, rc, "no room for more changes");
    if (!gone && !come)
        return 0;
    rc = arena_list(play->arena, err);
    if (gone) {
        replay_hosts_sweep(&play->hosts);
        play->sweeps = SWEEPS;
    }
    play->moved_us = now_us;
    play->over_us = clock_now_us();
    return rc;
}

/* ---- violations ------------------------------------------------------------------------------ */

static void violate(struct play *play, const char *what)
{
    const int most = (int)sizeof(play->replay->violation) - 1;

    if (play->replay->violations++ == 0)
        snprintf(play->replay->violation, sizeof(play->replay->violation), "%.*s", most, what);
}

static void look_for_wrong(struct play *play)
{
    char path[ARENA_PATH];
    struct buf text;
    struct hvd_err err;

    buf_init(&text, WRONG_BYTES);
    if (file_read(arena_path(play->arena, "wrong", path), &text, &err))
        violate(play, err.text);
    else if (text.length > 0)
        violate(play, buf_text(&text));
    buf_release(&text);
}

/* true: the job has ended or has violated something, so the replay ends. */
static bool has_ended(struct play *play)
{
    char text[160];

    if (*play->arena->broken_off)
        return true;
    if (arena_driver_ended(play->arena)) {
        snprintf(text, sizeof(text), "the launcher has ended by itself, %.1f s after the beginning",
                 (double)(clock_now_us() - play->replay->began_us) / (double)TIME_S);
        violate(play, text);
        return true;
    }
    if (play->steps->count > play->seen || play->arena->host_count == 0) {
        play->seen = play->steps->count;
        play->moved_us = clock_now_us();
    }
    if (clock_now_us() - play->moved_us < play->arena->plan->patience_us)
        return false;
    snprintf(text, sizeof(text), "no step for %.0f s with %" PRIu32 " hosts: it hangs",
             (double)play->arena->plan->patience_us / (double)TIME_S, play->arena->host_count);
    violate(play, text);
    return true;
}

/* ---- the replay ------------------------------------------------------------------------------ */

/* Waits until this time, or until the job has ended; kills processes that were just being started
 * on a host that was removed. */
static int wait_until(struct play *play, int64_t until_us, bool *ret_over, struct hvd_err *err)
{
    int rc = 0;

    while (!rc && !*ret_over && clock_now_us() < until_us) {
        int64_t look_us = clock_now_us() + SWEEP_US;

        rc = steps_await(play->steps, SIZE_MAX, look_us < until_us ? look_us : until_us, err);
        if (rc == HVD_E_TIMEOUT)
            rc = 0;
        if (play->sweeps > 0) {
            play->sweeps--;
            replay_hosts_sweep(&play->hosts);
        }
        *ret_over = has_ended(play);
    }
    return rc;
}

/* true: all hosts that are there have done a step since the last change. */
static bool all_train(const struct play *play)
{
    const struct steps *steps = play->steps;
    const struct step *last = steps->count ? &steps->list[steps->count - 1] : NULL;

    uint32_t whole = arena_whole(play->arena);

    return !whole || (last && last->at_us > play->over_us && last->size == whole);
}

/* Waits until the time of an action. With --settle, waits further until the job trains on all
 * hosts, so that no host goes while it alone has the training state. A host that was drained goes
 * at its time after that: until then it is listed and does not train. */
static int wait_for(struct play *play, const struct action *action, bool *ret_over,
                    struct hvd_err *err)
{
    const struct chaos_plan *plan = play->arena->plan;
    int64_t due_us = play->replay->began_us + play->late_us + action->at_us;
    bool was_drained = action->what == REPLAY_REMOVE && plan->notice_us > 0;
    int64_t deadline_us = due_us + plan->patience_us;
    int rc = wait_until(play, due_us, ret_over, err);

    if (!plan->settle || was_drained)
        return rc;
    while (!rc && !*ret_over && !all_train(play)) {
        if (clock_now_us() >= deadline_us) {
            violate(play, "the job does not train on all of its hosts: see driver.log");
            *ret_over = true;
        } else {
            rc = wait_until(play, clock_now_us() + SETTLE_US, ret_over, err);
        }
    }
    if (clock_now_us() > due_us)
        play->late_us += clock_now_us() - due_us;
    return rc;
}

/* Launches the job and performs all actions at their times, until the job has ended or the time is
 * over. */
static int play_all(struct play *play, struct hvd_err *err)
{
    const struct chaos_plan *plan = play->arena->plan;
    int64_t began_us = clock_now_us();
    bool over = false;
    size_t next = 0;
    int rc = perform(play, 0, &next, err);

    play->replay->began_us = play->moved_us = began_us;
    if (!rc)
        rc = replay_launch(play->arena, play->hosts.most * (uint32_t)plan->slots, err);
    while (!rc && !over && next < play->action_count) {
        rc = wait_for(play, &play->actions[next], &over, err);
        if (!rc && !over)
            rc = perform(play, next, &next, err);
    }
    if (!rc && !over && plan->duration_us > 0)
        rc = wait_until(play, began_us + play->late_us + plan->duration_us, &over, err);
    if (!rc)
        rc = steps_read(play->steps, err);
    play->replay->ended_us = clock_now_us();
    return rc;
}

static int play_and_end(struct play *play, struct hvd_err *err)
{
    struct hvd_err how;
    int rc = play_all(play, err);

    if (rc)
        return rc;
    if (play->arena->driver && !*play->arena->broken_off && replay_land(play->arena, &how))
        violate(play, how.text);
    look_for_wrong(play);
    if (!play->steps->count && !*play->arena->broken_off)
        violate(play, "not one step was done: driver.log says why, or --speed is too high");
    return goodput_work_out(play->replay, play->steps);
}

int replay_run(struct replay *replay, struct arena *arena, const struct trace *trace,
               struct steps *steps, struct hvd_err *err)
{
    struct play play = { .replay = replay, .arena = arena, .steps = steps };
    int rc;
    const struct chaos_plan *plan = arena->plan;
    const char *file = plan->trace ? strrchr(plan->trace, '/') : NULL;

    snprintf(replay->title, sizeof(replay->title), "%.60s at %" PRIu64 "x, %s%s",
             file          ? file + 1
             : plan->trace ? plan->trace
                           : "a trace",
             plan->speed, plan->command ? "another launcher" : "hvd-elastic",
             plan->notice_us > 0 && !plan->command ? ", with notice" : "");
    replay->slots = (uint32_t)plan->slots;
    replay->announced = plan->notice_us > 0 && !plan->command;
    rc = replay_hosts_init(&play.hosts, arena, trace->node_count);
    play.actions = mem_zalloc_array(2 * trace->count, sizeof(*play.actions));
    play.drained = mem_zalloc_array(trace->node_count, sizeof(*play.drained));
    if (rc || !play.actions || !play.drained) {
        rc = err_set(err, HVD_E_NOMEM, "no memory to play the trace");
    } else {
        plan_actions(&play, trace);
        rc = play_and_end(&play, err);
    }
    mem_free(play.actions);
    mem_free(play.drained);
    replay_hosts_release(&play.hosts);
    return rc;
}

void replay_release(struct replay *replay)
{
    if (!replay)
        return;
    mem_free(replay->changes);
    *replay = (struct replay){ .changes = NULL };
}
