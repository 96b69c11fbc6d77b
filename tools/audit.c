/*
 * audit.c: judges the sample logs of a job: which batches count, and whether these batches use each
 * sample of an epoch once. hvd_audit.c passes it the lines of all logs twice. The key of a batch is
 * sampler, position and round; memory is bounded by LIMIT_AUDIT_BYTES. No line is trusted, because
 * a log may be damaged.
 */
#include "tools/audit.h"

#include "base/limits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of this struct are the key of a batch in audit->keys, so the struct has no padding. */
struct batch_key {
    uint64_t sampler, epoch, first, total, job, round, attempt, size;
};

struct audit_batch {
    struct batch_key key;
    uint64_t share; /* the sum of the samples of all ranks whose lines were read */
    uint64_t ranks;
    bool twice;          /* two files have a line of the same rank */
    bool counts;         /* true: the batch was not rolled back by a later round */
    unsigned char *seen; /* bit i is 1: a line of rank i was read */
};

/* The position in the epoch where a round begins. Batches that an earlier round has used from that
 * position on were rolled back, and do not count. */
struct mark {
    uint64_t epoch, first;
};

void audit_init(struct audit *audit)
{
    *audit = (struct audit){ .file = 0 };
    arena_init(&audit->memory, (size_t)LIMIT_AUDIT_BYTES);
    names_init(&audit->names);
    names_init(&audit->keys);
}

void audit_release(struct audit *audit)
{
    for (size_t i = 0; i < audit->samplers.count; i++) {
        VEC_RELEASE(&audit->samplers.items[i]->epochs);
        VEC_RELEASE(&audit->samplers.items[i]->batches);
    }
    VEC_RELEASE(&audit->samplers);
    VEC_RELEASE(&audit->batches);
    names_release(&audit->names);
    names_release(&audit->keys);
    arena_release(&audit->memory);
}

/* The lines that follow are of the next file: within one file a sampler's rounds and positions are
 * in the order in which one worker used them. */
void audit_begin_file(struct audit *audit)
{
    audit->file++;
}

/* The lines that follow are of this job, the first job being 0. */
void audit_begin_job(struct audit *audit, uint64_t job)
{
    audit->job = job;
}

/* Writes the error for missing memory. HVD_E_LIMIT: the audit's own limit (LIMIT_AUDIT_BYTES) is
 * reached; it is reached before the arrays have too many items. HVD_E_NOMEM: the machine has no
 * memory left. */
static int audit_full(const struct audit *audit, struct hvd_err *err)
{
    if (audit->memory.full)
        return err_set(err, HVD_E_LIMIT,
                       "the logs are too large: hvd-audit keeps at most %" PRIu64
                       " GiB about them (LIMIT_AUDIT_BYTES); name the logs of a shorter job",
                       LIMIT_AUDIT_BYTES >> 30);
    return err_set(err, HVD_E_NOMEM,
                   "no memory to compare the logs; free memory on this machine, use a machine with "
                   "more memory, or name the logs of a shorter job");
}

/* NULL: no line of this sampler was read yet. */
static struct audit_sampler *audit_find_sampler(const struct audit *audit, struct span name)
{
    uint32_t at = names_find(&audit->names, name.at, name.length);

    return at == NAMES_NONE ? NULL : audit->samplers.items[at];
}

/* Returns the key of the line's batch. Within a round a rank only goes forward. A step back means
 * that the training program has restored a commit by itself, which counts as a new attempt. */
static struct batch_key audit_key(const struct audit *audit, struct audit_sampler *sampler,
                                  const struct audit_line *line)
{
    bool same = sampler->file == audit->file && sampler->round == line->round;

    if (!same)
        sampler->attempt = 0;
    else if (line->epoch < sampler->epoch ||
             (line->epoch == sampler->epoch && line->first <= sampler->first))
        sampler->attempt++;
    sampler->file = audit->file;
    sampler->round = line->round;
    sampler->epoch = line->epoch;
    sampler->first = line->first;
    return (struct batch_key){ .sampler =
                                   names_find(&audit->names, line->name.at, line->name.length),
                               .epoch = line->epoch,
                               .first = line->first,
                               .total = line->total,
                               .job = audit->job,
                               .round = line->round,
                               .attempt = sampler->attempt,
                               .size = line->size };
}

/* NULL: no line of this batch was read yet. */
static struct audit_batch *audit_find_batch(const struct audit *audit, const struct batch_key *key)
{
    uint32_t at = names_find(&audit->keys, (const char *)key, sizeof(*key));

