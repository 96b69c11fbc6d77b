/*
 * audit.h: reads the lines of all sample logs of a job, and judges whether each sample of each
 * finished epoch was used exactly once.
 *
 * Each round begins at a commit. Batches of earlier rounds after that commit were rolled back and
 * are void: the later round repeats them. A worker whose log goes back within a round has restored
 * a commit by itself, which counts as a new round. In each epoch the batches that are not void must
 * cover all samples from the first to the last, every rank of a batch must have written its share,
 * and no sample may be used twice.
 *
 * A job that was lost as a whole may be followed by another one, which begins with a checkpoint and
 * has rounds of the same numbers. The batches of the first job after that checkpoint are void.
 *
 * The lines are read twice: first audit_note for all lines, then audit_judge, then audit_mark for
 * all lines, then audit_finish.
 */
#ifndef TOOLS_AUDIT_H
#define TOOLS_AUDIT_H

#include "base/arena.h"
#include "base/names.h"
#include "base/text.h"
#include "base/vec.h"

#define AUDIT_FAULTS_SHOWN 8
#define AUDIT_FAULT_BYTES  160

struct audit_epoch {
    uint64_t number;
    bool finished;    /* true: no sample of this epoch may be missing */
    uint64_t batches; /* batches that count */
    /* samples of these batches: used once or more, used once more, and not used */
    uint64_t used, twice, missing;
    uint64_t repeated; /* samples that were used and rolled back */
    uint64_t faults;   /* how many faults were found; the first ones have their texts in `shown` */
    char shown[AUDIT_FAULTS_SHOWN][AUDIT_FAULT_BYTES];
    unsigned char *bits; /* one bit per sample: set when the sample was used */
};

struct audit_sampler {
    const char *name;                        /* the sampler's name as written in the log */
    uint64_t samples;                        /* samples of one epoch */
    struct VEC(struct audit_epoch *) epochs; /* sorted by number after audit_judge */
    struct VEC(struct audit_batch *) batches;
    uint64_t rounds_rolled_back; /* rounds of which a later round has repeated a batch */
    /* The batch of the last line of this sampler in the file that is being read. */
    uint64_t file, round, attempt, epoch, first;
};

struct audit {
    struct arena memory;
    struct names names, keys; /* find the samplers by name, and the batches by key */
    struct VEC(struct audit_sampler *) samplers;
    struct VEC(struct audit_batch *) batches;
    uint64_t file, job; /* the numbers of the file and of the job whose lines are read now */
};

/* A line of a sample log, as worker/sample_log.h describes it. */
struct audit_line {
    struct span name; /* the name as the line has it, with %20 for a blank */
    /* `first`: the batch's position in the epoch; `total`: its samples on all ranks */
    uint64_t epoch, first, total, round;
    uint64_t rank, size;
    uint64_t samples;    /* samples of one epoch */
    struct span numbers; /* the samples that this rank used, with blanks between them */
    uint64_t count;      /* how many samples `numbers` has */
};

/* Parses a line without its newline, strictly. 0: all numbers are within their bounds. HVD_E_INVAL:
 * the err says what is wrong. */
int audit_line_read(struct span text, struct audit_line *ret_line, struct hvd_err *err) MUST_CHECK;

/* Takes the next sample off the `numbers` of a line; false: no sample is left. */
bool audit_line_next(struct span *numbers, uint64_t *ret_number);

void audit_init(struct audit *audit);
void audit_release(struct audit *audit);

/* The lines that follow are of another file. */
void audit_begin_file(struct audit *audit);
void audit_begin_job(struct audit *audit, uint64_t job);

/* audit_note records one line in the first reading; audit_judge decides which batches are void;
 * audit_mark marks the samples of one line in the second reading; audit_finish counts missing
 * samples. */
int audit_note(struct audit *audit, const struct audit_line *line, struct hvd_err *err) MUST_CHECK;
int audit_judge(struct audit *audit, struct hvd_err *err) MUST_CHECK;
void audit_mark(struct audit *audit, const struct audit_line *line);
void audit_finish(struct audit *audit);

#endif
