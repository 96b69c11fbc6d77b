/*
 * msg_random.c: makes messages whose fields are random within their limits, and compares messages,
 * both from the tables of proto/catalog.h.
 */
#include "tests/lib/msg_random.h"

#include "base/time.h"
#include "proto/catalog.h"

#include <string.h>

struct source {
    struct rng *rng;
    struct arena *arena;
    size_t list_max;
    bool starved;
};

static size_t length_up_to(struct source *source, size_t max)
{
    return (size_t)rng_below(source->rng, max + 1);
}

/* A random number: small, the largest allowed, or any between; never 0, so that a lost field is
 * noticed. */
static uint64_t random_num(struct source *source, uint64_t max)
{
    switch (rng_below(source->rng, 4)) {
    case 0: return 1;
    case 1: return max;
    default: return 1 + rng_below(source->rng, max);
    }
}

static int64_t random_span(struct source *source)
{
    return rng_below(source->rng, 8) ? 1 + (int64_t)rng_below(source->rng, LIMIT_DURATION_US)
                                     : TIME_NEVER;
}

static const char *random_text(struct source *source, size_t max, bool clean)
{
    static const char letters[] = "abcxyz019.-_:/ \t\n\xc3\xa9";
    size_t length = 1 + length_up_to(source, max < 40 ? max - 1 : 39);
    char *text = arena_alloc(source->arena, length + 2);

    if (!text) {
        source->starved = true;
        return "";
    }
    for (size_t i = 0; i < length; i++)
        text[i] = clean ? letters[rng_below(source->rng, sizeof(letters) - 3)]
                        : (char)(1 + rng_below(source->rng, 255));
    return text;
}

static struct msg_bytes random_bytes(struct source *source, size_t max)
{
    size_t length = 1 + length_up_to(source, max < 300 ? max - 1 : 299);
    uint8_t *at = arena_alloc(source->arena, length);

    if (!at) {
        source->starved = true;
        return (struct msg_bytes){ NULL, 0 };
    }
    for (size_t i = 0; i < length; i++)
        at[i] = (uint8_t)rng_next(source->rng);
    return (struct msg_bytes){ at, length };
}

static void *random_array(struct source *source, size_t max, size_t size, size_t *ret_count)
{
    size_t count = length_up_to(source, max < source->list_max ? max : source->list_max);
    void *items = arena_alloc_array(source->arena, count, size);

    if (!items) {
        source->starved = true;
        count = 0;
    }
    *ret_count = count;
    return items;
}

static struct msg_texts random_texts(struct source *source, size_t max, size_t max_bytes)
{
    struct msg_texts texts;
    const char **items = random_array(source, max, sizeof(*items), &texts.count);

    for (size_t i = 0; i < texts.count; i++)
        items[i] = random_text(source, max_bytes, false);
    texts.items = items;
    return texts;
}

static struct msg_ids random_ids(struct source *source, size_t max)
{
    struct msg_ids ids;
    uint64_t *items = random_array(source, max, sizeof(*items), &ids.count);

    for (size_t i = 0; i < ids.count; i++)
        items[i] = rng_next(source->rng);
    ids.items = items;
    return ids;
}

/* For a bool or an enum the largest value is small, so the casts below lose no bit. */
#define SET(kind, name, a, b) SET_##kind(name, a, b)
#define SET_NUM(name, a, b) \
    memcpy(&to->name, &(uint64_t){ random_num(source, (a)) }, sizeof(to->name));
