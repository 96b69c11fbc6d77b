/*
 * test_worker_env.c: the environment of a worker that an agent launches: the nearest source of a
 * variable wins.
 */
#include "agent/processes/worker_env.h"
#include "base/limits.h"
#include "tests/lib/test.h"

#include <string.h>

static struct arena arena;

static const char *value_of(const char *const *env, const char *name)
{
    const char *found = NULL;
    size_t length = strlen(name);

    for (size_t i = 0; env[i]; i++) {
        if (strncmp(env[i], name, length) != 0 || env[i][length] != '=')
            continue;
        if (found)
            return "twice";
        found = env[i] + length + 1;
    }
    return found ? found : "none";
}

TEST(the_nearest_source_wins)
{
    static const char *const own[] = { "PATH=/own", "HOME=/h", "LANG=C", "HVD_RANK=77", NULL };
    static const char *const given[] = { "PATH=/given",       "HOROVOD_SIZE=9", "LANG=first",
                                         "LANG=last",         "rubbish",        "=rubbish",
                                         "HVD_AGENT=another", "EMPTY=" };
    const struct worker_env_config config = { "@s", "job", "host", own };
    const struct msg launch = {
        .type = MSG_LAUNCH,
        .incarnation = 12,
        .u.launch = {.slot = 3,
                     .env = { given, ARRAY_SIZE(given) },
                     .rank = 5,
                     .size = 8,
                     .local_rank = 1,
                     .local_size = 2,
                     .cross_rank = 3,
                     .cross_size = 4}
    };
    static const struct {
        const char *name;
        const char *value;
    } wanted[] = {
        {"PATH",                "/given"},
        { "HOME",               "/h"    },
        { "LANG",               "last"  },
        { "EMPTY",              ""      },
        { "HVD_AGENT",          "@s"    },
        { "HVD_JOB",            "job"   },
        { "HVD_HOST",           "host"  },
        { "HVD_SLOT",           "3"     },
        { "HVD_INCARNATION",    "12"    },
        { "HVD_RANK",           "5"     },
        { "HVD_SIZE",           "8"     },
        { "HVD_LOCAL_RANK",     "1"     },
        { "HVD_LOCAL_SIZE",     "2"     },
        { "HVD_CROSS_RANK",     "3"     },
        { "HVD_CROSS_SIZE",     "4"     },
        { "HOROVOD_HOSTNAME",   "host"  },
        { "HOROVOD_RANK",       "5"     },
        { "HOROVOD_SIZE",       "8"     },
        { "HOROVOD_LOCAL_RANK", "1"     },
        { "HOROVOD_LOCAL_SIZE", "2"     },
        { "HOROVOD_CROSS_RANK", "3"     },
        { "HOROVOD_CROSS_SIZE", "4"     },
        { "HOROVOD_ELASTIC",    "1"     },
        { "PYTHONUNBUFFERED",   "1"     },
        { "rubbish",            "none"  },
        { "",                   "none"  },
    };
    const char *const *env;

    arena_init(&arena, SIZE_MAX / 2);
    env = worker_env_make(&config, &launch, &arena);
    CHECK(t, env);
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        CHECK_TEXT(t, value_of(env, wanted[i].name), wanted[i].value);
out:
    arena_release(&arena);
}

TEST(an_empty_launch_is_enough)
{
    static const char *const own[] = { NULL };
    const struct worker_env_config config = { "@s", "job", "host", own };
    const struct msg launch = { .type = MSG_LAUNCH, .incarnation = UINT64_MAX };
    const char *const *env;

    arena_init(&arena, SIZE_MAX / 2);
    env = worker_env_make(&config, &launch, &arena);
    CHECK(t, env);
    CHECK_TEXT(t, value_of(env, "HVD_INCARNATION"), "18446744073709551615");
out:
    arena_release(&arena);
}