    return at == NAMES_NONE ? NULL : audit->batches.items[at];
}

/* First reading: notes which rank of which batch this line is of, and how many samples the rank has
 * used. The line adds its sampler and its batch if they are new. */
int audit_note(struct audit *audit, const struct audit_line *line, struct hvd_err *err)
{
    struct audit_sampler *sampler = audit_find_sampler(audit, line->name);
    struct audit_batch *batch;
    struct batch_key key;
    unsigned char *seen;
    char *name;

    if (!sampler) {
        sampler = arena_alloc(&audit->memory, sizeof(*sampler));
        name = arena_alloc(&audit->memory, line->name.length + 1);
        if (!sampler || !name || VEC_RESERVE(&audit->samplers, 1, NAMES_NONE - 1))
            return audit_full(audit, err);
        memcpy(name, line->name.at, line->name.length);
        sampler->name = name;
        sampler->samples = line->samples;
        if (names_put(&audit->names, name, line->name.length, (uint32_t)audit->samplers.count))
            return audit_full(audit, err);
        audit->samplers.items[audit->samplers.count++] = sampler;
    }
    if (sampler->samples != line->samples)
        return err_set(
            err, HVD_E_INVAL,
            "the sampler \"%s\" has %" PRIu64 " samples in this line, but %" PRIu64
            " in an earlier line; the logs are of several jobs, so name only the logs of one job",
            sampler->name, line->samples, sampler->samples);
    key = audit_key(audit, sampler, line);
    batch = audit_find_batch(audit, &key);
    if (!batch) {
        batch = arena_alloc(&audit->memory, sizeof(*batch));
        seen = arena_alloc(&audit->memory, (size_t)(key.size + 7) / 8);
        if (!batch || !seen || VEC_RESERVE(&audit->batches, 1, NAMES_NONE - 1) ||
            VEC_RESERVE(&sampler->batches, 1, NAMES_NONE - 1))
            return audit_full(audit, err);
        batch->key = key;
        batch->seen = seen;
        if (names_put(&audit->keys, (const char *)&batch->key, sizeof(batch->key),
                      (uint32_t)audit->batches.count))
            return audit_full(audit, err);
        audit->batches.items[audit->batches.count++] = batch;
        sampler->batches.items[sampler->batches.count++] = batch;
    }
    /* A rank that two workers had in one round must not be counted twice. */
    if (batch->seen[line->rank / 8] >> line->rank % 8 & 1)
        batch->twice = true;
    else
        batch->ranks++;
    batch->seen[line->rank / 8] |= (unsigned char)(1U << line->rank % 8);
    batch->share += line->count;
    return 0;
}

/* Counts a fault of an epoch, and keeps its text if it is one of the first AUDIT_FAULTS_SHOWN. */
PRINTF_LIKE(2, 3) static void epoch_fault(struct audit_epoch *epoch, const char *format, ...)
{
    va_list args;

    if (epoch->faults < AUDIT_FAULTS_SHOWN) {
        va_start(args, format);
        text_line(epoch->shown[epoch->faults], AUDIT_FAULT_BYTES, format, args);
        va_end(args);
    }
    epoch->faults++;
}

/* Finds the epoch, or adds it. The search begins at the newest epoch, because few epochs are open
 * at a time. */
static struct audit_epoch *sampler_epoch(struct audit *audit, struct audit_sampler *sampler,
                                         uint64_t number)
{
    struct audit_epoch *epoch;

    for (size_t i = sampler->epochs.count; i-- > 0;)
        if (sampler->epochs.items[i]->number == number)
            return sampler->epochs.items[i];
    epoch = arena_alloc(&audit->memory, sizeof(*epoch));
    if (!epoch || VEC_RESERVE(&sampler->epochs, 1, SIZE_MAX))
        return NULL;
    epoch->number = number;
    epoch->bits = arena_alloc(&audit->memory, (size_t)(sampler->samples + 7) / 8);
    if (!epoch->bits)
        return NULL;
    sampler->epochs.items[sampler->epochs.count++] = epoch;
    return epoch;
}

