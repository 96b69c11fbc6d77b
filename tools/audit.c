#include "tools/audit.h"

#include "base/limits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without padding: its bytes are the key under which a batch is found. */
struct batch_key {
    uint64_t sampler, epoch, first, total, round, attempt, size;
};

struct audit_batch {
    struct batch_key key;
    uint64_t share; /* samples of all ranks that wrote theirs */
    uint64_t ranks;
    bool twice; /* one rank in two files */
    bool counts;
    unsigned char *seen; /* a bit for each rank */
};

/* Where a round begins: everything before it in time and from here on is void. */
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

void audit_begin_file(struct audit *audit)
{
    audit->file++;
}

static int full(const struct audit *audit, struct hvd_err *err)
{
    int rc = audit->memory.full ? HVD_E_LIMIT : HVD_E_NOMEM;

    return err_set(err, rc, "%s: the logs are too large to be held against each other",
                   rc == HVD_E_LIMIT ? "LIMIT_AUDIT_BYTES" : "out of memory");
}

static struct audit_sampler *find_sampler(const struct audit *audit, struct span name)
{
    uint32_t at = names_find(&audit->names, name.at, name.length);

    return at == NAMES_NONE ? NULL : audit->samplers.items[at];
}

static struct audit_sampler *add_sampler(struct audit *audit, const struct audit_line *line)
{
    struct audit_sampler *sampler = arena_alloc(&audit->memory, sizeof(*sampler));
    char *name = arena_alloc(&audit->memory, line->name.length + 1);

    if (!sampler || !name || VEC_RESERVE(&audit->samplers, 1, LIMIT_MANIFEST_ENTRIES))
        return NULL;
    memcpy(name, line->name.at, line->name.length);
    sampler->name = name;
    sampler->samples = line->samples;
    if (names_put(&audit->names, name, line->name.length, (uint32_t)audit->samplers.count))
        return NULL;
    audit->samplers.items[audit->samplers.count++] = sampler;
    return sampler;
}

/* Follows a file through its rounds. Within one a rank only goes forward, unless it was restored.
 */
static struct batch_key key_of(const struct audit *audit, struct audit_sampler *sampler,
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
                               .round = line->round,
                               .attempt = sampler->attempt,
                               .size = line->size };
}

static struct audit_batch *find_batch(const struct audit *audit, const struct batch_key *key)
{
    uint32_t at = names_find(&audit->keys, (const char *)key, sizeof(*key));

    return at == NAMES_NONE ? NULL : audit->batches.items[at];
}

static struct audit_batch *add_batch(struct audit *audit, struct audit_sampler *sampler,
                                     const struct batch_key *key)
{
    struct audit_batch *batch = arena_alloc(&audit->memory, sizeof(*batch));
    unsigned char *seen = arena_alloc(&audit->memory, (size_t)(key->size + 7) / 8);

    if (!batch || !seen || VEC_RESERVE(&audit->batches, 1, NAMES_NONE - 1) ||
        VEC_RESERVE(&sampler->batches, 1, NAMES_NONE - 1))
        return NULL;
    batch->key = *key;
    batch->seen = seen;
    if (names_put(&audit->keys, (const char *)&batch->key, sizeof(batch->key),
                  (uint32_t)audit->batches.count))
        return NULL;
    audit->batches.items[audit->batches.count++] = batch;
    sampler->batches.items[sampler->batches.count++] = batch;
    return batch;
}

int audit_note(struct audit *audit, const struct audit_line *line, struct hvd_err *err)
{
    struct audit_sampler *sampler = find_sampler(audit, line->name);
    struct audit_batch *batch;
    struct batch_key key;

    if (!sampler && !(sampler = add_sampler(audit, line)))
        return full(audit, err);
    if (sampler->samples != line->samples)
        return err_set(err, HVD_E_INVAL,
                       "\"%s\" has %" PRIu64 " samples here, and %" PRIu64
                       " elsewhere; these are logs of several jobs",
                       sampler->name, line->samples, sampler->samples);
    key = key_of(audit, sampler, line);
    batch = find_batch(audit, &key);
    if (!batch && !(batch = add_batch(audit, sampler, &key)))
        return full(audit, err);
    if (batch->seen[line->rank / 8] >> line->rank % 8 & 1)
        batch->twice = true;
    else
        batch->ranks++;
    batch->seen[line->rank / 8] |= (unsigned char)(1U << line->rank % 8);
    batch->share += line->count;
    return 0;
}

