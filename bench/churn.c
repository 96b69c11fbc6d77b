/*
 * churn.c: makes the records of churn.h. Tests of compaction and bench_store call it. Invariant: a
 * core replays them all.
 */
#include "bench/churn.h"

#include "proto/commit.h"

static const char *const hosts[] = { "node-a", "node-b" };
static const char *const addresses[] = { "10.20.30.40:50123" };

static struct journal_record launch_of(struct churn *churn, uint64_t place)
{
    churn->members[place] = ++churn->incarnations;
    return (struct journal_record){ .kind = JOURNAL_LAUNCH,
                                    .incarnation = churn->incarnations,
                                    .host = hosts[place / 2],
                                    .slot = (uint32_t)place % 2,
                                    .wall_us = 1 };
}

static struct journal_record ready_of(uint64_t incarnation)
{
    return (struct journal_record){
        .kind = JOURNAL_READY,
        .incarnation = incarnation,
        .manifest = 77,
        .addresses = {addresses, 1}
    };
}

/* A round of all members, or of all but the dead one. */
static struct journal_record round_of(struct churn *churn, enum msg_cause cause)
{
    struct journal_record record = { .kind = JOURNAL_ROUND,
                                     .round = ++churn->round,
                                     .previous = churn->previous,
                                     .commit = COMMIT_FIRST_OF(churn->round),
                                     .cause = (uint32_t)cause };
    size_t count = 0;

    for (size_t i = 0; i < CHURN_WORKERS; i++)
        if (churn->members[i] != churn->dead)
            churn->list[count++] = churn->members[i];
    record.members = record.holders = (struct msg_ids){ churn->list, count };
    churn->previous = churn->round;
    return record;
}

static struct journal_record number_of(enum journal_kind kind, uint64_t round)
{
    return (struct journal_record){ .kind = kind, .round = round };
}

static struct journal_record churn_make(struct churn *churn, uint64_t number)
{
    const uint64_t place = number < CHURN_FIRST ? 0 : number / CHURN_RECORDS % CHURN_WORKERS;

    if (number == 0)
        return (struct journal_record){ .kind = JOURNAL_TERM, .term = 1 };
    if (number < 9)
        return number % 2 ? launch_of(churn, number / 2) : ready_of(churn->incarnations);
    if (number < CHURN_FIRST)
        return number == 9 ? round_of(churn, CAUSE_FIRST) : number_of(JOURNAL_ENTERED, 1);
    switch ((number - CHURN_FIRST) % CHURN_RECORDS) {
    case 0:
        churn->dead = churn->members[place];
        return (struct journal_record){
            .kind = JOURNAL_ENDED, .incarnation = churn->dead, .ended = ENDED_SIGNAL, .value = 9
        };
    case 1: return number_of(JOURNAL_NUMBER, churn->round + 1);
    case 2: return round_of(churn, CAUSE_RECOVERY);
    case 3: return number_of(JOURNAL_ENTERED, churn->round);
    case 4:
        for (uint64_t i = 0; i < CHURN_WORKERS; i++)
            if (churn->members[i] == churn->dead)
                return launch_of(churn, i);
        return number_of(JOURNAL_NUMBER, churn->round);
    case 5: churn->dead = 0; return ready_of(churn->incarnations);
    case 6: return number_of(JOURNAL_NUMBER, churn->round + 1);
    case 7: return round_of(churn, CAUSE_SWITCH);
    default: return number_of(JOURNAL_ENTERED, churn->round);
    }
}

struct journal_record churn_next(struct churn *churn)
{
    struct journal_record record = churn_make(churn, churn->number++);

    record.term = 1;
    record.host = record.host ? record.host : "";
    record.text = "";
    return record;
}
