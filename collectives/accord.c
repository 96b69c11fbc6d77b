#include "collectives/accord.h"

#include "collectives/reduce/reduce.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {
    [COLL_ALLREDUCE] = "allreduce", [COLL_BROADCAST] = "broadcast",
    [COLL_ALLGATHER] = "allgather", [COLL_REDUCESCATTER] = "reducescatter",
    [COLL_ALLTOALL] = "alltoall",   [COLL_BARRIER] = "barrier",
    [COLL_JOIN] = "join",           [COLL_END] = "end",
};

const char *accord_kind_name(uint32_t kind)
{
    return kind && kind < ARRAY_SIZE(kinds) ? kinds[kind] : "?";
}

#define WORDS (sizeof(struct accord) / sizeof(uint64_t))

/* All that must be the same. */
static void to_words(const struct accord *accord, uint64_t words[WORDS])
{
    struct accord bare = *accord;

    _Static_assert(WORDS * sizeof(*words) == sizeof(bare), "no part of an accord is left out");
    bare.rank = 0;
    bare.last = 0;
    bare.last_number = 0;
    memcpy(words, &bare, sizeof(bare));
}

bool accord_same(const struct accord *a, const struct accord *b)
{
    uint64_t left[WORDS], right[WORDS];

    to_words(a, left);
    to_words(b, right);
    return !memcmp(left, right, sizeof(left));
}

uint64_t accord_sum(const struct accord *accord)
{
    uint64_t words[WORDS], sum = 0;

    to_words(accord, words);
    for (size_t i = 0; i < WORDS; i++)
        sum = accord_mix(sum, words[i]);
    return sum;
}

/* ---- for people ---- */

static bool is_one(double scale)
{
    return !islessgreater(scale, 1.0);
}

static void describe_numbers(const struct accord *accord, char *text, size_t room)
{
    const char *type = reduce_type_name((hvd_dtype)accord->type);
    const char *op = reduce_op_name((hvd_op)accord->op);

    switch (accord->kind) {
    case COLL_ALLREDUCE:
        (void)snprintf(text, room, " (%s) of %" PRIu64 " %s", op, accord->count, type);
        break;
    case COLL_REDUCESCATTER:
        (void)snprintf(text, room, " (%s) of %s with counts of sum %" PRIx64, op, type,
                       accord->count);
        break;
    case COLL_BROADCAST:
        (void)snprintf(text, room, " of %" PRIu64 " %s from rank %u", accord->count, type,
                       accord->root);
        break;
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
        (void)snprintf(text, room, " of %s with counts of sum %" PRIx64, type, accord->count);
        break;
    default: break;
    }
}

void accord_describe(const struct accord *accord, char text[ACCORD_TEXT_MAX])
{
    size_t at;

    (void)snprintf(text, ACCORD_TEXT_MAX, "operation %" PRIu64 " is %s", accord->number,
                   accord_kind_name(accord->kind));
    at = strlen(text);
    describe_numbers(accord, text + at, ACCORD_TEXT_MAX - at);
    at = strlen(text);
    if (accord->kind == COLL_ALLREDUCE || accord->kind == COLL_REDUCESCATTER) {
        if (!is_one(accord->prescale) || !is_one(accord->postscale))
            (void)snprintf(text + at, ACCORD_TEXT_MAX - at,
                           ", scaled by %.9g before and %.9g after", accord->prescale,
                           accord->postscale);
    }
    at = strlen(text);
    if (accord->on_device)
        (void)snprintf(text + at, ACCORD_TEXT_MAX - at, ", in the memory of a GPU");
}