/* ---- the judgement --------------------------------------------------------------------------- */

static void fault(struct audit_epoch *epoch, const char *format, ...) PRINTF_LIKE(2, 3);

static void fault(struct audit_epoch *epoch, const char *format, ...)
{
    va_list args;

    if (epoch->faults < AUDIT_FAULTS_SHOWN) {
        va_start(args, format);
        text_line(epoch->shown[epoch->faults], AUDIT_FAULT_BYTES, format, args);
        va_end(args);
    }
    epoch->faults++;
}

static struct audit_epoch *epoch_of(struct audit *audit, struct audit_sampler *sampler,
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

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_time(const void *left, const void *right)
{
    const struct batch_key *a = &(*(struct audit_batch *const *)left)->key;
    const struct batch_key *b = &(*(struct audit_batch *const *)right)->key;
    int order = compare(a->round, b->round);

    if (!order)
        order = compare(a->attempt, b->attempt);
    if (!order)
        order = compare(a->epoch, b->epoch);
    return order ? order : compare(a->first, b->first);
}

static int by_place(const void *left, const void *right)
{
    const struct batch_key *a = &(*(struct audit_batch *const *)left)->key;
    const struct batch_key *b = &(*(struct audit_batch *const *)right)->key;
    int order = compare(a->epoch, b->epoch);

    if (!order)
        order = compare(a->first, b->first);
    return order ? order : by_time(left, right);
}

static bool is_before(const struct batch_key *key, const struct mark *mark)
{
    return key->epoch < mark->epoch || (key->epoch == mark->epoch && key->first < mark->first);
}

/* From the last round to the first: what lies before the beginnings of all later ones counts. */
static void find_what_counts(struct audit_sampler *sampler)
{
    struct mark limit = { UINT64_MAX, UINT64_MAX };
    size_t end = sampler->batches.count;

    qsort(sampler->batches.items, end, sizeof(struct audit_batch *), by_time);
    while (end > 0) {
        size_t begin = end - 1;
        const struct batch_key *last = &sampler->batches.items[begin]->key;
        const struct batch_key *first;
        bool voids = false;

        while (begin > 0 && sampler->batches.items[begin - 1]->key.round == last->round &&
               sampler->batches.items[begin - 1]->key.attempt == last->attempt)
            begin--;
        for (size_t i = begin; i < end; i++) {
            struct audit_batch *batch = sampler->batches.items[i];

            batch->counts = is_before(&batch->key, &limit);
            voids |= !batch->counts;
        }
        sampler->rounds_rolled_back += voids;
        first = &sampler->batches.items[begin]->key;
        if (is_before(first, &limit))
            limit = (struct mark){ first->epoch, first->first };
        end = begin;
    }
}

static bool is_whole(const struct audit_batch *batch)
{
    return batch->ranks == batch->key.size && !batch->twice && batch->share == batch->key.total;
}

static void judge_batch(struct audit_epoch *epoch, const struct audit_batch *batch, uint64_t place)
{
    const struct batch_key *key = &batch->key;
    uint64_t rank = 0;

    if (key->first > place)
        fault(epoch,
              "nobody used the places %" PRIu64 " to %" PRIu64 "; round %" PRIu64
              " goes on behind them",
              place, key->first - 1, key->round);
    if (key->first < place)
        fault(epoch,
              "round %" PRIu64 " uses places from %" PRIu64 " on, which are used up to %" PRIu64,
              key->round, key->first, place - 1);
    while (rank < key->size && batch->seen[rank / 8] >> rank % 8 & 1)
        rank++;
    if (rank < key->size)
        fault(epoch, "rank %" PRIu64 " of round %" PRIu64 " has no line for the batch at %" PRIu64,
              rank, key->round, key->first);
    else if (batch->twice)
        fault(epoch, "two workers were the same rank of round %" PRIu64 " in the batch at %" PRIu64,
              key->round, key->first);
    else if (batch->share != key->total)
        fault(epoch,
              "the batch at %" PRIu64 " of round %" PRIu64 " has %" PRIu64 " samples, not %" PRIu64,
              key->first, key->round, batch->share, key->total);
}

/* The batches of one epoch that count, in order of their places. */
static int judge_epoch(struct audit *audit, struct audit_sampler *sampler, size_t begin, size_t end,
                       bool last, struct hvd_err *err)
{
    uint64_t number = sampler->batches.items[begin]->key.epoch;
    struct audit_epoch *epoch = epoch_of(audit, sampler, number);
    uint64_t place = 0;
    bool whole = true;

    if (!epoch)
        return full(audit, err);
    for (size_t i = begin; i < end; i++) {
        struct audit_batch *batch = sampler->batches.items[i];

        if (!batch->counts) {
            epoch->repeated += batch->share;
            continue;
        }
        whole = is_whole(batch);
        /* Where the job has ended, some ranks may have been a step ahead. */
        if (last && !whole && batch->ranks < batch->key.size)
            continue;
        judge_batch(epoch, batch, place);
        epoch->batches++;
        place = batch->key.first + batch->key.total;
    }
    epoch->finished = !last || (place == sampler->samples && whole);
    if (epoch->finished && place < sampler->samples)
        fault(epoch, "nobody used the places from %" PRIu64 " on, and the next epoch was begun",
              place);
    return 0;
}

static int judge_sampler(struct audit *audit, struct audit_sampler *sampler, struct hvd_err *err)
{
    size_t count = sampler->batches.count;
    size_t begin = 0;
    uint64_t newest = 0;
    uint64_t expected = 0;
    int rc = 0;

    find_what_counts(sampler);
    qsort(sampler->batches.items, count, sizeof(struct audit_batch *), by_place);
    for (size_t i = 0; i < count; i++)
        if (sampler->batches.items[i]->counts)
            newest = sampler->batches.items[i]->key.epoch;
    while (!rc && begin < count) {
        uint64_t number = sampler->batches.items[begin]->key.epoch;
        size_t end = begin;

        while (end < count && sampler->batches.items[end]->key.epoch == number)
            end++;
        rc = judge_epoch(audit, sampler, begin, end, number >= newest, err);
        if (!rc && number > expected)
            fault(sampler->epochs.items[sampler->epochs.count - 1],
                  "it was begun, but the epochs from %" PRIu64 " on before it were not", expected);
        expected = number + 1;
        begin = end;
    }
    return rc;
}

int audit_judge(struct audit *audit, struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < audit->samplers.count; i++) {
        rc = judge_sampler(audit, audit->samplers.items[i], err);
        audit->samplers.items[i]->file = 0;
    }
    audit->file = 0;
    return rc;
}

