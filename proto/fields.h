/*
 * fields.h: the one list of what each message is made of. The codec packs, unpacks and validates by
 * it, msg_describe prints by it, and the tests fill and compare by it, so none of them can forget
 * a field. The structs are written out in msg.h for people to read; the names agree with hvd.proto.
 *
 * A field is F(kind, name, a, b):
 *     NUM     a number or a bool; a: the largest value
 *     SIGNED  a number of either sign, any value
 *     SPAN    a length of time in microseconds: 0 to LIMIT_DURATION_US, or TIME_NEVER
 *     TEXT    clean UTF-8; a: most bytes
 *     RAW     any bytes but NUL; a: most bytes
 *     BYTES   any bytes; a: most of them
 *     TEXTS   a list of RAW; a: most entries, b: most bytes of one
 *     IDS     a list of numbers; a: most entries
 *     LIST    a list of parts; a: most entries, b: the part's name
 */
#ifndef PROTO_FIELDS_H
#define PROTO_FIELDS_H

#include "base/limits.h"
#include "proto/msg.h"

/* Parts of messages: P(name, Name) */
#define MSG_PARTS(P)           \
    P(slot_report, SlotReport) \
    P(kept, Kept)              \
    P(entry, Entry)            \
    P(held, Held)              \
    P(member, Member)          \
    P(source, Source)

#define FIELDS_slot_report(F)                 \
    F(NUM, incarnation, UINT64_MAX, 0)        \
    F(NUM, slot, LIMIT_SLOTS_PER_HOST - 1, 0) \
    F(NUM, pid, UINT64_MAX, 0)                \
    F(NUM, phase, PHASE_COUNT - 1, 0)         \
    F(NUM, round, UINT64_MAX, 0)              \
    F(NUM, ended, ENDED_COUNT - 1, 0)         \
    F(SIGNED, value, 0, 0)                    \
    F(NUM, witness, WITNESS_COUNT - 1, 0)     \
    F(SPAN, ran_us, 0, 0)

#define FIELDS_kept(F)                        \
    F(NUM, slot, LIMIT_SLOTS_PER_HOST - 1, 0) \
    F(NUM, commit, UINT64_MAX, 0)

#define FIELDS_entry(F)                         \
    F(TEXT, name, LIMIT_MANIFEST_NAME_BYTES, 0) \
    F(NUM, bytes, UINT64_MAX, 0)                \
    F(NUM, kind, ENTRY_KIND_COUNT - 1, 0)

#define FIELDS_held(F)            \
    F(NUM, commit, UINT64_MAX, 0) \
    F(NUM, checksum, UINT64_MAX, 0)

#define FIELDS_member(F)                      \
    F(NUM, incarnation, UINT64_MAX, 0)        \
    F(TEXT, host, LIMIT_HOST_NAME_BYTES, 0)   \
    F(NUM, slot, LIMIT_SLOTS_PER_HOST - 1, 0) \
    F(TEXTS, addresses, LIMIT_ADDRESSES, LIMIT_TEXT_BYTES)

#define FIELDS_source(F) FIELDS_member(F)

/* Messages */
#define FIELDS_hello_agent(F)                       \
    F(NUM, minor, UINT32_MAX, 0)                    \
    F(TEXT, version, LIMIT_TEXT_BYTES, 0)           \
    F(TEXT, job, LIMIT_TEXT_BYTES, 0)               \
    F(TEXT, host, LIMIT_HOST_NAME_BYTES, 0)         \
    F(NUM, agent, UINT64_MAX, 0)                    \
    F(NUM, cores, UINT32_MAX, 0)                    \
    F(NUM, memory_bytes, UINT64_MAX, 0)             \
    F(LIST, slots, LIMIT_SLOT_REPORTS, slot_report) \
    F(LIST, kept, LIMIT_SLOTS_PER_HOST, kept)

#define FIELDS_welcome_agent(F)           \
    F(NUM, minor, UINT32_MAX, 0)          \
    F(TEXT, version, LIMIT_TEXT_BYTES, 0) \
    F(SPAN, beat_us, 0, 0)                \
    F(SPAN, lease_us, 0, 0)               \
    F(SPAN, driver_grace_us, 0, 0)

#define FIELDS_hello_worker(F)            \
    F(NUM, minor, UINT32_MAX, 0)          \
    F(TEXT, version, LIMIT_TEXT_BYTES, 0) \
    F(NUM, pid, UINT64_MAX, 0)

#define FIELDS_place(F)                             \
    F(NUM, rank, LIMIT_WORKERS - 1, 0)              \
    F(NUM, size, LIMIT_WORKERS, 0)                  \
    F(NUM, local_rank, LIMIT_SLOTS_PER_HOST - 1, 0) \
    F(NUM, local_size, LIMIT_SLOTS_PER_HOST, 0)     \
    F(NUM, cross_rank, LIMIT_HOSTS - 1, 0)          \
    F(NUM, cross_size, LIMIT_HOSTS, 0)

