/*
 * log_check.c: reads events.log line by line, and checks each line against the rounds before:
 * numbers only rise, no commit is older than the last, each member comes once, survivors keep their
 * order.
 */
#include "tests/chaos/log_check.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES_MAX ((size_t)64 << 20) /* the most bytes that are read at once */
#define SEATS_MAX 65536

void log_check_init(struct log_check *check, const char *path)
{
    memset(check, 0, sizeof(*check));
    (void)snprintf(check->path, sizeof(check->path), "%s", path);
    buf_init(&check->rest, LINES_MAX);
}

void log_check_release(struct log_check *check)
{
    buf_release(&check->rest);
    VEC_RELEASE(&check->seats);
}

static struct log_slot *seat_named(struct log_check *check, const char *name)
{
    struct log_slot *seat;

    VEC_EACH (seat, &check->seats)
        if (!strcmp(seat->name, name))
            return seat;
    if (VEC_RESERVE(&check->seats, 1, SEATS_MAX))
        return NULL;
    seat = &check->seats.items[check->seats.count++];
    *seat = (struct log_slot){ .rank = 0 };
    (void)snprintf(seat->name, sizeof(seat->name), "%s", name);
    return seat;
}

/* Checks a line "127.0.0.2:1#17 is launched". */
static int note_launch(struct log_check *check, const char *name, uint64_t incarnation,
                       struct hvd_err *err)
{
    struct log_slot *seat = seat_named(check, name);

    if (!seat)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    if (incarnation <= check->launched)
        return err_set(err, HVD_E_MISMATCH,
                       "%s#%" PRIu64 " is launched after #%" PRIu64 ": an incarnation comes twice",
                       name, incarnation, check->launched);
    check->launched = incarnation;
    seat->incarnation = incarnation;
    return 0;
}

/* Checks a line "round 7 (failure): size 4, from commit 6.12 held by 3". A commit that is made at
 * the beginning of a round counts only when the round has trained: until then the job may give up
 * the round and the commit. */
static int note_round(struct log_check *check, uint64_t number, uint64_t commit_round,
                      uint64_t commit_place, struct hvd_err *err)
{
    const uint64_t *floor = check->floor;

    if (number <= check->round)
        return err_set(err, HVD_E_MISMATCH, "round %" PRIu64 " begins after round %" PRIu64, number,
                       check->round);
    if (commit_round < floor[0] || (commit_round == floor[0] && commit_place < floor[1]))
        return err_set(err, HVD_E_MISMATCH,
                       "round %" PRIu64 " begins from commit %" PRIu64 ".%" PRIu64
                       ", round %" PRIu64 " has trained from %" PRIu64 ".%" PRIu64
                       ": work was lost",
                       number, commit_round, commit_place, check->trained, floor[0], floor[1]);
    check->before = check->size ? check->round : 0;
    check->round = number;
    check->size = 0;
    check->recent[number % LOG_CHECK_RECENT] = (struct log_round){ .number = number };
    check->commit[0] = commit_round;
    check->commit[1] = commit_place;
    return 0;
}

/* Checks one member of a round: it comes once, and a survivor keeps its order. */
static int note_member(struct log_check *check, const char *name, uint32_t rank, int64_t *last,
                       struct hvd_err *err)
{
    struct log_slot *seat = seat_named(check, name);

    if (!seat)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    if (seat->round == check->round)
        return err_set(err, HVD_E_MISMATCH,
                       "round %" PRIu64 ": %s is rank %" PRIu32 " and %" PRIu32, check->round, name,
                       seat->rank, rank);
    if (check->before && seat->round == check->before && seat->incarnation &&
        seat->was_in == seat->incarnation) {
        if ((int64_t)seat->rank < *last)
            return err_set(err, HVD_E_MISMATCH,
                           "round %" PRIu64 ": %s, rank %" PRIu32
                           " before, stands behind rank %" PRId64
                           ": those who stay keep their order",
                           check->round, name, seat->rank, *last);
        *last = seat->rank;
    }
    seat->round = check->round;
    seat->was_in = seat->incarnation;
    seat->rank = rank;
    if (!rank)
        check->recent[check->round % LOG_CHECK_RECENT].first = seat->incarnation;
    return 0;
}