/* ---- each sample once ------------------------------------------------------------------------ */

void audit_mark(struct audit *audit, const struct audit_line *line)
{
    struct audit_sampler *sampler = find_sampler(audit, line->name);
    struct span rest = line->numbers;
    const struct audit_batch *batch;
    struct audit_epoch *epoch;
    struct batch_key key;
    uint64_t number;

    if (!sampler || sampler->samples != line->samples)
        return; /* written since, by a job that goes on */
    key = key_of(audit, sampler, line);
    batch = find_batch(audit, &key);
    if (!batch || !batch->counts || !(epoch = epoch_of(audit, sampler, line->epoch)))
        return;
    while (audit_line_next(&rest, &number)) {
        unsigned char bit = (unsigned char)(1U << number % 8);

        if (epoch->bits[number / 8] & bit) {
            fault(epoch,
                  "sample %" PRIu64 " was used twice, the second time in the batch at %" PRIu64
                  " of round %" PRIu64,
                  number, line->first, line->round);
            epoch->twice++;
        } else {
            epoch->used++;
        }
        epoch->bits[number / 8] |= bit;
    }
}

void audit_finish(struct audit *audit)
{
    for (size_t i = 0; i < audit->samplers.count; i++) {
        struct audit_sampler *sampler = audit->samplers.items[i];

        for (size_t k = 0; k < sampler->epochs.count; k++) {
            struct audit_epoch *epoch = sampler->epochs.items[k];

            if (!epoch->finished)
                continue;
            epoch->missing = sampler->samples - epoch->used;
            for (uint64_t n = 0; n < sampler->samples && epoch->missing; n++)
                if (!(epoch->bits[n / 8] >> n % 8 & 1)) {
                    fault(epoch, "%" PRIu64 " samples were not used; the first is %" PRIu64,
                          epoch->missing, n);
                    break;
                }
        }
    }
}
