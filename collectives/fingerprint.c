/*
 * fingerprint.c: compares, hashes and describes fingerprints. opening.c and lane/open.c send and
 * compare them; the description is the text of an HVD_E_MISMATCH, which shows both sides. All bytes
 * are compared except the sender's rank and what the sender knows of joined ranks; so a new field
 * is compared without new code.
 */
#include "collectives/fingerprint.h"

#include "collectives/reduce/reduce.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const kinds[] = {
    [COLL_ALLREDUCE] = "allreduce",
    [COLL_BROADCAST] = "broadcast",
    [COLL_ALLGATHER] = "allgather",
    [COLL_REDUCESCATTER] = "reducescatter",
    [COLL_ALLTOALL] = "alltoall",
    [COLL_BARRIER] = "barrier",
    [COLL_JOIN] = "join",
    [COLL_END] = "end",
    [COLL_ALLGATHER_RAGGED] = "ragged allgather",
    [COLL_ALLTOALL_RAGGED] = "ragged alltoall",
    [COLL_OPEN] = "opening of a group",
    [COLL_CLOSE] = "closing of a group",
    [COLL_REDUCE] = "reduce",
    [COLL_GATHER] = "gather",
    [COLL_SCATTER] = "scatter",
    [COLL_SEND] = "send",
    [COLL_RECEIVE] = "receive",
};

const char *coll_kind_name(uint32_t kind)
{
    return kind < ARRAY_SIZE(kinds) && kinds[kind] ? kinds[kind] : "?";
}

bool coll_kind_is_ragged(uint32_t kind)
{
    return kind == COLL_ALLGATHER_RAGGED || kind == COLL_ALLTOALL_RAGGED;
}

bool coll_kind_is_rooted(uint32_t kind)
{
    return kind == COLL_REDUCE || kind == COLL_GATHER || kind == COLL_SCATTER;
}

bool coll_kind_is_of_groups(uint32_t kind)
{
    return kind == COLL_OPEN || kind == COLL_CLOSE;
}

/* Returns the hash after one more value: a multiplication spreads the bits upwards (the constant is
 * 2^64 divided by the golden ratio), and the shift brings the upper ones down. */
uint64_t fingerprint_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* The offsets of these fields must not change: workers with another version of libhvd send and
 * compare the same bytes. */
_Static_assert(offsetof(struct fingerprint, kind) == 16, "kind is at byte 16");
_Static_assert(offsetof(struct fingerprint, type) == 20, "type is at byte 20");
_Static_assert(offsetof(struct fingerprint, on_device) == 22, "on_device is at byte 22");
_Static_assert(offsetof(struct fingerprint, op) == 24, "op is at byte 24");
_Static_assert(offsetof(struct fingerprint, root) == 28, "root is at byte 28");
_Static_assert(offsetof(struct fingerprint, count) == 32, "count is at byte 32");
_Static_assert(offsetof(struct fingerprint, tag) == 64, "tag is at byte 64");
_Static_assert(sizeof(struct fingerprint) == 72, "a fingerprint has 72 bytes");

#define WORDS (sizeof(struct fingerprint) / sizeof(uint64_t))

/* Copies the fingerprint without the fields that may differ between members, which become 0. */
static void compared_words(const struct fingerprint *fingerprint, uint64_t words[WORDS])
{
    struct fingerprint bare = *fingerprint;

    _Static_assert(WORDS * sizeof(*words) == sizeof(bare), "no part is left out");
    bare.rank = 0;
    bare.last = 0;
    if (bare.kind == COLL_JOIN)
        bare.last_number = 0;
    memcpy(words, &bare, sizeof(bare));
}

/* true: both members run the same operation. Fields that may differ, such as the rank, are not
 * compared. */
bool fingerprint_same(const struct fingerprint *a, const struct fingerprint *b)
{
    uint64_t left[WORDS], right[WORDS];

    compared_words(a, left);
    compared_words(b, right);
    return !memcmp(left, right, sizeof(left));
}

/* Returns a hash of the fields that all members must agree on; it becomes a part of the tags of the
 * operation's messages (lane.h). */
