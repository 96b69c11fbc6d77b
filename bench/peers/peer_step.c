#include "bench/peers/peer_step.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FLOATS     (1 << 18)
#define FLOATS_MAX (1 << 28)
#define WORK_US    20000
#define MIB_MAX    65536
#define MS_MAX     600000
#define LINE_MAX_  160

NORETURN static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "peer: %s: %s\n", what, why);
    exit(1);
}

static uint64_t setting(const char *name, uint64_t fallback, uint64_t most)
{
    const char *text = getenv(name);
    struct hvd_err err;
    uint64_t value = fallback;

    if (text && text_parse_u64((struct span){ text, strlen(text) }, 0, most, name, &value, &err))
        give_up("the environment", err.text);
    return value;
}

static enum peer_care read_care(void)
{
    const char *text = getenv("PEER_CARE");

    if (!text || !strcmp(text, "commit"))
        return PEER_COMMIT;
    if (!strcmp(text, "check"))
        return PEER_CHECK;
    if (!strcmp(text, "none"))
        return PEER_NONE;
    give_up("PEER_CARE", "is neither commit, check nor none");
}

/* ---- what is written down ---------------------------------------------------------------------
 */

static int open_lines(const char *variable)
{
    const char *path = getenv(variable);
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (path && fd < 0)
        give_up(path, strerror(errno));
    return fd;
}

/* One write, so that lines of several processes stay whole. */
static void append(int fd, const char *line)
{
    if (fd >= 0 && write(fd, line, strlen(line)) != (ssize_t)strlen(line))
        give_up("a file of lines", strerror(errno));
}

void peer_note(struct peer_step *step, const char *what, int64_t value)
{
    const char *host = getenv("HVD_HOST");
    const char *slot = getenv("HVD_SLOT");
    char line[LINE_MAX_];

    (void)snprintf(line, sizeof(line), "%" PRId64 " %d %.64s:%.8s %s %" PRId64 "\n", clock_now_us(),
                   (int)getpid(), host ? host : "-", slot ? slot : "-", what, value);
    append(step->notes, line);
}

void peer_step_note(struct peer_step *step, uint64_t round, int64_t number, int size)
{
    char line[LINE_MAX_];

    (void)snprintf(line, sizeof(line), "%" PRId64 " %" PRIu64 " %" PRId64 " %d\n", clock_now_us(),
                   round, number, size);
    append(step->steps, line);
}

/* ---- a step -----------------------------------------------------------------------------------
 */

static void rest(int64_t us)
{
    struct timespec left = { us / TIME_S, (us % TIME_S) * 1000 };

    while (us && nanosleep(&left, &left) && errno == EINTR)
        continue;
}

/* Processor time, as importing a library takes it: longer where others want the processor too. */
static void burn(uint64_t ms)
{
    struct timespec used;

    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while ((uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000 < ms);
}

void peer_step_open(struct peer_step *step)
{
    *step = (struct peer_step){ .floats = setting("PEER_FLOATS", FLOATS, FLOATS_MAX),
                                .state_bytes = setting("PEER_STATE_MIB", 1, MIB_MAX) << 20,
                                .work_us = (int64_t)setting("PEER_WORK_US", WORK_US, TIME_MIN),
                                .care = read_care(),
                                .steps = open_lines("HVD_CHAOS_STEPS"),
                                .notes = open_lines("PEER_NOTES") };
    peer_note(step, "start", 0);
    burn(setting("PEER_IMPORT_MS", 0, MS_MAX));
    rest((int64_t)setting("PEER_BOOT_MS", 0, MS_MAX) * TIME_MS);
    step->numbers = mem_alloc((step->floats + 1) * sizeof(float));
    if (!step->numbers)
        give_up("the numbers of an allreduce", "out of memory");
}

void peer_step_close(struct peer_step *step)
{
    mem_free(step->numbers);
    if (step->steps >= 0)
        close(step->steps);
    if (step->notes >= 0)
        close(step->notes);
}

void peer_step_fill(struct peer_step *step)
{
    for (size_t i = 0; i < step->floats; i++)
        step->numbers[i] = 1;
}

void peer_step_work(struct peer_step *step, int size)
{
    const float right = (float)size;

    if (step->floats && (step->numbers[0] != right || step->numbers[step->floats - 1] != right))
        give_up("the sum of all ranks", "is wrong");
    rest(step->work_us);
}
