/*
 * journal_random.c: makes records of the driver's journal with random fields, and compares records
 * field by field.
 */
#include "tests/lib/journal_random.h"

#include <string.h>

/* A random number in [least, most], often one of the two ends. */
static uint64_t any(struct rng *rng, uint64_t least, uint64_t most)
{
    switch (rng_below(rng, 8)) {
    case 0: return least;
    case 1: return most;
    default: break;
    }
    return most - least == UINT64_MAX ? rng_next(rng) : least + rng_below(rng, most - least + 1);
}

/* A random text: any bytes but NUL; for a host only bytes that a host name may have. */
static void any_text(struct rng *rng, char *text, size_t max, bool host)
{
    size_t length = rng_below(rng, 4) ? rng_below(rng, 20) % (max + 1) : (size_t)any(rng, 0, max);

    for (size_t i = 0; i < length; i++)
        text[i] = host ? "abcXYZ012"[rng_below(rng, 9)] : (char)(unsigned char)any(rng, 1, 255);
    text[length] = '\0';
}

static struct msg_ids any_ids(struct rng *rng, uint64_t items[JOURNAL_RANDOM_IDS])
{
    size_t count = (size_t)any(rng, 0, JOURNAL_RANDOM_IDS);

    for (size_t i = 0; i < count; i++)
        items[i] = any(rng, 1, LIMIT_INCARNATIONS);
    return (struct msg_ids){ items, count };
}

void journal_random_make(struct journal_random *random, uint64_t seed)
{
    struct journal_record *record = &random->record;
    struct rng rng;
    size_t count;

    rng_seed(&rng, seed);
    *record = (struct journal_record){
        .kind = (enum journal_kind)(seed % JOURNAL_REPORTED + 1),
        .term = any(&rng, 0, UINT64_MAX),
        .incarnation = any(&rng, 0, LIMIT_INCARNATIONS),
        .round = any(&rng, 0, UINT64_MAX),
        .previous = any(&rng, 0, UINT64_MAX),
        .commit = any(&rng, 0, UINT64_MAX),
        .check = any(&rng, 0, UINT64_MAX),
        .manifest = any(&rng, 0, UINT64_MAX),
        .cause = (uint32_t)any(&rng, 0, CAUSE_COUNT - 1),
        .slot = (uint32_t)any(&rng, 0, UINT32_MAX),
        .ended = (uint32_t)any(&rng, 0, ENDED_COUNT - 1),
        .value = (int32_t)((int64_t)any(&rng, 0, UINT32_MAX) + INT32_MIN),
        .code = (int32_t)((int64_t)any(&rng, 0, UINT32_MAX) + INT32_MIN),
        .wall_us = (int64_t)any(&rng, 0, INT64_MAX),
        .host = random->host,
        .text = random->text,
    };
    any_text(&rng, random->host, LIMIT_HOST_NAME_BYTES, true);
    any_text(&rng, random->text, LIMIT_REASON_BYTES, false);
    count = (size_t)any(&rng, 0, LIMIT_ADDRESSES);
    for (size_t i = 0; i < count; i++) {
        any_text(&rng, random->address[i], LIMIT_TEXT_BYTES, false);
        random->addresses[i] = random->address[i];
    }
    record->addresses = (struct msg_texts){ random->addresses, count };
    record->members = any_ids(&rng, random->members);
    record->holders = any_ids(&rng, random->holders);
}

static bool ids_same(const struct msg_ids *a, const struct msg_ids *b)
{
    for (size_t i = 0; i < a->count && a->count == b->count; i++)
        if (a->items[i] != b->items[i])
            return false;
    return a->count == b->count;
}

static bool texts_same(const struct msg_texts *a, const struct msg_texts *b)
{
    for (size_t i = 0; i < a->count && a->count == b->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return a->count == b->count;
}

bool journal_same(const struct journal_record *a, const struct journal_record *b)
{
    return a->kind == b->kind && a->term == b->term && a->incarnation == b->incarnation &&
           a->round == b->round && a->previous == b->previous && a->commit == b->commit &&
           a->check == b->check && a->manifest == b->manifest && a->cause == b->cause &&
           a->slot == b->slot && a->ended == b->ended && a->value == b->value &&
           a->code == b->code && a->wall_us == b->wall_us && !strcmp(a->host, b->host) &&
           !strcmp(a->text, b->text) && texts_same(&a->addresses, &b->addresses) &&
           ids_same(&a->members, &b->members) && ids_same(&a->holders, &b->holders);
}
