/*
 * facts.h: the facts of a line of a trace, for programs: its kind of event, and the round, host,
 * slot, worker, cause and durations that it names. The module that adds the line gives them, so no
 * program has to read them out of the text. The name of a kind (docs/events.md) never changes.
 */
#ifndef BASE_FACTS_H
#define BASE_FACTS_H

#include "base/base.h"

#define FACTS_KINDS(KIND)                              \
    KIND(NONE, "")                                     \
    KIND(AGENT_AWAITED, "agent_awaited")               \
    KIND(AGENT_BACK, "agent_back")                     \
    KIND(AGENT_CONNECTED, "agent_connected")           \
    KIND(AGENT_ENDED, "agent_ended")                   \
    KIND(AGENT_FAILED, "agent_failed")                 \
    KIND(AGENT_LOST, "agent_lost")                     \
    KIND(AGENT_REFUSED, "agent_refused")               \
    KIND(AGENTS_SILENT, "agents_silent")               \
    KIND(CHECKPOINT_AWAITED, "checkpoint_awaited")     \
    KIND(CHECKPOINT_COMPLETE, "checkpoint_complete")   \
    KIND(CHECKPOINT_DAMAGED, "checkpoint_damaged")     \
    KIND(CHECKPOINT_FAILED, "checkpoint_failed")       \
    KIND(CHECKPOINT_POSTPONED, "checkpoint_postponed") \
    KIND(CHECKPOINT_RESTORED, "checkpoint_restored")   \
    KIND(CHECKPOINT_WANTED, "checkpoint_wanted")       \
    KIND(CHECKPOINTS_FOUND, "checkpoints_found")       \
    KIND(CHECKPOINTS_MISSING, "checkpoints_missing")   \
    KIND(COMMIT_MISSING, "commit_missing")             \
    KIND(COOLDOWN_OVER, "cooldown_over")               \
    KIND(DISCOVERY_FAILED, "discovery_failed")         \
    KIND(DISCOVERY_WORKS, "discovery_works")           \
    KIND(DRAIN_BEGUN, "drain_begun")                   \
    KIND(DRAIN_ENDED, "drain_ended")                   \
    KIND(DRIVER_ASLEEP, "driver_asleep")               \
    KIND(DRIVER_FOLLOWS, "driver_follows")             \
    KIND(DRIVER_ORPHANED, "driver_orphaned")           \
    KIND(DRIVER_STARTED, "driver_started")             \
    KIND(FAILURE_COUNTED, "failure_counted")           \
    KIND(FAILURE_FORGOTTEN, "failure_forgotten")       \
    KIND(FAILURE_REMEMBERED, "failure_remembered")     \
    KIND(HOST_JOINED, "host_joined")                   \
    KIND(HOST_LEFT, "host_left")                       \
    KIND(HOST_LOST, "host_lost")                       \
    KIND(HOST_REFUSED, "host_refused")                 \
    KIND(HOSTS_CHANGED, "hosts_changed")               \
    KIND(JOB_FINISHING, "job_finishing")               \
    KIND(JOB_OVER, "job_over")                         \
    KIND(JOB_STOPPING, "job_stopping")                 \
    KIND(JOB_SUMMARY, "job_summary")                   \
    KIND(JOURNAL_STALLED, "journal_stalled")           \
    KIND(JOURNAL_WORKS, "journal_works")               \
    KIND(KEY_ENDED, "key_ended")                       \
    KIND(KEYS_CHANGED, "keys_changed")                 \
    KIND(KEYS_CHANGING, "keys_changing")               \
    KIND(LINES_MISSING, "lines_missing")               \
    KIND(MEMBERS_KEPT, "members_kept")                 \
    KIND(MESSAGE_REFUSED, "message_refused")           \
    KIND(NO_PROGRESS, "no_progress")                   \
    KIND(NOTICE_HONOURED, "notice_honoured")           \
    KIND(NOTICE_MISSED, "notice_missed")               \
    KIND(PORT_CROWDED, "port_crowded")                 \
    KIND(ROUND_ABANDONED, "round_abandoned")           \
    KIND(ROUND_BEGUN, "round_begun")                   \
    KIND(ROUND_PREPARED, "round_prepared")             \
    KIND(ROUND_RANKS, "round_ranks")                   \
    KIND(ROUND_REVOKED, "round_revoked")               \
    KIND(ROUND_TRAINS, "round_trains")                 \
    KIND(STALL, "stall")                               \
    KIND(TERMINAL_LOST, "terminal_lost")               \
    KIND(TOKEN_MADE, "token_made")                     \
    KIND(TOKEN_REVOKED, "token_revoked")               \
    KIND(TOO_FEW_SLOTS, "too_few_slots")               \
    KIND(TOO_FEW_WORKERS, "too_few_workers")           \
    KIND(VALUE_LATE, "value_late")                     \
    KIND(VERSION_DIFFERS, "version_differs")           \
    KIND(WORKER_AWAITED, "worker_awaited")             \
    KIND(WORKER_BEHIND, "worker_behind")               \
    KIND(WORKER_COMPLAINED, "worker_complained")       \
    KIND(WORKER_ENDED, "worker_ended")                 \
    KIND(WORKER_FAILED, "worker_failed")               \
    KIND(WORKER_FINISHED, "worker_finished")           \
    KIND(WORKER_KILLED, "worker_killed")               \
    KIND(WORKER_LAUNCHED, "worker_launched")           \
    KIND(WORKER_LEFT, "worker_left")                   \
    KIND(WORKER_READY, "worker_ready")                 \
    KIND(WORKER_RECOVERED, "worker_recovered")         \
    KIND(WORKER_REMARK, "worker_remark")               \
    KIND(WORKERS_READY, "workers_ready")

#define FACTS_KIND_NUMBER(number, name) KIND_##number,
enum facts_kind { FACTS_KINDS(FACTS_KIND_NUMBER) KIND_COUNT };
#undef FACTS_KIND_NUMBER

/* A number, a time or a text that is 0 or NULL is not known. Texts are borrowed. */
struct facts {
    enum facts_kind kind;
    bool has_slot;
    uint32_t slot;
    uint64_t round;
    uint64_t size;        /* how many workers the event is about; of a round: its members */
    uint64_t commit;      /* the number of a commit, as proto/commit.h makes it */
    uint64_t incarnation; /* the number of the worker that the line names */
    const char *host;
    const char *outcome; /* how the job has ended, in one word */
    const char *cause;
    int64_t took_us; /* how long the thing that the line tells of took, or has lasted */
    int64_t left_us; /* the time until the deadline that the event names; TIME_NEVER: none */
    bool has_cost;
    struct {
        int64_t pause_us, detect_us, agree_us, rebuild_us, state_us, first_step_us;
    } cost; /* the times of a change of the membership, as the verb "changes" shows them */
};
#define FACTS(...) (&(struct facts){ __VA_ARGS__ })

/* Returns the name of a kind; KIND_NONE has "". */
const char *facts_kind_name(enum facts_kind kind);

#endif