#define SET_SIGNED(name, a, b) to->name = -1 - (int32_t)rng_below(source->rng, INT32_MAX);
#define SET_SPAN(name, a, b)   to->name = random_span(source);
#define SET_TEXT(name, a, b)   to->name = random_text(source, (a), true);
#define SET_RAW(name, a, b)    to->name = random_text(source, (a), false);
#define SET_BYTES(name, a, b)  to->name = random_bytes(source, (a));
#define SET_TEXTS(name, a, b)  to->name = random_texts(source, (a), (b));
#define SET_IDS(name, a, b)    to->name = random_ids(source, (a));
#define SET_LIST(name, a, part)                                                    \
    {                                                                              \
        struct msg_##part *items =                                                 \
            random_array(source, (a), sizeof(struct msg_##part), &to->name.count); \
                                                                                   \
        for (size_t i = 0; i < to->name.count; i++)                                \
            set_##part(source, &items[i]);                                         \
        to->name.items = items;                                                    \
    }
#define SET_FUNCTION(name, Name)                                         \
    static void set_##name(struct source *source, struct msg_##name *to) \
    {                                                                    \
        FIELDS_##name(SET);                                              \
    }
#define SET_M(NAME, name, Name, links, keys, when, body_max) SET_FUNCTION(name, Name)
#define NOTHING(NAME, name, Name, links, keys, when, body_max)

MSG_PARTS(SET_FUNCTION)
MSG_CATALOG(SET_M, NOTHING)

int msg_random(enum msg_type type, struct rng *rng, size_t list_max, struct arena *arena,
               struct msg *ret_msg)
{
    struct source source = { rng, arena, list_max, false };

    *ret_msg = (struct msg){ .type = type };
    ret_msg->term = random_num(&source, UINT64_MAX);
    ret_msg->incarnation = random_num(&source, UINT64_MAX);
    ret_msg->round = random_num(&source, UINT64_MAX);
    switch (type) {
#define FILL(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME:                                        \
        set_##name(&source, &ret_msg->u.name);              \
        break;
#define FILL_EMPTY(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME: break;
        MSG_CATALOG(FILL, FILL_EMPTY)
    }
    return source.starved ? HVD_E_NOMEM : 0;
}

static bool same_texts(struct msg_texts left, struct msg_texts right)
{
    bool same = left.count == right.count;

    for (size_t i = 0; same && i < left.count; i++)
        same = !strcmp(left.items[i], right.items[i]);
    return same;
}

static bool same_bytes(const void *left, size_t left_length, const void *right, size_t right_length)
{
    return left_length == right_length && (!left_length || !memcmp(left, right, left_length));
}

#define DIFFER(condition, name) \
    if (!(condition))           \
        return #name;
#define COMPARE(kind, name, a, b)  COMPARE_##kind(name, a, b)
#define COMPARE_NUM(name, a, b)    DIFFER(left->name == right->name, name)
#define COMPARE_SIGNED(name, a, b) DIFFER(left->name == right->name, name)
#define COMPARE_SPAN(name, a, b)   DIFFER(left->name == right->name, name)
#define COMPARE_TEXT(name, a, b)   DIFFER(!strcmp(left->name, right->name), name)
#define COMPARE_RAW(name, a, b)    DIFFER(!strcmp(left->name, right->name), name)
#define COMPARE_TEXTS(name, a, b)  DIFFER(same_texts(left->name, right->name), name)
#define COMPARE_BYTES(name, a, b) \
    DIFFER(same_bytes(left->name.at, left->name.length, right->name.at, right->name.length), name)
#define COMPARE_IDS(name, a, b)                                                  \
    DIFFER(same_bytes(left->name.items, left->name.count * 8, right->name.items, \
                      right->name.count * 8),                                    \
           name)
#define COMPARE_LIST(name, a, part)                     \
    DIFFER(left->name.count == right->name.count, name) \
    for (size_t i = 0; i < left->name.count; i++)       \
    DIFFER(!differ_##part(&left->name.items[i], &right->name.items[i]), name)
#define COMPARE_FUNCTION(name, Name)                                 \
    static const char *differ_##name(const struct msg_##name *left,  \
                                     const struct msg_##name *right) \
    {                                                                \
        FIELDS_##name(COMPARE);                                      \
        return NULL;                                                 \
    }
#define COMPARE_M(NAME, name, Name, links, keys, when, body_max) COMPARE_FUNCTION(name, Name)

MSG_PARTS(COMPARE_FUNCTION)
MSG_CATALOG(COMPARE_M, NOTHING)

const char *msg_difference(const struct msg *left, const struct msg *right)
{
    DIFFER(left->type == right->type, type)
    DIFFER(left->term == right->term, term)
    DIFFER(left->incarnation == right->incarnation, incarnation)
    DIFFER(left->round == right->round, round)
    switch (left->type) {
#define SAME(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME:                                        \
        return differ_##name(&left->u.name, &right->u.name);
#define SAME_EMPTY(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME: break;
        MSG_CATALOG(SAME, SAME_EMPTY)
    }
    return NULL;
}
