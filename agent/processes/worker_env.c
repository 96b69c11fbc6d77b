/*
 * worker_env.c: the environment of a worker, made for each LAUNCH. Called by agent/io. Invariant:
 * of two values with one name the first that is added counts, and the agent adds its own values
 * first, so a LAUNCH cannot change the identity of a worker.
 */
#include "agent/processes/worker_env.h"

#include "base/limits.h"
#include "base/names.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define OWN_MAX 32 /* number of variables that the agent sets for every worker */

/* A list of variables: the first text with a name is kept, later texts with the same name are left
 * out. */
struct maker {
    struct arena *arena;
    struct names names; /* the names that the list has */
    const char **items; /* texts "NAME=value" */
    size_t count;
    bool failed; /* no memory was left for a text */
};

/* Adds a text "NAME=value", unless the list has that NAME already. A text without a name is left
 * out. */
static void env_add(struct maker *maker, const char *text)
{
    const char *equals = strchr(text, '=');
    int rc;

    if (!equals || equals == text)
        return;
    rc = names_put(&maker->names, text, (size_t)(equals - text), 0 /* numbers are not used */);
    if (rc == 0)
        maker->items[maker->count++] = text;
    else if (rc != HVD_E_EXISTS)
        maker->failed = true;
}

/* Adds a variable whose text is made here, in the arena. */
PRINTF_LIKE(2, 3) static void env_set(struct maker *maker, const char *format, ...)
{
    const char *text;
    va_list args;

    va_start(args, format);
    text = arena_line(maker->arena, LIMIT_TEXT_BYTES + 1, format, args);
    va_end(args);
    if (text)
        env_add(maker, text);
    else
        maker->failed = true;
}

/* Makes the environment of a worker; NULL: no memory is left. Of two texts with the same name the
 * first one stays, so the most important variables are added first. */
const char *const *worker_env_make(const struct worker_env_config *config, const struct msg *launch,
                                   struct arena *arena)
{
    const struct msg_launch *place = &launch->u.launch;
    const struct msg_texts *given = &place->env;
    const struct {
        const char *name;
        uint32_t value;
    } places[] = {
        {"RANK",        place->rank      },
        { "SIZE",       place->size      },
        { "LOCAL_RANK", place->local_rank},
        { "LOCAL_SIZE", place->local_size},
        { "CROSS_RANK", place->cross_rank},
        { "CROSS_SIZE", place->cross_size},
    };
    struct maker maker = { .arena = arena };
    size_t own = 0;

    while (config->own[own])
        own++;
    maker.items = arena_alloc_array(arena, OWN_MAX + given->count + own + 1, sizeof(char *));
    if (!maker.items)
        return NULL;
    names_init(&maker.names);

    /* First the variables that tell the worker its identity. */
    env_set(&maker, "HVD_AGENT=%s", config->socket);
    env_set(&maker, "HVD_JOB=%s", config->job);
    env_set(&maker, "HVD_HOST=%s", config->host);
    env_set(&maker, "HVD_SLOT=%" PRIu32, place->slot);
    env_set(&maker, "HVD_INCARNATION=%" PRIu64, launch->incarnation);
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        env_set(&maker, "HVD_%s=%" PRIu32, places[i].name, places[i].value);
        env_set(&maker, "HOROVOD_%s=%" PRIu32, places[i].name, places[i].value);
    }
    env_set(&maker, "HOROVOD_HOSTNAME=%s", config->host);
    env_set(&maker, "HOROVOD_ELASTIC=1");
    env_set(&maker, "PYTHONUNBUFFERED=1"); /* Python prints each line at once, also into a pipe */

    /* Then the variables of the LAUNCH, the last one first: if two have the same name, the last one
     * must count. Then come the agent's own variables. */
    for (size_t i = given->count; i > 0; i--)
        env_add(&maker, given->items[i - 1]);
    for (size_t i = 0; i < own; i++)
        env_add(&maker, config->own[i]);
    names_release(&maker.names);
    return maker.failed ? NULL : maker.items;
}
