/* copy.c: a message with everything that it points to. */
#include "proto/catalog.h"
#include "proto/fields.h"

#include <string.h>

/* Every piece lives in the arena; NULL when memory or its cap is out. An empty one is not copied.
 */
static const void *copy_block(const void *from, size_t count, size_t size, struct arena *arena)
{
    void *to = arena_alloc_array(arena, count, size);

    if (to && count)
        memcpy(to, from, count * size);
    return to;
}

static const char *copy_text(const char *from, struct arena *arena)
{
    return from ? copy_block(from, strlen(from) + 1, 1, arena) : "";
}

static int copy_texts(struct msg_texts *texts, struct arena *arena)
{
    const char **items = arena_alloc_array(arena, texts->count, sizeof(*items));

    if (!items)
        return HVD_E_NOMEM;
    for (size_t i = 0; i < texts->count; i++) {
        items[i] = copy_text(texts->items[i], arena);
        if (!items[i])
            return HVD_E_NOMEM;
    }
    texts->items = items;
    return 0;
}

/* `to` is a plain copy of the struct; what it points to is still the original's. */
#define COPY_FIELD(kind, name, a, b) COPY_##kind(name, a, b)
#define COPY_NUM(name, a, b)
#define COPY_SIGNED(name, a, b)
#define COPY_SPAN(name, a, b)
#define COPY_TEXT(name, a, b)              \
    to->name = copy_text(to->name, arena); \
    if (!to->name)                         \
        return HVD_E_NOMEM;
#define COPY_RAW(name, a, b) COPY_TEXT(name, a, b)
#define COPY_BYTES(name, a, b)                                        \
    to->name.at = copy_block(to->name.at, to->name.length, 1, arena); \
    if (!to->name.at)                                                 \
        return HVD_E_NOMEM;
#define COPY_IDS(name, a, b)                                                                     \
    to->name.items = copy_block(to->name.items, to->name.count, sizeof(*to->name.items), arena); \
    if (!to->name.items)                                                                         \
        return HVD_E_NOMEM;
#define COPY_TEXTS(name, a, b)        \
    if (copy_texts(&to->name, arena)) \
        return HVD_E_NOMEM;
#define COPY_LIST(name, a, part)                                                             \
    {                                                                                        \
        struct msg_##part *items = arena_alloc_array(arena, to->name.count, sizeof(*items)); \
        if (!items)                                                                          \
            return HVD_E_NOMEM;                                                              \
        for (size_t i = 0; i < to->name.count; i++) {                                        \
            items[i] = to->name.items[i];                                                    \
            if (copy_##part(&items[i], arena))                                               \
                return HVD_E_NOMEM;                                                          \
        }                                                                                    \
        to->name.items = items;                                                              \
    }

#define COPY_FUNCTION(name, Name)                                      \
    static int copy_##name(struct msg_##name *to, struct arena *arena) \
    {                                                                  \
        (void)to;                                                      \
        (void)arena;                                                   \
        FIELDS_##name(COPY_FIELD);                                     \
        return 0;                                                      \
    }
#define COPY_M(NAME, name, Name, links, keys, when, body_max) COPY_FUNCTION(name, Name)
#define NOTHING(NAME, name, Name, links, keys, when, body_max)

MSG_PARTS(COPY_FUNCTION)
MSG_CATALOG(COPY_M, NOTHING)

static int copy_body(struct msg *to, struct arena *arena)
{
    switch (to->type) {
#define CASE_M(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME:                                          \
        return copy_##name(&to->u.name, arena);
#define CASE_EMPTY(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME: return 0;
        MSG_CATALOG(CASE_M, CASE_EMPTY)
#undef CASE_M
#undef CASE_EMPTY
    }
    return 0;
}

int msg_copy_into(const struct msg *msg, struct arena *arena, struct msg *ret_msg)
{
    struct msg copy = *msg;

    arena_init(&copy.memory, 0);
    if (copy_body(&copy, arena))
        return HVD_E_NOMEM;
    *ret_msg = copy;
    return 0;
}

int msg_copy(const struct msg *msg, struct msg *ret_msg)
{
    struct arena arena;
    struct msg copy;

    arena_init(&arena, SIZE_MAX / 2);
    if (msg_copy_into(msg, &arena, &copy)) {
        arena_release(&arena);
        return HVD_E_NOMEM;
    }
    copy.memory = arena;
    *ret_msg = copy;
    return 0;
}
