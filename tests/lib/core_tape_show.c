/*
 * core_tape_show.c: writes the actions, records and views of a driver's core as text, in the words
 * of the scripts.
 */
#include "base/time.h"
#include "proto/catalog.h"
#include "proto/commit.h"
#include "tests/lib/core_tape.h"

#include <inttypes.h>

static const char *const causes[CAUSE_COUNT] = { "first", "switch", "recovery" };

static int show_ids(const char *before, const struct msg_ids *ids, struct buf *out)
{
    int rc = buf_append_text(out, before);

    for (size_t i = 0; !rc && i < ids->count; i++)
        rc = buf_printf(out, "%s%" PRIu64, i ? "," : "", ids->items[i]);
    return rc;
}

static int show_members(const struct msg_member_list *members, struct buf *out)
{
    int rc = buf_append_text(out, ": ");

    for (size_t i = 0; !rc && i < members->count; i++)
        rc = buf_printf(out, "%s%" PRIu64, i ? "," : "", members->items[i].incarnation);
    return rc;
}

static int show_commit(uint64_t commit, struct buf *out)
{
    return buf_printf(out, " from %" PRIu64 ".%" PRIu32, COMMIT_ROUND_OF(commit),
                      COMMIT_PLACE_OF(commit));
}

static int show_ended(uint32_t ended, int32_t value, struct buf *out)
{
    if (ended == ENDED_SILENT)
        return buf_append_text(out, " silent");
    return buf_printf(out, " %s%" PRId32, ended == ENDED_EXIT ? "exit" : "sig", value);
}

static int show_round_record(const struct journal_record *record, struct buf *out)
{
    int rc = buf_printf(out, " %" PRIu64 " %s after %" PRIu64, record->round, causes[record->cause],
                        record->previous);

    if (!rc)
        rc = show_commit(record->commit, out);
    if (!rc && record->holders.count)
        rc = show_ids(" of ", &record->holders, out);
    if (!rc && record->check)
        rc = buf_printf(out, " check %" PRIu64, record->check);
    return rc ? rc : show_ids(": ", &record->members, out);
}

static int show_seat(const char *host, uint32_t slot, struct buf *out)
{
    if (slot == EVENT_WHOLE_HOST)
        return buf_printf(out, " %s", host);
    return buf_printf(out, " %s:%" PRIu32, host, slot);
}

static int show_drain_record(const struct journal_record *record, struct buf *out)
{
    char text[TIME_TEXT_MAX];
    int rc = show_seat(record->host, record->slot, out);

    if (rc || !record->wall_us)
        return rc ? rc : buf_append_text(out, " ends");
    return buf_printf(
        out, " until %s",
        time_format(record->wall_us == TIME_NEVER ? TIME_NEVER : record->wall_us - TAPE_WALL,
                    text));
}

