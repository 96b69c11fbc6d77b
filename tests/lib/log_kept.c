/*
 * log_kept.c: the sink that log_kept.h describes. Called by unit tests of what logs warnings, also
 * from threads. Invariant: the mutex protects the text; what has no room is cut off.
 */
#include "tests/lib/log_kept.h"

#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define KEPT_MAX 4096

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char kept[KEPT_MAX];

static int64_t log_kept_no_time(void)
{
    return 0;
}

static void log_kept_take(void *arg, const char *line, size_t length)
{
    size_t used;

    (void)arg;
    pthread_mutex_lock(&mutex);
    used = strlen(kept);
    snprintf(kept + used, sizeof(kept) - used, "%.*s", (int)length, line);
    pthread_mutex_unlock(&mutex);
}

void log_kept_begin(void)
{
    static const struct log_sink sink = { log_kept_take, log_kept_no_time, NULL };

    log_kept_forget();
    log_open(&sink);
}

void log_kept_forget(void)
{
    pthread_mutex_lock(&mutex);
    kept[0] = '\0';
    pthread_mutex_unlock(&mutex);
}

unsigned log_kept_times(const char *text)
{
    unsigned count = 0;

    pthread_mutex_lock(&mutex);
    for (const char *at = kept; (at = strstr(at, text)) != NULL; at++)
        count++;
    pthread_mutex_unlock(&mutex);
    return count;
}

const char *log_kept(void)
{
    return kept;
}