/* Compares two numbers for qsort: -1, 0 or 1. */
static int audit_compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* For qsort: the order in which a job used its batches. */
static int audit_by_time(const void *left, const void *right)
{
    const struct batch_key *a = &(*(struct audit_batch *const *)left)->key;
    const struct batch_key *b = &(*(struct audit_batch *const *)right)->key;
    int order = audit_compare(a->job, b->job);

    if (!order)
        order = audit_compare(a->round, b->round);
    if (!order)
        order = audit_compare(a->attempt, b->attempt);
    if (!order)
        order = audit_compare(a->epoch, b->epoch);
    return order ? order : audit_compare(a->first, b->first);
}

/* For qsort: by position; batches of the same position by time. */
static int by_place(const void *left, const void *right)
{
    const struct batch_key *a = &(*(struct audit_batch *const *)left)->key;
    const struct batch_key *b = &(*(struct audit_batch *const *)right)->key;
    int order = audit_compare(a->epoch, b->epoch);

    if (!order)
        order = audit_compare(a->first, b->first);
    return order ? order : audit_by_time(left, right);
}

/* true: the batch begins before the position of the mark. */
static bool is_before(const struct batch_key *key, const struct mark *mark)
{
    return key->epoch < mark->epoch || (key->epoch == mark->epoch && key->first < mark->first);
}

/* Notes the faults of a batch that counts. `place` is the position in the epoch up to which earlier
 * batches have used the samples. */
static void epoch_judge_batch(struct audit_epoch *epoch, const struct audit_batch *batch,
                              uint64_t place)
{
    const struct batch_key *key = &batch->key;
    uint64_t rank = 0;

    if (key->first > place)
        epoch_fault(epoch,
                    "no worker used the places %" PRIu64 " to %" PRIu64 "; round %" PRIu64
                    " continues after them",
                    place, key->first - 1, key->round);
    if (key->first < place)
        epoch_fault(epoch,
                    "round %" PRIu64 " uses places from %" PRIu64
                    " on, which are used up to %" PRIu64,
                    key->round, key->first, place - 1);
    while (rank < key->size && batch->seen[rank / 8] >> rank % 8 & 1)
        rank++;
    if (rank < key->size)
        epoch_fault(epoch,
                    "rank %" PRIu64 " of round %" PRIu64 " has no line for the batch at %" PRIu64,
                    rank, key->round, key->first);
    else if (batch->twice)
        epoch_fault(epoch,
                    "two workers were the same rank of round %" PRIu64 " in the batch at %" PRIu64,
                    key->round, key->first);
    else if (batch->share != key->total)
        epoch_fault(epoch,
                    "the batch at %" PRIu64 " of round %" PRIu64 " has %" PRIu64
                    " samples, not %" PRIu64,
                    key->first, key->round, batch->share, key->total);
}

/* Judges one epoch, whose batches are the sampler's items from begin to end, in order of their
 * positions. `last` is true: no later epoch was begun. */
static int sampler_judge_epoch(struct audit *audit, struct audit_sampler *sampler, size_t begin,
                               size_t end, bool last, struct hvd_err *err)
{
    uint64_t number = sampler->batches.items[begin]->key.epoch;
    struct audit_epoch *epoch = sampler_epoch(audit, sampler, number);
    uint64_t place = 0;
    bool whole = true;

    if (!epoch)
        return audit_full(audit, err);
    for (size_t i = begin; i < end; i++) {
        struct audit_batch *batch = sampler->batches.items[i];

        if (!batch->counts) {
            epoch->repeated += batch->share;
            continue;
        }
        whole =
            batch->ranks == batch->key.size && !batch->twice && batch->share == batch->key.total;
        /* When the job ended, some ranks may have been one step ahead of the other ranks: the
         * last batch, which has no line of those ranks, is no fault. */
        if (last && !whole && batch->ranks < batch->key.size)
            continue;
        epoch_judge_batch(epoch, batch, place);
        epoch->batches++;
        place = batch->key.first + batch->key.total;
    }
    /* An epoch is finished when it is complete, or when a later epoch was begun. */
    epoch->finished = !last || (place == sampler->samples && whole);
    if (epoch->finished && place < sampler->samples)
        epoch_fault(epoch,
                    "no worker used the places from %" PRIu64 " on, and the next epoch was begun",
                    place);
    return 0;
}

/* Decides which batches count, and judges every epoch of every sampler; 0, or an error for lack of
 * memory. */