/* Checks the part after "by rank" of a line "round 7: by rank 127.0.0.1:0,1 127.0.0.2:0". */
static int note_ranks(struct log_check *check, const char *text, struct hvd_err *err)
{
    uint32_t rank = 0;
    int64_t last = -1;

    while (*text == ' ') {
        size_t word = strcspn(++text, " ");
        const char *colon = memrchr(text, ':', word);
        const char *slot = colon ? colon + 1 : NULL;

        if (!colon)
            return err_set(err, HVD_E_CORRUPT, "%s: no slot in \"%s\"", check->path, text);
        while (slot < text + word) {
            size_t digits = strspn(slot, "0123456789");
            char name[LOG_CHECK_NAME];
            int rc;

            if (!digits)
                return err_set(err, HVD_E_CORRUPT, "%s: no number in \"%s\"", check->path, text);
            (void)snprintf(name, sizeof(name), "%.*s:%.*s", (int)(colon - text), text, (int)digits,
                           slot);
            rc = note_member(check, name, rank++, &last, err);
            if (rc)
                return rc;
            slot += digits + (slot[digits] == ',');
        }
        text += word;
    }
    check->size = rank;
    return 0;
}

static bool is_older(const uint64_t one[2], const uint64_t other[2])
{
    return one[0] < other[0] || (one[0] == other[0] && one[1] < other[1]);
}

/* Notes a complete checkpoint: its commit is never lost. */
static void note_saved(struct log_check *check, const uint64_t commit[2])
{
    if (is_older(check->saved, commit))
        memcpy(check->saved, commit, sizeof(check->saved));
}

void log_check_lost(struct log_check *check, const uint64_t kept[2])
{
    note_saved(check, kept);
    check->may_fall = true;
}

/* Checks a line "no process has a newer commit than checkpoint 3.7: the training goes on from
 * PATH": only when all processes with commits were killed, and with the newest complete checkpoint.
 */
static int note_fall(struct log_check *check, const uint64_t commit[2], struct hvd_err *err)
{
    if (!check->may_fall && !check->fallen)
        return err_set(err, HVD_E_MISMATCH,
                       "the training goes on from checkpoint %" PRIu64 ".%" PRIu64
                       ", and processes with newer commits were left: work was lost",
                       commit[0], commit[1]);
    if (is_older(commit, check->saved))
        return err_set(err, HVD_E_MISMATCH,
                       "the training goes on from checkpoint %" PRIu64 ".%" PRIu64 ", and %" PRIu64
                       ".%" PRIu64 " was complete: work was lost",
                       commit[0], commit[1], check->saved[0], check->saved[1]);
    memcpy(check->floor, commit, sizeof(check->floor));
    check->may_fall = false;
    check->fallen = true;
    return 0;
}

static int note_trains(struct log_check *check, uint64_t number, uint32_t size, struct hvd_err *err)
{
    if (number != check->round)
        return 0;
    if (check->size && size != check->size)
        return err_set(err, HVD_E_MISMATCH, "round %" PRIu64 " of %" PRIu32 ": %" PRIu32 " train",
                       number, check->size, size);
    check->trained = number;
    check->fallen = false;
    check->floor[0] = check->commit[0];
    check->floor[1] = check->commit[1];
    return 0;
}

bool log_check_same_first(const struct log_check *check, uint64_t one, uint64_t other)
{
    const struct log_round *a = &check->recent[one % LOG_CHECK_RECENT];
    const struct log_round *b = &check->recent[other % LOG_CHECK_RECENT];

    return a->number == one && b->number == other && a->first && a->first == b->first;
}

static const char *take_number(const char *text, uint64_t *ret_number)
{
    char *end;

    if (*text < '0' || *text > '9')
        return NULL;
    *ret_number = strtoull(text, &end, 10);
    return end;
}

/* Matches the beginning of the text: % in the pattern is a number (at most four), * is any text up
 * to the byte that follows it. Returns the text behind the match; NULL: no match. */
static const char *behind(const char *text, const char *pattern, uint64_t numbers[4])
{
    for (; text && *pattern; pattern++) {
        if (*pattern == '%')
            text = take_number(text, numbers++);
        else if (*pattern == '*')
            text = strchr(text, pattern[1]);
        else
            text = *text == *pattern ? text + 1 : NULL;
    }
    return text;
}

/* Checks a line "the last 3 rounds ended by failures without a newer commit in between, 2 of them
 * in 127.0.0.2:1; ...": a job with more failures than its limits ends. */
static int note_failures(uint64_t of_job, const char *rest, struct hvd_err *err)
{
    uint64_t of_slot[4] = { 0 };

    rest = strchr(rest, ',');
    if (rest && !behind(rest, ", % of them in ", of_slot))
        of_slot[0] = 0;
    if (of_job <= LOG_CHECK_JOB_FAILURES && of_slot[0] <= LOG_CHECK_SLOT_FAILURES)
        return 0;
    return err_set(err, HVD_E_MISMATCH,
                   "the job goes on after %" PRIu64 " failures without progress, %" PRIu64
                   " of them in one slot",
                   of_job, of_slot[0]);
}