static int show_record(const struct journal_record *record, struct buf *out)
{
    int rc = buf_printf(out, "record %s", journal_kind_name(record->kind));

    if (rc)
        return rc;
    switch (record->kind) {
    case JOURNAL_TERM: return buf_printf(out, " %" PRIu64, record->term);
    case JOURNAL_LAUNCH:
        rc = buf_printf(out, " %" PRIu64, record->incarnation);
        return rc ? rc : show_seat(record->host, record->slot, out);
    case JOURNAL_ROUND: return show_round_record(record, out);
    case JOURNAL_ENDED:
        rc = buf_printf(out, " %" PRIu64, record->incarnation);
        return rc ? rc : show_ended(record->ended, record->value, out);
    case JOURNAL_KEY:
        return buf_printf(out, " %s %" PRId32 " code %" PRId32, record->host, record->value,
                          record->code);
    case JOURNAL_DRAIN: return show_drain_record(record, out);
    case JOURNAL_OVER: return buf_printf(out, " %" PRId32 ": %s", record->code, record->text);
    case JOURNAL_STUCK:
        rc = *record->host ? show_seat(record->host, record->slot, out) : 0;
        return rc ? rc
                  : buf_printf(out, " %" PRId32 " job %" PRId32 " since %" PRIu64 ".%" PRIu32,
                               record->value, record->code, COMMIT_ROUND_OF(record->commit),
                               COMMIT_PLACE_OF(record->commit));
    case JOURNAL_BASE:
        return buf_printf(out, " %" PRIu64 " round %" PRIu64, record->incarnation, record->round);
    case JOURNAL_STORE:
        return buf_printf(out,
                          " %" PRIu64 " call %" PRIu64 " round %" PRIu64 " code %" PRId32 " %s=%s",
                          record->incarnation, record->check, record->round, record->code,
                          record->text, record->addresses.count ? record->addresses.items[0] : "");
    case JOURNAL_TOKEN:
        return buf_printf(out, " %.8s code %" PRId32 "%s%s", record->text, record->code,
                          *record->host ? " " : "", record->host);
    case JOURNAL_NOTICE:
        return buf_printf(out, " %s %" PRId32 " of %" PRId32, record->host, record->value,
                          record->code);
    case JOURNAL_GOODPUT:
        return buf_printf(out, " %s %" PRIu64 " of %" PRIu64, goodput_use_name(record->slot),
                          record->check, record->manifest);
    case JOURNAL_REPORTED:
        return buf_printf(out, " %s by %" PRIu64, record->text, record->incarnation);
    case JOURNAL_NUMBER:
    case JOURNAL_ENTERED: return buf_printf(out, " %" PRIu64, record->round);
    case JOURNAL_READY:
    case JOURNAL_FINISHED: return buf_printf(out, " %" PRIu64, record->incarnation);
    }
    return rc;
}

static int show_round(const struct msg *msg, struct buf *out)
{
    const struct msg_round *round = &msg->u.round;
    int rc = buf_printf(out, " %" PRIu64 " %s after %" PRIu64, msg->round, causes[round->cause],
                        round->previous);

    if (!rc)
        rc = show_commit(round->commit, out);
    if (!rc)
        rc = round->holders.count ? show_ids(" of ", &round->holders, out) : 0;
    for (size_t i = 0; !rc && i < round->sources.count; i++) {
        const struct msg_source *source = &round->sources.items[i];

        rc = *source->host
                 ? buf_printf(out, "%s%s:%u", i ? "," : " kept by ", source->host, source->slot)
                 : buf_printf(out, " in %s", source->addresses.items[0]);
    }
    return rc ? rc : show_members(&round->members, out);
}

static int show_launch(const struct msg *msg, struct buf *out)
{
    const struct msg_launch *launch = &msg->u.launch;

    return buf_printf(out, " %" PRIu64 " in %" PRIu32 " as %u/%u local %u/%u cross %u/%u",
                      msg->incarnation, launch->slot, launch->rank, launch->size,
                      launch->local_rank, launch->local_size, launch->cross_rank,
                      launch->cross_size);
}

static int show_change(const struct msg *msg, struct buf *out)
{
    int rc = buf_printf(out, " %" PRIu64, msg->round);

    if (rc)
        return rc;
    switch (msg->type) {
    case MSG_PREPARE:
        rc = buf_printf(out, " after %" PRIu64, msg->u.prepare.previous);
        return rc ? rc : show_members(&msg->u.prepare.members, out);
    case MSG_PENDING: return buf_printf(out, " next %" PRIu64, msg->u.pending.next);
    case MSG_SWITCH_AT:
        return buf_printf(out, " next %" PRIu64 " check %" PRIu64, msg->u.switch_at.next,
                          msg->u.switch_at.check);
    case MSG_ABANDON:
        return buf_printf(out, " next %" PRIu64 ": %s", msg->u.abandon.next, msg->u.abandon.reason);
    case MSG_REVOKE:
        if (msg->u.revoke.lost.count)
            rc = show_ids(" lost ", &msg->u.revoke.lost, out);
        return rc ? rc : buf_printf(out, ": %s", msg->u.revoke.reason);
    case MSG_HOSTS_UPDATED:
        return buf_printf(out, " +%u -%u", msg->u.hosts_updated.added,
                          msg->u.hosts_updated.removed);
    default: return 0;
    }
}

