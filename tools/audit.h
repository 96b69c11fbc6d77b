/*
 * audit.h: from the lines of all sample logs of a job to a judgement: was each sample of each
 * finished epoch used exactly once?
 *
 * Rounds follow each other, and each begins where a commit has stood. So of what earlier rounds
 * have used, everything from that place on was rolled back, and is void: the later round repeats
 * it. A worker whose log goes back within a round has restored by its own wish, which counts as a
 * round of its own. What is not void must be, for each epoch, all places from the first to the
 * last, in batches of which every rank has written its share; and the numbers in them each sample
 * once.
 *
 * The lines are read twice: first audit_note for all, then audit_judge, then audit_mark for all,
 * then audit_finish.
 */
#ifndef TOOLS_AUDIT_H
#define TOOLS_AUDIT_H

#include "base/arena.h"
#include "base/names.h"
#include "base/vec.h"
#include "tools/audit_line.h"

#define AUDIT_FAULTS_SHOWN 8
#define AUDIT_FAULT_BYTES  160

struct audit_epoch {
    uint64_t number;
    bool finished;
    uint64_t batches, used, twice, missing;
    uint64_t repeated; /* samples that were used and rolled back */
    uint64_t faults;
    char shown[AUDIT_FAULTS_SHOWN][AUDIT_FAULT_BYTES];
    unsigned char *bits; /* which samples were used */
};

struct audit_sampler {
    const char *name; /* as it is written */
    uint64_t samples;
    struct VEC(struct audit_epoch *) epochs; /* once judged: in order */
    struct VEC(struct audit_batch *) batches;
    uint64_t rounds_rolled_back;
    /* of the file that is being read */
    uint64_t file, round, attempt, epoch, first;
};

struct audit {
    struct arena memory;
    struct names names, keys;
    struct VEC(struct audit_sampler *) samplers;
    struct VEC(struct audit_batch *) batches;
    uint64_t file;
};

void audit_init(struct audit *audit);
void audit_release(struct audit *audit);

/* The next lines are of another file. */
void audit_begin_file(struct audit *audit);

int audit_note(struct audit *audit, const struct audit_line *line, struct hvd_err *err) MUST_CHECK;
int audit_judge(struct audit *audit, struct hvd_err *err) MUST_CHECK;
void audit_mark(struct audit *audit, const struct audit_line *line);
void audit_finish(struct audit *audit);

#endif
