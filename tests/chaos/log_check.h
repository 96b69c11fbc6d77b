/*
 * log_check.h: reads what a driver's events say about rounds, and finds contradictions. Numbers
 * must only rise, no round may begin with an older commit than one that has trained, a round has
 * each member once, survivors keep their order, and an incarnation is launched once.
 *
 * The check knows the job only from the lines of events.log, so it shares no code with the driver.
 */
#ifndef TESTS_CHAOS_LOG_CHECK_H
#define TESTS_CHAOS_LOG_CHECK_H

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

#define LOG_CHECK_NAME   64
#define LOG_CHECK_RECENT 64 /* the last rounds that are remembered */

/* The most failures without progress of a job that goes on: the defaults of --progress-restarts-job
 * and --progress-restarts. */
#define LOG_CHECK_JOB_FAILURES  10
#define LOG_CHECK_SLOT_FAILURES 3

struct log_slot {
    char name[LOG_CHECK_NAME]; /* "127.0.0.2:1" */
    uint64_t incarnation;      /* the incarnation last launched in the slot; 0: not known */
    /* the slot's incarnation in the last round in which the slot had a member */
    uint64_t was_in;
    uint64_t round; /* the number of that round */
    uint32_t rank;  /* the slot's rank in that round */
};

struct log_round {
    uint64_t number; /* 0: nothing is known of this entry */
    uint64_t first;  /* the incarnation of rank 0; 0: not known */
};

struct log_check {
    char path[256];
    size_t read; /* bytes of the file that were read */
    struct buf rest;
    struct VEC(struct log_slot) seats;
    struct log_round recent[LOG_CHECK_RECENT]; /* by round number, modulo LOG_CHECK_RECENT */
    uint64_t round;
    uint64_t launched;  /* the newest incarnation */
    uint64_t lived;     /* the newest incarnation that has done more than be launched */
    uint64_t commit[2]; /* the commit with which the round begins: round and place */
    uint64_t floor[2];  /* the newest commit from which a round has trained */
    uint64_t trained;   /* the number of that round */
    uint32_t size;      /* members of the present round; 0: not known */
    uint64_t before;    /* the last round before it whose members are known; 0: none */
    uint64_t missing;   /* lines that a failing disk has lost */
    /* the newest complete checkpoint: round and place */
    uint64_t saved[2];
    bool may_fall; /* all processes with commits were killed: a round may begin with a checkpoint */
    bool fallen;   /* one has, and has not trained yet */
};

void log_check_init(struct log_check *check, const char *path);
void log_check_release(struct log_check *check);

/* Reads the new lines of the file. HVD_E_MISMATCH: the text names the contradiction. A file that
 * has been replaced is read from its beginning. */
int log_check_read(struct log_check *check, struct hvd_err *err) MUST_CHECK;

/* Tells that all processes with commits were killed, and which commit the newest complete
 * checkpoint had then: the next round may begin with it. */
void log_check_lost(struct log_check *check, const uint64_t kept[2]);

/* true: rank 0 of both rounds was the same process; false: another process, or not known. */
bool log_check_same_first(const struct log_check *check, uint64_t one, uint64_t other);

/* Checks one line, without its newline. */
int log_check_line(struct log_check *check, const char *line, struct hvd_err *err) MUST_CHECK;

#endif
