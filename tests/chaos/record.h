/*
 * record.h: what has happened in a campaign or a replay: all that the reports need, and nothing
 * that they would have to work out.
 */
#ifndef TESTS_CHAOS_RECORD_H
#define TESTS_CHAOS_RECORD_H

#include "base/err.h"
#include "tests/chaos/steps.h"

#define RECORD_TEXT 160

struct record_fault {
    char name[32];
    char deed[RECORD_TEXT];
    int64_t at_us;     /* struck; CLOCK_MONOTONIC, like the steps */
    int64_t lasted_us; /* until it relented */
    int64_t whole_us;  /* from the strike until all trained again */
    int64_t pause_us;  /* the longest time without a step in between, less a usual step */
    uint64_t repeated; /* steps that were done again */
    uint64_t rounds;   /* new ones */
    uint32_t least;    /* the smallest round in between */
    char violation[RECORD_TEXT * 2]; /* empty: none */
    bool hung;
};

struct record {
    uint64_t seed;
    char title[RECORD_TEXT]; /* "1000 faults, seed 7, 3 hosts x 2" */
    char machine[RECORD_TEXT];
    int64_t began_us, ended_us;
    int64_t usual_us; /* a step in peace */
    struct record_fault *faults;
    size_t fault_count, fault_room;
    char (*skipped)[RECORD_TEXT]; /* "link-down: only root can make network namespaces" */
    size_t skipped_count, skipped_room;
    size_t violations, hangs;
    bool broken_off; /* so the end was not judged */
};

void record_init(struct record *record);
void record_release(struct record *record);
int record_fault(struct record *record, const struct record_fault *fault) MUST_CHECK;
int record_skipped(struct record *record, const char *text) MUST_CHECK;

#endif