static int show_hold(const struct msg *msg, struct buf *out)
{
    const struct msg_hold *hold = &msg->u.hold;
    int rc = buf_printf(out, " try %" PRIu32, (uint32_t)hold->number);

    if (!rc && hold->at)
        rc = buf_printf(out, " at %" PRIu64 ".%" PRIu32, COMMIT_ROUND_OF(hold->at),
                        COMMIT_PLACE_OF(hold->at));
    if (!rc && hold->only)
        rc = buf_append_text(out, " only");
    return rc ? rc : show_ids(" slots ", &hold->slots, out);
}

static int show_save(const struct msg *msg, struct buf *out)
{
    const struct msg_save *save = &msg->u.save;
    int rc = buf_printf(out, " %s/%s of slot %" PRIu32 ":", save->folder, save->name, save->slot);

    for (size_t i = 0; !rc && i < save->entries.count; i++)
        rc = buf_printf(out, " %s", save->entries.items[i].name);
    return rc;
}

static int show_checkpoint(const struct checkpoint_done *done, struct buf *out)
{
    int rc = buf_printf(out, "complete %s of %" PRIu32 " ranks:", done->folder, done->ranks);

    for (size_t i = 0; !rc && i < done->file_count; i++)
        rc = buf_printf(out, " %s (%" PRIu64 ")", done->files[i].name, done->files[i].bytes);
    return rc;
}

static int show_msg(const struct msg *msg, struct buf *out)
{
    char text[TIME_TEXT_MAX];
    int rc = buf_append_text(out, msg_kind(msg->type)->name);

    if (rc)
        return rc;
    switch (msg->type) {
    case MSG_LAUNCH: return show_launch(msg, out);
    case MSG_ROUND: return show_round(msg, out);
    case MSG_WELCOME_AGENT: return buf_printf(out, " term %" PRIu64, msg->term);
    case MSG_REKEY: return buf_printf(out, " %" PRIu64, msg->u.rekey.epoch);
    case MSG_START: return buf_printf(out, " %" PRIu64, msg->u.start.epoch);
    case MSG_HOLD: return show_hold(msg, out);
    case MSG_SAVE: return show_save(msg, out);
    case MSG_RELEASE: return buf_printf(out, " try %" PRIu32, (uint32_t)msg->u.release.number);
    case MSG_PERSISTED:
        return buf_printf(out, " %" PRIu64 " %" PRIu64 ".%" PRIu32 "%s%s%s%s", msg->incarnation,
                          COMMIT_ROUND_OF(msg->u.persisted.commit),
                          COMMIT_PLACE_OF(msg->u.persisted.commit),
                          msg->u.persisted.code ? " " : "",
                          msg->u.persisted.code ? err_name(msg->u.persisted.code) : "",
                          *msg->u.persisted.text ? ": " : "", msg->u.persisted.text);
    case MSG_STORED:
        return buf_printf(out, " %" PRIu64 " %" PRIu32 ":%" PRIu64 "%s%s%s%.*s", msg->incarnation,
                          msg->u.stored.channel, msg->u.stored.number,
                          msg->u.stored.code ? " " : "",
                          msg->u.stored.code ? err_name(msg->u.stored.code) : "",
                          msg->u.stored.value.length ? " =" : "", (int)msg->u.stored.value.length,
                          (const char *)msg->u.stored.value.at);
    case MSG_BEAT: return buf_printf(out, " %" PRIu64, msg->u.beat.sequence);
    case MSG_REFUSED: return buf_printf(out, ": %s", msg->u.refused.text);
    case MSG_STOP:
        return buf_printf(out, "%s: %s", msg->u.stop.grace_us ? "" : " now", msg->u.stop.reason);
    case MSG_KILL:
        return buf_printf(out, " %" PRIu64 " in %s: %s", msg->incarnation,
                          time_format(msg->u.kill.grace_us, text), msg->u.kill.reason);
    case MSG_DRAIN:
        return buf_printf(out, " %" PRIu64 ": %s", msg->incarnation, msg->u.drain.reason);
    case MSG_FORGET:
    case MSG_DONE: return buf_printf(out, " %" PRIu64, msg->incarnation);
    case MSG_EXAMINE: return 0;
    default: return show_change(msg, out);
    }
}