#define FIELDS_welcome_worker(F)                                                                \
    F(NUM, minor, UINT32_MAX, 0)                                                                \
    F(TEXT, version, LIMIT_TEXT_BYTES, 0)                                                       \
    F(TEXT, job, LIMIT_TEXT_BYTES, 0)                                                           \
    F(TEXT, host, LIMIT_HOST_NAME_BYTES, 0)                                                     \
    F(NUM, slot, LIMIT_SLOTS_PER_HOST - 1, 0)                                                   \
    FIELDS_place(F) F(NUM, min_np, LIMIT_WORKERS, 0) F(NUM, max_np, LIMIT_WORKERS, 0)           \
        F(SPAN, beat_us, 0, 0) F(SPAN, stall_warning_us, 0, 0) F(SPAN, stall_shutdown_us, 0, 0) \
            F(TEXTS, addresses, LIMIT_ADDRESSES, LIMIT_TEXT_BYTES)

#define FIELDS_refused(F) \
    F(SIGNED, code, 0, 0) \
    F(TEXT, text, LIMIT_TEXT_BYTES, 0)

#define FIELDS_bye(F) F(TEXT, reason, LIMIT_TEXT_BYTES, 0)

#define FIELDS_launch(F)                                \
    F(NUM, slot, LIMIT_SLOTS_PER_HOST - 1, 0)           \
    F(TEXTS, argv, LIMIT_ARGV_ENTRIES, LIMIT_ARG_BYTES) \
    F(TEXTS, env, LIMIT_ENV_ENTRIES, LIMIT_ARG_BYTES)   \
    F(RAW, cwd, LIMIT_PATH_BYTES, 0)                    \
    FIELDS_place(F)

#define FIELDS_launched(F)                    \
    F(NUM, slot, LIMIT_SLOTS_PER_HOST - 1, 0) \
    F(NUM, pid, UINT64_MAX, 0)

#define FIELDS_launch_failed(F)               \
    F(NUM, slot, LIMIT_SLOTS_PER_HOST - 1, 0) \
    F(SIGNED, code, 0, 0)                     \
    F(TEXT, text, LIMIT_TEXT_BYTES, 0)

#define FIELDS_exited(F)                      \
    F(NUM, slot, LIMIT_SLOTS_PER_HOST - 1, 0) \
    F(NUM, pid, UINT64_MAX, 0)                \
    F(NUM, ended, ENDED_COUNT - 1, 0)         \
    F(SIGNED, value, 0, 0)                    \
    F(NUM, witness, WITNESS_COUNT - 1, 0)     \
    F(SPAN, ran_us, 0, 0)                     \
    F(NUM, commit, UINT64_MAX, 0)

#define FIELDS_kill(F)      \
    F(SPAN, grace_us, 0, 0) \
    F(TEXT, reason, LIMIT_TEXT_BYTES, 0)

#define FIELDS_stop(F) FIELDS_kill(F)

#define FIELDS_beat(F)              \
    F(NUM, sequence, UINT64_MAX, 0) \
    F(NUM, answers, UINT64_MAX, 0)

#define FIELDS_notice(F)   \
    F(SPAN, left_us, 0, 0) \
    F(TEXT, source, LIMIT_TEXT_BYTES, 0)

#define FIELDS_output(F)                        \
    F(NUM, stream, STREAM_COUNT - 1, 0)         \
    F(BYTES, data, LIMIT_OUTPUT_CHUNK_BYTES, 0) \
    F(NUM, dropped_bytes, UINT64_MAX, 0)

#define FIELDS_ready(F)                             \
    F(NUM, manifest, UINT64_MAX, 0)                 \
    F(LIST, entries, LIMIT_MANIFEST_ENTRIES, entry) \
    F(LIST, held, LIMIT_COMMITS_HELD, held)         \
    F(TEXTS, addresses, LIMIT_ADDRESSES, LIMIT_TEXT_BYTES)

#define FIELDS_round(F)                     \
    F(NUM, cause, CAUSE_COUNT - 1, 0)       \
    F(NUM, previous, UINT64_MAX, 0)         \
    F(NUM, commit, UINT64_MAX, 0)           \
    F(IDS, holders, LIMIT_WORKERS, 0)       \
    F(LIST, members, LIMIT_WORKERS, member) \
    F(LIST, sources, LIMIT_WORKERS, source)

#define FIELDS_prepare(F)           \
    F(NUM, previous, UINT64_MAX, 0) \
    F(LIST, members, LIMIT_WORKERS, member)

#define FIELDS_prepared(F) \
    F(SIGNED, code, 0, 0)  \
    F(TEXT, text, LIMIT_TEXT_BYTES, 0)