/* Checks a line about a worker: "127.0.0.2:1#17 is launched", and others. */
static int note_worker(struct log_check *check, const char *text, struct hvd_err *err)
{
    size_t length = strcspn(text, "# ");
    uint64_t incarnation[4];
    const char *rest = behind(text + length, "#%", incarnation);
    char name[LOG_CHECK_NAME];

    if (!rest || !length || length >= sizeof(name))
        return 0;
    (void)snprintf(name, sizeof(name), "%.*s", (int)length, text);
    if (!strcmp(rest, " is launched"))
        return note_launch(check, name, incarnation[0], err);
    if (incarnation[0] > check->lived)
        check->lived = incarnation[0];
    return 0;
}

/* A driver ends only when it is killed, or with the exit code for its storage or memory
 * (docs/cli.md). */
#define CODE_STORAGE 4

int log_check_line(struct log_check *check, const char *line, struct hvd_err *err)
{
    static const char *const marks[] = { "error: ", "warning: ", "debug: " };
    const char *text = strchr(line, ' ');
    const char *rest;
    uint64_t is[4];

    if (!text++)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
        if (!strncmp(text, marks[i], strlen(marks[i])))
            text += strlen(marks[i]);
    if (behind(text, "(% lines are missing here)", is)) {
        struct log_slot *seat;

        /* Lines are missing, so the launched workers and the members of the last round are not
         * known any more. */
        check->missing += is[0];
        check->size = 0;
        VEC_EACH (seat, &check->seats)
            seat->incarnation = 0;
        return 0;
    }
    if (behind(text, "round % (*): size %, from commit %.%", is))
        return note_round(check, is[0], is[2], is[3], err);
    if (behind(text, "checkpoint %.% is complete", is)) {
        note_saved(check, is);
        return 0;
    }
    if (behind(text, "no process has a newer commit than checkpoint %.%: the training goes on", is))
        return note_fall(check, is, err);
    rest = behind(text, "round %: by rank", is);
    if (rest && is[0] == check->round)
        return note_ranks(check, rest, err);
    if (behind(text, "round %: all % train", is))
        return note_trains(check, is[0], (uint32_t)is[1], err);
    rest = behind(text, "the last % rounds ended by failures", is);
    if (rest)
        return note_failures(is[0], rest, err);
    if ((behind(text, "the driver (pid %) died of signal %", is) && is[1] != SIGKILL) ||
        (behind(text, "the driver (pid %) ended with code %", is) && is[1] != CODE_STORAGE))
        return err_set(err, HVD_E_MISMATCH, "by itself %.120s", text);
    if (behind(text, "job *: term %, % workers known, round %", is)) {
        /* Reads a line "job j: term 4, 6 workers known, round 50": a new driver, which knows all
         * durable records. The last lines of the previous driver may not be durable: then no agent
         * was told of them, and their numbers may be used again. */
        uint64_t round = is[2];
        struct log_slot *seat;

        if (round < check->trained)
            return err_set(err, HVD_E_MISMATCH,
                           "a driver knows of round %" PRIu64 ", and round %" PRIu64 " has trained",
                           round, check->trained);
        if (round < check->round) {
            check->round = round;
            check->size = 0;
            VEC_EACH (seat, &check->seats)
                seat->round = seat->round > round ? 0 : seat->round;
        } else if (round > check->round) {
            /* The previous driver could not write its last lines, as its disk was broken. */
            check->size = 0;
            VEC_EACH (seat, &check->seats)
                seat->incarnation = 0;
        }
        check->launched = check->lived;
        return 0;
    }
    return note_worker(check, text, err);
}

static int read_more(struct log_check *check, struct hvd_err *err)
{
    int fd = open(check->path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    int rc = 0;

    if (fd < 0)
        return errno == ENOENT ? 0 : err_set(err, HVD_E_IO, "%s: %s", check->path, strerror(errno));
    if (!fstat(fd, &stat) && (size_t)stat.st_size < check->read)
        check->read = 0;
    for (;;) {
        ssize_t got;

        rc = buf_reserve(&check->rest, 65536);
        if (rc)
            break;
        got = pread(fd, check->rest.data + check->rest.length, 65536, (off_t)check->read);
        if (got <= 0)
            break;
        check->rest.length += (size_t)got;
        check->read += (size_t)got;
    }
    close(fd);
    return rc ? err_set(err, rc, "%s: %s", check->path, err_text(rc)) : 0;
}

int log_check_read(struct log_check *check, struct hvd_err *err)
{
    size_t done = 0;
    int rc = read_more(check, err);

    while (!rc && done < check->rest.length) {
        char *line = check->rest.data + done;
        char *end = memchr(line, '\n', check->rest.length - done);

        if (!end)
            break;
        *end = '\0';
        line[strcspn(line, "\t")] = '\0'; /* the facts of the line stand behind a tab */
        rc = log_check_line(check, line, err);
        done = (size_t)(end - check->rest.data) + 1;
    }
    buf_consume(&check->rest, done);
    return rc;
}