uint64_t fingerprint_hash(const struct fingerprint *fingerprint)
{
    uint64_t words[WORDS], hash = 0;

    compared_words(fingerprint, words);
    for (size_t i = 0; i < WORDS; i++)
        hash = fingerprint_mix(hash, words[i]);
    return hash;
}

/* true: the scale is 1, or it is not a number. */
static bool is_one(double scale)
{
    return !islessgreater(scale, 1.0);
}

/* Writes the fingerprint for an error text: "operation 7 is allreduce (sum) of 100 float32". Parts
 * of the text for which the kind has no fields stay empty. */
void fingerprint_describe(const struct fingerprint *fingerprint, char text[FINGERPRINT_TEXT_MAX])
{
    const char *type = reduce_type_name((hvd_dtype)fingerprint->type);
    bool to_root = fingerprint->kind == COLL_REDUCE;
    uint32_t op_number =
        to_root ? fingerprint->op & ((1U << FINGERPRINT_ROOT_SHIFT) - 1) : fingerprint->op;
    const char *op = reduce_op_name((hvd_op)op_number);
    char numbers[112] = "", scales[80] = "", fused[32] = "", tag[48] = "";
    bool scaled = !is_one(fingerprint->prescale) || !is_one(fingerprint->postscale);

    switch (fingerprint->kind) {
    case COLL_ALLREDUCE:
        (void)snprintf(numbers, sizeof(numbers), " (%s) of %" PRIu64 " %s", op, fingerprint->count,
                       type);
        if (fingerprint->fused)
            (void)snprintf(fused, sizeof(fused), ", %u requests fused", fingerprint->fused);
        break;
    case COLL_REDUCESCATTER:
        (void)snprintf(numbers, sizeof(numbers),
                       " (%s) of %s, with counts whose checksum is %" PRIx64, op, type,
                       fingerprint->count);
        break;
    case COLL_REDUCE:
        (void)snprintf(numbers, sizeof(numbers), " (%s) of %" PRIu64 " %s to rank %u", op,
                       fingerprint->count, type, fingerprint->op >> FINGERPRINT_ROOT_SHIFT);
        break;
    case COLL_GATHER:
    case COLL_SCATTER:
        (void)snprintf(numbers, sizeof(numbers),
                       " of %s %s rank %u, with counts whose checksum is %" PRIx64, type,
                       fingerprint->kind == COLL_GATHER ? "to" : "from", fingerprint->root,
                       fingerprint->count);
        break;
    case COLL_BROADCAST:
    case COLL_SEND:
        (void)snprintf(numbers, sizeof(numbers), " of %" PRIu64 " %s from rank %u",
                       fingerprint->count, type, fingerprint->root);
        break;
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
        (void)snprintf(numbers, sizeof(numbers), " of %s, with counts whose checksum is %" PRIx64,
                       type, fingerprint->count);
        break;
    case COLL_ALLGATHER_RAGGED:
    case COLL_ALLTOALL_RAGGED: (void)snprintf(numbers, sizeof(numbers), " of %s", type); break;
    case COLL_OPEN:
        (void)snprintf(numbers, sizeof(numbers), ", with ranks whose checksum is %" PRIx64,
                       fingerprint->count);
        break;
    case COLL_CLOSE:
        (void)snprintf(numbers, sizeof(numbers), " with number %" PRIu64, fingerprint->count);
        break;
    default: break;
    }
    if (scaled &&
        (fingerprint->kind == COLL_ALLREDUCE || to_root || fingerprint->kind == COLL_REDUCESCATTER))
        (void)snprintf(scales, sizeof(scales), ", scaled by %.9g before and %.9g after",
                       fingerprint->prescale, fingerprint->postscale);
    if (fingerprint->tag && fingerprint->kind != COLL_JOIN)
        (void)snprintf(tag, sizeof(tag), ", tag %" PRIu64, fingerprint->tag);
    (void)snprintf(text, FINGERPRINT_TEXT_MAX, "operation %" PRIu64 " is %s%s%s%s%s%s",
                   fingerprint->number, coll_kind_name(fingerprint->kind), numbers, fused, scales,
                   tag,
                   !fingerprint->on_device ? ""
                   : fingerprint->on_device == FINGERPRINT_BY_HOST
                       ? ", in the memory of a GPU, through the host"
                       : ", in the memory of a GPU");
}