#define FIELDS_pending(F) F(NUM, next, UINT64_MAX, 0)

#define FIELDS_at(F)            \
    F(NUM, next, UINT64_MAX, 0) \
    F(NUM, check, UINT64_MAX, 0)

#define FIELDS_switch_at(F)     \
    F(NUM, next, UINT64_MAX, 0) \
    F(NUM, check, UINT64_MAX, 0)

#define FIELDS_abandon(F)       \
    F(NUM, next, UINT64_MAX, 0) \
    F(TEXT, reason, LIMIT_TEXT_BYTES, 0)

#define FIELDS_revoke(F)           \
    F(IDS, lost, LIMIT_WORKERS, 0) \
    F(TEXT, reason, LIMIT_TEXT_BYTES, 0)

#define FIELDS_recovering(F)                \
    F(LIST, held, LIMIT_COMMITS_HELD, held) \
    F(TEXT, text, LIMIT_TEXT_BYTES, 0)      \
    F(SIGNED, code, 0, 0)

#define FIELDS_entered(F)         \
    F(NUM, commit, UINT64_MAX, 0) \
    F(SPAN, rebuild_us, 0, 0)     \
    F(SPAN, state_us, 0, 0)       \
    F(SPAN, first_step_us, 0, 0)

#define FIELDS_hosts_updated(F)   \
    F(NUM, added, LIMIT_HOSTS, 0) \
    F(NUM, removed, LIMIT_HOSTS, 0)

#define FIELDS_drain(F)    \
    F(SPAN, left_us, 0, 0) \
    F(TEXT, reason, LIMIT_TEXT_BYTES, 0)

#define FIELDS_finished(F) \
    F(SIGNED, code, 0, 0)  \
    F(TEXT, text, LIMIT_TEXT_BYTES, 0)

#define FIELDS_stalled(F)                   \
    F(SPAN, waited_us, 0, 0)                \
    F(TEXT, operation, LIMIT_TEXT_BYTES, 0) \
    F(IDS, missing, LIMIT_WORKERS, 0)

#define FIELDS_useless(F) F(TEXT, text, LIMIT_TEXT_BYTES, 0)

#define FIELDS_remark(F)  F(TEXT, text, LIMIT_TEXT_BYTES, 0)

#define FIELDS_ask(F)                                    \
    F(TEXT, verb, LIMIT_TEXT_BYTES, 0)                   \
    F(TEXTS, args, LIMIT_ARGV_ENTRIES, LIMIT_TEXT_BYTES) \
    F(NUM, json, 1, 0)                                   \
    F(NUM, follow, 1, 0)

#define FIELDS_tell(F)                    \
    F(SIGNED, code, 0, 0)                 \
    F(BYTES, text, LIMIT_STATUS_BYTES, 0) \
    F(NUM, last, 1, 0)

#define FIELDS_snapshot(F)                         \
    F(NUM, manifest, UINT64_MAX, 0)                \
    F(NUM, replicated_bytes, LIMIT_STATE_BYTES, 0) \
    F(NUM, bytes, LIMIT_STATE_BYTES, 0)

#define FIELDS_granted(F) \
    F(SIGNED, code, 0, 0) \
    F(TEXT, text, LIMIT_TEXT_BYTES, 0)

#define FIELDS_fetch(F)           \
    F(NUM, number, UINT64_MAX, 0) \
    F(NUM, commit, UINT64_MAX, 0) \
    F(LIST, sources, LIMIT_WORKERS, source)

#define FIELDS_fetched(F)              \
    F(NUM, number, UINT64_MAX, 0)      \
    F(NUM, commit, UINT64_MAX, 0)      \
    F(SIGNED, code, 0, 0)              \
    F(TEXT, text, LIMIT_TEXT_BYTES, 0) \
    F(NUM, bytes, UINT64_MAX, 0)       \
    F(NUM, local_bytes, UINT64_MAX, 0)

#define FIELDS_pull(F)                        \
    F(NUM, slot, LIMIT_SLOTS_PER_HOST - 1, 0) \
    F(NUM, manifest, UINT64_MAX, 0)           \
    F(NUM, commit, UINT64_MAX, 0)             \
    F(NUM, first, LIMIT_STATE_CHUNKS, 0)      \
    F(NUM, count, LIMIT_PULL_CHUNKS, 0)       \
    F(IDS, known, LIMIT_PULL_CHUNKS, 0)

#define FIELDS_chunk(F)                  \
    F(NUM, commit, UINT64_MAX, 0)        \
    F(NUM, index, LIMIT_STATE_CHUNKS, 0) \
    F(NUM, checksum, UINT64_MAX, 0)      \
    F(SIGNED, code, 0, 0)                \
    F(BYTES, data, STATE_CHUNK_BYTES, 0)

#endif