int tape_show(struct core_tape *tape, const struct action *action, struct buf *out)
{
    const struct blacklist_record *record;
    int rc;

    switch (action->kind) {
    case ACTION_RECORD: return show_record(action->record, out);
    case ACTION_BLACKLIST:
        record = &action->change->record;
        rc = buf_append_text(out, "bar");
        if (!rc)
            rc = show_seat(record->host, record->slot, out);
        return rc ? rc
                  : buf_printf(out, " (%" PRIu32 "): %s", record->failures,
                               action->change->event.reason);
    case ACTION_SEND: return show_msg(action->msg, out);
    case ACTION_CLOSE:
        return buf_printf(out, "close %s: %s", tape->by_peer[action->peer]->name, action->text);
    case ACTION_KEY:
        return buf_printf(out, "key %" PRIu64 " of %s%s", action->number, action->host,
                          action->code ? "" : " ends");
    case ACTION_TOKEN: return buf_printf(out, "token %.8s", action->text);
    case ACTION_START_AGENT: return buf_printf(out, "start %s", action->host);
    case ACTION_CHECK_OWNER: return buf_append_text(out, "check owner");
    case ACTION_DISCOVER: return buf_append_text(out, "discover");
    case ACTION_CHECKPOINT: return show_checkpoint(action->checkpoint, out);
    case ACTION_CHECKPOINT_REJECT: return buf_printf(out, "reject %s", action->text);
    case ACTION_REKEYING:
        return buf_printf(out, "%s: %s", action->code ? "rekeyed" : "rekeying", action->text);
    case ACTION_REPLY:
        return buf_printf(out, "reply %s%s%s", err_name(action->code), *action->text ? ": " : "",
                          action->text);
    default: return buf_printf(out, "exit %d: %s", action->code, action->text);
    }
}

static int show_view_host(const struct view_host *host, struct buf *out)
{
    int rc = buf_printf(out, "\n%s %s%s%s:", host->name, agent_state_name(host->agent),
                        host->listed ? "" : " unlisted", host->draining ? " draining" : "");

    for (size_t i = 0; !rc && i < host->worker_count; i++) {
        const struct view_worker *worker = &host->workers[i];

        rc = buf_printf(out, " #%" PRIu64 " in %u %s", worker->incarnation, worker->slot,
                        worker_state_name(worker->state));
        if (!rc && worker->rank != UINT32_MAX)
            rc = buf_printf(out, " %u%s", worker->rank, worker->entered ? "*" : "");
        if (!rc)
            rc = buf_append_text(out, ",");
    }
    return rc ? rc : buf_printf(out, " of %u%s%s", host->slots, *host->why ? "; " : "", host->why);
}

int tape_show_view(const struct core_view *view, struct buf *out)
{
    int rc = buf_printf(out, "%s term %" PRIu64 " round %" PRIu64, job_state_name(view->job),
                        view->term, view->round);

    if (!rc && view->next)
        rc = buf_printf(out, " next %" PRIu64, view->next);
    if (!rc && view->round)
        rc = show_commit(view->commit, out);
    if (!rc)
        rc = show_ids(": ", &(struct msg_ids){ view->members, view->member_count }, out);
    if (!rc)
        rc = buf_printf(out, ", floor %" PRIu64 ", resets %u%s%s%s",
                        COMMIT_ROUND_OF(view->resume_min_commit), view->resets,
                        view->shortage.since_us == TIME_NEVER ? "" : ", short",
                        *view->waiting_for ? "; waits for " : "", view->waiting_for);
    if (!rc && view->notices.ended)
        rc = buf_printf(out, ", notices %" PRIu32 " of %" PRIu32, view->notices.honoured,
                        view->notices.ended);
    for (size_t i = 0; !rc && i < view->host_count; i++)
        rc = show_view_host(&view->hosts[i], out);
    return rc;
}

int tape_show_held(const struct core_view *view, struct buf *out)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < view->held_count; i++) {
        const struct view_held *held = &view->held[i];
        char key[BLACKLIST_KEY_TEXT_MAX];
        char text[TIME_TEXT_MAX];

        rc = buf_printf(out, "%s%s (%u, %s): %s", i > 0 ? "\n" : "",
                        blacklist_key_format(held->host, held->slot, key), held->failures,
                        time_format(held->left_us, text), held->reason);
    }
    return rc;
}