int audit_judge(struct audit *audit, struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < audit->samplers.count; i++) {
        struct audit_sampler *sampler = audit->samplers.items[i];
        size_t count = sampler->batches.count;
        struct mark limit = { UINT64_MAX, UINT64_MAX }; /* where the earliest later round begins */
        uint64_t expected = 0;                          /* the epoch that should come next */
        uint64_t newest = 0; /* the last epoch with a batch that counts */

        /* Sets `counts` of all batches. A batch counts when its position is before the first
         * position of every later round, so the loop visits the rounds from the last to the
         * first. */
        qsort(sampler->batches.items, count, sizeof(struct audit_batch *), audit_by_time);
        for (size_t begin, end = count; end > 0; end = begin) {
            const struct batch_key *key = &sampler->batches.items[end - 1]->key;
            bool voids = false;

            /* The batches from begin to end belong to one round and one attempt. */
            for (begin = end - 1; begin > 0; begin--) {
                const struct batch_key *earlier = &sampler->batches.items[begin - 1]->key;

                if (earlier->job != key->job || earlier->round != key->round ||
                    earlier->attempt != key->attempt)
                    break;
            }
            for (size_t k = begin; k < end; k++) {
                struct audit_batch *batch = sampler->batches.items[k];

                batch->counts = is_before(&batch->key, &limit);
                voids |= !batch->counts;
            }
            sampler->rounds_rolled_back += voids;
            key = &sampler->batches.items[begin]->key;
            if (is_before(key, &limit))
                limit = (struct mark){ key->epoch, key->first };
        }
        qsort(sampler->batches.items, count, sizeof(struct audit_batch *), by_place);
        for (size_t k = 0; k < count; k++)
            if (sampler->batches.items[k]->counts)
                newest = sampler->batches.items[k]->key.epoch;
        for (size_t begin = 0, end = 0; !rc && begin < count; begin = end) {
            uint64_t number = sampler->batches.items[begin]->key.epoch;

            while (end < count && sampler->batches.items[end]->key.epoch == number)
                end++;
            rc = sampler_judge_epoch(audit, sampler, begin, end, number >= newest, err);
            if (!rc && number > expected)
                epoch_fault(sampler->epochs.items[sampler->epochs.count - 1],
                            "this epoch was begun, but epoch %" PRIu64 " before it was not",
                            expected);
            expected = number + 1;
        }
        sampler->file = 0; /* reset for the second reading of the logs */
    }
    audit->file = 0; /* reset for the second reading, like the field of the samplers */
    return rc;
}

/* Marks the samples of one line as used, if the batch of the line counts; a sample that is used
 * twice is a fault. */
void audit_mark(struct audit *audit, const struct audit_line *line)
{
    struct audit_sampler *sampler = audit_find_sampler(audit, line->name);
    struct span rest = line->numbers;
    const struct audit_batch *batch;
    struct audit_epoch *epoch;
    struct batch_key key;
    uint64_t number;

    if (!sampler || sampler->samples != line->samples)
        return; /* a job that still runs has written the line after the first reading */
    key = audit_key(audit, sampler, line);
    /* Only batches that count are marked: samples that were rolled back had to be used again. */
    batch = audit_find_batch(audit, &key);
    if (!batch || !batch->counts || !(epoch = sampler_epoch(audit, sampler, line->epoch)))
        return;
    while (audit_line_next(&rest, &number)) {
        unsigned char bit = (unsigned char)(1U << number % 8);

        if (epoch->bits[number / 8] & bit) {
            epoch_fault(epoch,
                        "sample %" PRIu64
                        " was used twice, the second time in the batch at %" PRIu64
                        " of round %" PRIu64,
                        number, line->first, line->round);
            epoch->twice++;
        } else {
            epoch->used++;
        }
        epoch->bits[number / 8] |= bit;
    }
}

/* Counts the samples of each finished epoch that no line has used, after the second reading. */
void audit_finish(struct audit *audit)
{
    for (size_t i = 0; i < audit->samplers.count; i++) {
        struct audit_sampler *sampler = audit->samplers.items[i];

        for (size_t k = 0; k < sampler->epochs.count; k++) {
            struct audit_epoch *epoch = sampler->epochs.items[k];

            if (!epoch->finished)
                continue; /* the job was stopped in this epoch, so missing samples are no fault */
            epoch->missing = sampler->samples - epoch->used;
            for (uint64_t n = 0; n < sampler->samples && epoch->missing; n++)
                if (!(epoch->bits[n / 8] >> n % 8 & 1)) {
                    epoch_fault(epoch, "%" PRIu64 " samples were not used; the first is %" PRIu64,
                                epoch->missing, n);
                    break;
                }
        }
    }
}
