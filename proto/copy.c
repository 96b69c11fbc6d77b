/* copy.c: copies a message together with all memory to which it points. Called by code that keeps a
 * message longer than its event. A copy never points into its original. */
#include "proto/catalog.h"

#include <string.h>

/* Copies `count` items of `size` bytes into the arena. NULL: no memory is left, or the arena has
 * reached its cap. Of an empty block nothing is copied. */
static const void *copy_block(const void *from, size_t count, size_t size, struct arena *arena)
{
    void *to = arena_alloc_array(arena, count, size);

    if (to && count)
        memcpy(to, from, count * size);
    return to;
}

static const char *msg_copy_text(const char *from, struct arena *arena)
{
    return from ? copy_block(from, strlen(from) + 1, 1, arena) : "";
}

/* For each kind of field: makes a copy of what the field points to. `to` is a plain copy of the
 * struct, whose pointers still point into the original. */
#define COPY_FIELD(kind, name, a, b) COPY_##kind(name, a, b)
#define COPY_NUM(name, a, b)
#define COPY_SIGNED(name, a, b)
#define COPY_SPAN(name, a, b)
#define COPY_TEXT(name, a, b)                  \
    to->name = msg_copy_text(to->name, arena); \
    if (!to->name)                             \
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
#define COPY_TEXTS(name, a, b)                                                         \
    {                                                                                  \
        const char **items = arena_alloc_array(arena, to->name.count, sizeof(*items)); \
        if (!items)                                                                    \
            return HVD_E_NOMEM;                                                        \
        for (size_t i = 0; i < to->name.count; i++) {                                  \
            items[i] = msg_copy_text(to->name.items[i], arena);                        \
            if (!items[i])                                                             \
                return HVD_E_NOMEM;                                                    \
        }                                                                              \
        to->name.items = items;                                                        \
    }
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

/* Copies a message with all that it points to into the arena. The copy's own arena is empty, so
 * msg_release is not needed: the memory lives as long as `arena`. */
int msg_copy_into(const struct msg *msg, struct arena *arena, struct msg *ret_msg)
{
    struct msg copy = *msg;
    int rc = 0;

    arena_init(&copy.memory, 0);
    /* Copies the memory to which the body points, field by field as the catalogue says. */
    switch (copy.type) {
#define CASE_M(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME:                                          \
        rc = copy_##name(&copy.u.name, arena);                \
        break;
#define CASE_EMPTY(NAME, name, Name, links, keys, when, body_max) \
    case MSG_##NAME: break;
        MSG_CATALOG(CASE_M, CASE_EMPTY)
#undef CASE_M
#undef CASE_EMPTY
    }
    if (!rc)
        *ret_msg = copy;
    return rc;
}

/* Copies a message with all that it points to. The copy owns its memory, which msg_release
 * frees. */
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
