/*
 * record.h: what happened in a campaign or a replay, in the form that the reports need; a report
 * computes nothing itself.
 */
#ifndef TESTS_CHAOS_RECORD_H
#define TESTS_CHAOS_RECORD_H

#include "base/err.h"
#include "tests/chaos/steps.h"

#define RECORD_TEXT 160

struct record_fault {
    char name[32];
    char deed[RECORD_TEXT];
    int64_t at_us;     /* when the fault struck, by CLOCK_MONOTONIC like the steps */
    int64_t lasted_us; /* from the strike until the fault was undone */
    int64_t whole_us;  /* from the strike until all workers trained again */
    /* the longest time without a step in between, minus a usual step */
    int64_t pause_us;
    uint64_t repeated; /* steps that were repeated */
    uint64_t rounds;   /* new rounds */
    /* size of the smallest round from the strike until all workers trained again */
    uint32_t least;
    uint32_t named;                  /* victims that the log names */
    bool quiet;                      /* no operator has to hear of the fault */
    char violation[RECORD_TEXT * 2]; /* empty: no violation */
    bool hung;
};

struct record {
    uint64_t seed;
    char title[RECORD_TEXT]; /* "1000 faults, seed 7, 3 hosts x 2" */
    char machine[RECORD_TEXT];
    int64_t began_us, ended_us;
    int64_t usual_us; /* the usual time of a step without faults */
    struct record_fault *faults;
    size_t fault_count, fault_room;
    char (*skipped)[RECORD_TEXT]; /* "link-down: only root can make network namespaces" */
    size_t skipped_count, skipped_room;
    size_t violations, hangs;
    bool broken_off; /* true: the end of the job was not judged */
};

void record_init(struct record *record);
void record_release(struct record *record);
int record_fault(struct record *record, const struct record_fault *fault) MUST_CHECK;
int record_skipped(struct record *record, const char *text) MUST_CHECK;

#endif
