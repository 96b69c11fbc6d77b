/*
 * steps.c: reads the lines of steps that rank 0 of a training appends, under any launcher, and
 * computes the longest pause, the usual time of a step, and the repeated steps.
 */
#include "tests/chaos/steps.h"

#include "base/mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define STEPS_MAX  (16 * 1024 * 1024)
#define READ_BYTES 4096

int steps_open(struct steps *steps, const char *path, struct hvd_err *err)
{
    memset(steps, 0, sizeof(*steps));
    steps->fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
    if (steps->fd < 0)
        return err_set(err, HVD_E_IO, "%s: cannot open it: %s; check the folder", path,
                       strerrordesc_np(errno));
    return 0;
}

void steps_close(struct steps *steps)
{
    if (!steps)
        return;
    if (steps->fd >= 0)
        close(steps->fd);
    mem_free(steps->list);
    memset(steps, 0, sizeof(*steps));
    steps->fd = -1;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Reads four numbers that are separated by blanks. */
static bool read_numbers(struct span line, struct step *ret_step)
{
    static const uint64_t most[] = { INT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX };
    uint64_t numbers[ARRAY_SIZE(most)];
    struct span word;

    for (size_t i = 0; i < ARRAY_SIZE(most); i++)
        if (!span_next(&line, ' ', &word) ||
            text_parse_u64(word, 0, most[i], "a number", &numbers[i], NULL))
            return false;
    if (line.at)
        return false;
    *ret_step = (struct step){ .at_us = (int64_t)numbers[0],
                               .round = numbers[1],
                               .number = numbers[2],
                               .size = (uint32_t)numbers[3] };
    return true;
}

static int take_line(struct steps *steps, struct span line, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    struct step step;
    int rc;
    size_t place;

    if (!read_numbers(line, &step))
        return err_set(err, HVD_E_CORRUPT,
                       "line %zu of the steps: %s: it is to be TIME_US ROUND STEP SIZE, in one "
                       "write; mend the trainer",
                       steps->count + 1, text_quote(line.at, line.length, quoted));
    rc = vec_reserve(&steps->list, &steps->room, steps->count, 1, STEPS_MAX, sizeof(*steps->list));
    if (rc)
        return err_set(err, rc, "line %zu of the steps: no room for more", steps->count + 1);
    /* Inserts the step by its time. A rank 0 that leaves, or was frozen, may write its last line
     * after the first line of the next round. */
    place = steps->count++;
    for (; place > 0 && steps->list[place - 1].at_us > step.at_us; place--)
        steps->list[place] = steps->list[place - 1];
    steps->list[place] = step;
    return 0;
}

/* Refuses a line that is too long, whether it came at once or in parts. */
static int check_length(const struct steps *steps, struct span part, struct hvd_err *err)
{
    if (part.length > sizeof(steps->rest) - steps->rest_length)
        return err_set(err, HVD_E_CORRUPT,
                       "line %zu of the steps is longer than %zu bytes; mend the trainer",
                       steps->count + 1, sizeof(steps->rest));
    return 0;
}

int steps_take(struct steps *steps, const char *bytes, size_t length, struct hvd_err *err)
{
    struct span rest = { bytes, length };
    struct span part;
    int rc = 0;

    while (!rc && span_next(&rest, '\n', &part)) {
        bool whole = rest.at != NULL; /* true: the line has its newline */

        rc = check_length(steps, part, err);
        if (rc)
            return rc;
        if (!whole || steps->rest_length > 0) {
            /* Keeps the end of the text, which has no newline yet, for the next read. */
            if (part.length > 0)
                memcpy(steps->rest + steps->rest_length, part.at, part.length);
            steps->rest_length += part.length;
            part = (struct span){ steps->rest, steps->rest_length };
        }
        if (!whole)
            return 0;
        rc = take_line(steps, part, err);
        steps->rest_length = 0;
    }
    return rc;
}

int steps_read(struct steps *steps, struct hvd_err *err)
{
    char bytes[READ_BYTES];
    ssize_t got;
    int rc;

    for (;;) {
        got = read(steps->fd, bytes, sizeof(bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set(err, HVD_E_IO, "the steps cannot be read: %s; check the disk",
                           strerrordesc_np(errno));
        if (got == 0)
            return 0;
        rc = steps_take(steps, bytes, (size_t)got, err);
        if (rc)
            return rc;
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Waits for the next change of the file, of any kind, or until the deadline. */
static int await_change(int watch, int64_t deadline_us, struct hvd_err *err)
{
    struct pollfd poller = { .fd = watch, .events = POLLIN };
    int64_t left_us = deadline_us - clock_now_us();
    char events[READ_BYTES];
    int ready;

    if (left_us <= 0)
        return err_set(err, HVD_E_TIMEOUT, "no further step was made");
    if (left_us > INT64_C(1000000))
        left_us = INT64_C(1000000); /* poll takes an int of milliseconds */
    ready = poll(&poller, 1, (int)(left_us / 1000) + 1);
    if (ready < 0 && errno != EINTR)
        return err_set(err, HVD_E_IO, "poll: %s", strerrordesc_np(errno));
    if (ready > 0 && read(watch, events, sizeof(events)) < 0 && errno != EAGAIN && errno != EINTR)
        return err_set(err, HVD_E_IO, "inotify: %s", strerrordesc_np(errno));
    return 0;
}

/* Watches the file by its descriptor, so that its path need not be kept. */
static int watch_steps(const struct steps *steps, struct hvd_err *err)
{
    char path[64];
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", steps->fd);
    if (watch >= 0 && inotify_add_watch(watch, path, IN_MODIFY) >= 0)
        return watch;
    err_set(err, HVD_E_IO, "inotify: %s; raise fs.inotify.max_user_instances",
            strerrordesc_np(errno));
    if (watch >= 0)
        close(watch);
    return -1;
}

int steps_await(struct steps *steps, size_t count, int64_t deadline_us, struct hvd_err *err)
{
    int watch = watch_steps(steps, err); /* before the first read, so that no line is missed */
    int rc;

    if (watch < 0)
        return HVD_E_IO;
    rc = steps_read(steps, err);
    while (!rc && steps->count <= count) {
        rc = await_change(watch, deadline_us, err);
        if (!rc)
            rc = steps_read(steps, err);
    }
    close(watch);
    return rc;
}

/* ---- measures ---- */

/* The time from the step before to this step; 0 for a line that came late. */
static int64_t gap_us(const struct steps *steps, size_t index)
{
    int64_t gap = steps->list[index].at_us - steps->list[index - 1].at_us;

    return gap > 0 ? gap : 0;
}

int64_t steps_longest_us(const struct steps *steps, size_t first)
{
    int64_t longest = 0;

    for (size_t i = first + 1; i < steps->count; i++)
        if (gap_us(steps, i) > longest)
            longest = gap_us(steps, i);
    return longest;
}

uint64_t steps_repeated(const struct steps *steps, size_t first)
{
    uint64_t furthest = 0;
    uint64_t repeated = 0;

    for (size_t i = 0; i < steps->count; i++) {
        if (i > 0 && steps->list[i].number <= furthest)
            repeated += i >= first;
        else
            furthest = steps->list[i].number;
    }
    return repeated;
}

static bool one_round(const struct steps *steps, size_t index)
{
    return steps->list[index].round == steps->list[index - 1].round;
}

/* Counts gaps within a round that are not longer than most_us. */
static size_t count_gaps(const struct steps *steps, size_t first, int64_t most_us)
{
    size_t count = 0;

    for (size_t i = first + 1; i < steps->count; i++)
        count += one_round(steps, i) && gap_us(steps, i) <= most_us;
    return count;
}

/* The median gap within a round, found by bisection of the time, so nothing is sorted. */
int64_t steps_usual_us(const struct steps *steps, size_t first)
{
    size_t half = (count_gaps(steps, first, INT64_MAX) + 1) / 2;
    int64_t below = 0;
    int64_t found = steps_longest_us(steps, first);

    if (half == 0 || count_gaps(steps, first, 0) >= half)
        return 0;
    while (found - below > 1) {
        int64_t middle = below + (found - below) / 2;

        if (count_gaps(steps, first, middle) >= half)
            found = middle;
        else
            below = middle;
    }
    return found;
}
