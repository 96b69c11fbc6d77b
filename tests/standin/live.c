/*
 * live.c: counts what is alive in the stand-ins by its name, so that a test can see that nothing
 * is left.
 */
#include "tests/standin/driver.h"
#include "tests/standin/standin.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

STANDIN_EXPORT standin_live_fn standin_live;

static struct {
    const char *what;
    int count;
} live[] = {
    {"memory",         0},
    { "streams",       0},
    { "events",        0},
    { "pinned",        0},
    { "communicators", 0},
    { "ids",           0},
    { "staying",       0},
    { "collectives",   0},
};

void standin_count(const char *what, int difference)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ARRAY_SIZE(live); i++)
        if (strcmp(live[i].what, what) == 0)
            live[i].count += difference;
    pthread_mutex_unlock(&lock);
}

size_t standin_live(const char *what)
{
    size_t found = SIZE_MAX;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ARRAY_SIZE(live); i++)
        if (strcmp(live[i].what, what) == 0)
            found = (size_t)live[i].count;
    pthread_mutex_unlock(&lock);
    if (found == SIZE_MAX)
        standin_misuse("'%s' is not counted", what);
    return found;
}
