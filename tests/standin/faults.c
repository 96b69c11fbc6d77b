/*
 * faults.c: the faults of the stand-ins: reads from the environment or from a test which call fails
 * and how, and tells each call whether a fault hits it.
 */
#include "tests/standin/standin.h"
#include "tests/standin/stream.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAULTS_MAX 16
#define CALL_MAX   16

struct fault {
    char call[CALL_MAX];
    enum standin_what what;
    int at;   /* number of the call; 0: every call */
    int rank; /* rank, or STANDIN_NO_RANK */
    int count;
    int64_t slow_us;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cleared = PTHREAD_COND_INITIALIZER;
static struct fault faults[FAULTS_MAX];
static size_t fault_count;
static bool environment_read;
static unsigned losses; /* faults device:lost that were cleared */

STANDIN_EXPORT standin_faults_fn standin_faults;

/* ---- reading faults -------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum standin_what what;
} whats[] = {
    {"slow",   STANDIN_SLOW },
    { "late",  STANDIN_LATE },
    { "held",  STANDIN_HELD },
    { "error", STANDIN_ERROR},
    { "die",   STANDIN_DIE  },
    { "hang",  STANDIN_HANG },
    { "fail",  STANDIN_FAIL },
    { "lost",  STANDIN_LOST },
};

/* The names of the calls that ask for faults. A fault with another name would never happen, so it
 * is refused. */
static const struct {
    const char *call;
    const char *whats;
} calls[] = {
    {"init",        "slow error die hang"               },
    { "collective", "slow late held error die hang fail"},
    { "revoke",     "slow error hang"                   },
    { "abort",      "slow hang"                         },
    { "copy",       "slow fail die hang"                },
    { "alloc",      "fail"                              },
    { "pin",        "fail"                              },
    { "event",      "fail"                              },
    { "stream",     "fail"                              },
    { "device",     "lost hang"                         },
};

static bool is_known(const char *call, const char *what)
{
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        if (strcmp(calls[i].call, call) == 0)
            return strstr(calls[i].whats, what) != NULL;
    return false;
}

/* Parses CALL[#N][@RANK]:WHAT[=VALUE]. */
static void parse_one(const char *text, struct fault *fault)
{
    char what[CALL_MAX];
    const char *at = text + strcspn(text, "#@:");
    char *end;

    *fault = (struct fault){ .rank = STANDIN_NO_RANK };
    snprintf(fault->call, sizeof(fault->call), "%.*s", (int)(at - text), text);
    if (*at == '#') {
        fault->at = (int)strtol(at + 1, &end, 10);
        at = end;
    }
    if (*at == '@') {
        fault->rank = (int)strtol(at + 1, &end, 10);
        at = end;
    }
    if (*at == ':') {
        at++;
        snprintf(what, sizeof(what), "%.*s", (int)strcspn(at, "="), at);
        for (size_t i = 0; i < ARRAY_SIZE(whats); i++)
            if (strcmp(whats[i].name, what) == 0)
                fault->what = whats[i].what;
        if (fault->what && !is_known(fault->call, what))
            fault->what = STANDIN_NOTHING;
        at += strcspn(at, "=");
        if (*at == '=') {
            fault->slow_us = strtol(at + 1, &end, 10) * 1000;
            at = end;
        }
    }
    if (!fault->what || *at ||
        (fault->what == STANDIN_SLOW || fault->what == STANDIN_LATE) != (fault->slow_us > 0))
        standin_misuse("no fault that is known here: '%s'", text);
}

/* Adds the faults of a text. The caller holds the lock. */
static void add(const char *text)
{
    char one[64];

    for (; *text; text += strcspn(text, " ")) {
        text += strspn(text, " ");
        if (!*text)
            break;
        if (fault_count == FAULTS_MAX)
            standin_misuse("more than %d faults", FAULTS_MAX);
        snprintf(one, sizeof(one), "%.*s", (int)strcspn(text, " "), text);
        parse_one(one, &faults[fault_count++]);
    }
}

/* Adds the faults of HVD_STANDIN_FAULTS. The caller holds the lock. */
static void read_environment(void)
{
    const char *text = getenv("HVD_STANDIN_FAULTS");

    if (environment_read)
        return;
    environment_read = true;
    if (text)
        add(text);
}

/* true: a fault device:lost is set. The caller holds the lock. */
static bool is_lost(void)
{
    for (size_t i = 0; i < fault_count; i++)
        if (faults[i].what == STANDIN_LOST && faults[i].count >= faults[i].at)
            return true;
    return false;
}

void standin_faults(const char *text)
{
    pthread_mutex_lock(&lock);
    read_environment();
    if (text) {
        add(text);
    } else {
        losses += is_lost();
        fault_count = 0;
        pthread_cond_broadcast(&cleared);
    }
    pthread_mutex_unlock(&lock);
    streams_wake(); /* wakes all waits: the device may be lost now */
}

/* ---- asking for faults ----------------------------------------------------------------------- */

/* true: this fault hits this call. A lost device stays lost. */
static bool is_hit(const struct fault *fault)
{
    return !fault->at || fault->count == fault->at ||
           (fault->what == STANDIN_LOST && fault->count > fault->at);
}

enum standin_what standin_fault(const char *call, int rank, int64_t *ret_slow_us)
{
    enum standin_what what = STANDIN_NOTHING;

    pthread_mutex_lock(&lock);
    read_environment();
    for (size_t i = 0; i < fault_count; i++) {
        struct fault *fault = &faults[i];

        if (strcmp(fault->call, call) != 0 ||
            (fault->rank != STANDIN_NO_RANK && fault->rank != rank))
            continue;
        fault->count++;
        if (what || !is_hit(fault))
            continue;
        what = fault->what;
        if (ret_slow_us)
            *ret_slow_us = fault->slow_us;
    }
    pthread_mutex_unlock(&lock);
    return what;
}

/* true: a fault device:hang is set. The caller holds the lock. */
static bool hangs(void)
{
    for (size_t i = 0; i < fault_count; i++)
        if (faults[i].what == STANDIN_HANG && strcmp(faults[i].call, "device") == 0)
            return true;
    return false;
}

bool standin_holds(void)
{
    bool held = false;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < fault_count; i++)
        held = held || faults[i].what == STANDIN_HELD;
    pthread_mutex_unlock(&lock);
    return held;
}

void standin_stay(void)
{
    standin_count("staying", 1);
    pthread_mutex_lock(&lock);
    while (hangs())
        pthread_cond_wait(&cleared, &lock);
    pthread_mutex_unlock(&lock);
    standin_count("staying", -1);
}

void standin_die(void)
{
    for (;;)
        kill(getpid(), SIGKILL);
}

bool standin_lost(void)
{
    bool lost;

    pthread_mutex_lock(&lock);
    lost = is_lost();
    pthread_mutex_unlock(&lock);
    return lost;
}

unsigned standin_losses(void)
{
    unsigned count;

    pthread_mutex_lock(&lock);
    count = losses + is_lost();
    pthread_mutex_unlock(&lock);
    return count;
}
