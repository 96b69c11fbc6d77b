#include "agent/io/worker_env.h"

#include "base/names.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define OWN_MAX 32 /* what is set for every worker */

/* Whoever comes first has the name. */
struct maker {
    struct arena *arena;
    struct names names;
    const char **items;
    size_t count;
    bool failed;
};

static void add(struct maker *maker, const char *text)
{
    const char *equals = strchr(text, '=');
    int rc;

    if (!equals || equals == text)
        return;
    rc = names_put(&maker->names, text, (size_t)(equals - text), 0);
    if (rc == 0)
        maker->items[maker->count++] = text;
    else if (rc != HVD_E_EXISTS)
        maker->failed = true;
}

PRINTF_LIKE(2, 3) static void set(struct maker *maker, const char *format, ...)
{
    va_list args;
    va_list again;
    char *text = NULL;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    if (length >= 0)
        text = arena_alloc(maker->arena, (size_t)length + 1);
    if (text) {
        vsnprintf(text, (size_t)length + 1, format, again);
        add(maker, text);
    } else {
        maker->failed = true;
    }
    va_end(again);
    va_end(args);
}

static void set_place(struct maker *maker, const struct msg_launch *launch)
{
    const struct {
        const char *name;
        uint32_t value;
    } places[] = {
        {"RANK",        launch->rank      },
        { "SIZE",       launch->size      },
        { "LOCAL_RANK", launch->local_rank},
        { "LOCAL_SIZE", launch->local_size},
        { "CROSS_RANK", launch->cross_rank},
        { "CROSS_SIZE", launch->cross_size},
    };

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        set(maker, "HVD_%s=%" PRIu32, places[i].name, places[i].value);
        set(maker, "HOROVOD_%s=%" PRIu32, places[i].name, places[i].value);
    }
}

static void set_own(struct maker *maker, const struct worker_env_config *config,
                    const struct msg *launch)
{
    set(maker, "HVD_AGENT=%s", config->socket);
    set(maker, "HVD_JOB=%s", config->job);
    set(maker, "HVD_HOST=%s", config->host);
    set(maker, "HVD_SLOT=%" PRIu32, launch->u.launch.slot);
    set(maker, "HVD_INCARNATION=%" PRIu64, launch->incarnation);
    set_place(maker, &launch->u.launch);
    set(maker, "HOROVOD_HOSTNAME=%s", config->host);
    set(maker, "HOROVOD_ELASTIC=1");
    set(maker, "PYTHONUNBUFFERED=1");
}

const char *const *worker_env_make(const struct worker_env_config *config, const struct msg *launch,
                                   struct arena *arena)
{
    const struct msg_texts *given = &launch->u.launch.env;
    struct maker maker = { .arena = arena };
    size_t own = 0;

    while (config->own[own])
        own++;
    maker.items = arena_alloc_array(arena, OWN_MAX + given->count + own + 1, sizeof(char *));
    if (!maker.items)
        return NULL;
    names_init(&maker.names);
    set_own(&maker, config, launch);
    for (size_t i = given->count; i > 0; i--) /* of two of the same name the last counts */
        add(&maker, given->items[i - 1]);
    for (size_t i = 0; i < own; i++)
        add(&maker, config->own[i]);
    names_release(&maker.names);
    return maker.failed ? NULL : maker.items;
}
