#include "tests/chaos/annals.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES_MAX ((size_t)64 << 20) /* read at once */
#define SEATS_MAX 65536

void annals_init(struct annals *annals, const char *path)
{
    memset(annals, 0, sizeof(*annals));
    (void)snprintf(annals->path, sizeof(annals->path), "%s", path);
    buf_init(&annals->rest, LINES_MAX);
}

void annals_release(struct annals *annals)
{
    buf_release(&annals->rest);
    VEC_RELEASE(&annals->seats);
}

static struct annals_seat *seat_named(struct annals *annals, const char *name)
{
    struct annals_seat *seat;

    VEC_EACH (seat, &annals->seats)
        if (!strcmp(seat->name, name))
            return seat;
    if (VEC_RESERVE(&annals->seats, 1, SEATS_MAX))
        return NULL;
    seat = &annals->seats.items[annals->seats.count++];
    *seat = (struct annals_seat){ .rank = 0 };
    (void)snprintf(seat->name, sizeof(seat->name), "%s", name);
    return seat;
}

/* "127.0.0.2:1#17 is launched" */
static int note_launch(struct annals *annals, const char *name, uint64_t incarnation,
                       struct hvd_err *err)
{
    struct annals_seat *seat = seat_named(annals, name);

    if (!seat)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    if (incarnation <= annals->launched)
        return err_set(err, HVD_E_MISMATCH,
                       "%s#%" PRIu64 " is launched after #%" PRIu64 ": an incarnation comes twice",
                       name, incarnation, annals->launched);
    annals->launched = incarnation;
    seat->incarnation = incarnation;
    return 0;
}

/* "round 7 (failure): size 4, from commit 6.12 held by 3". A commit that is made as a round begins
 * is one once that round has trained: until then it may be given up with it. */
static int note_round(struct annals *annals, uint64_t number, uint64_t commit_round,
                      uint64_t commit_place, struct hvd_err *err)
{
    const uint64_t *floor = annals->floor;

    if (number <= annals->round)
        return err_set(err, HVD_E_MISMATCH, "round %" PRIu64 " begins after round %" PRIu64, number,
                       annals->round);
    if (commit_round < floor[0] || (commit_round == floor[0] && commit_place < floor[1]))
        return err_set(err, HVD_E_MISMATCH,
                       "round %" PRIu64 " begins from commit %" PRIu64 ".%" PRIu64
                       ", round %" PRIu64 " has trained from %" PRIu64 ".%" PRIu64
                       ": work was lost",
                       number, commit_round, commit_place, annals->trained, floor[0], floor[1]);
    annals->before = annals->size ? annals->round : 0;
    annals->round = number;
    annals->size = 0;
    annals->recent[number % ANNALS_RECENT] = (struct annals_round){ .number = number };
    annals->commit[0] = commit_round;
    annals->commit[1] = commit_place;
    return 0;
}

static int note_member(struct annals *annals, const char *name, uint32_t rank, int64_t *last,
                       struct hvd_err *err)
{
    struct annals_seat *seat = seat_named(annals, name);

    if (!seat)
        return err_set(err, HVD_E_NOMEM, "out of memory");
    if (seat->round == annals->round)
        return err_set(err, HVD_E_MISMATCH,
                       "round %" PRIu64 ": %s is rank %" PRIu32 " and %" PRIu32, annals->round,
                       name, seat->rank, rank);
    if (annals->before && seat->round == annals->before && seat->incarnation &&
        seat->was_in == seat->incarnation) {
        if ((int64_t)seat->rank < *last)
            return err_set(err, HVD_E_MISMATCH,
                           "round %" PRIu64 ": %s, rank %" PRIu32
                           " before, stands behind rank %" PRId64
                           ": those who stay keep their order",
                           annals->round, name, seat->rank, *last);
        *last = seat->rank;
    }
    seat->round = annals->round;
    seat->was_in = seat->incarnation;
    seat->rank = rank;
    if (!rank)
        annals->recent[annals->round % ANNALS_RECENT].first = seat->incarnation;
    return 0;
}

/* "round 7: by rank 127.0.0.1:0,1 127.0.0.2:0", the part after "by rank" */
static int note_ranks(struct annals *annals, const char *text, struct hvd_err *err)
{
    uint32_t rank = 0;
    int64_t last = -1;

    while (*text == ' ') {
        size_t word = strcspn(++text, " ");
        const char *colon = memrchr(text, ':', word);
        const char *slot = colon ? colon + 1 : NULL;

        if (!colon)
            return err_set(err, HVD_E_CORRUPT, "%s: no slot in \"%s\"", annals->path, text);
        while (slot < text + word) {
            size_t digits = strspn(slot, "0123456789");
            char name[ANNALS_NAME];
            int rc;

            if (!digits)
                return err_set(err, HVD_E_CORRUPT, "%s: no number in \"%s\"", annals->path, text);
            (void)snprintf(name, sizeof(name), "%.*s:%.*s", (int)(colon - text), text, (int)digits,
                           slot);
            rc = note_member(annals, name, rank++, &last, err);
            if (rc)
                return rc;
            slot += digits + (slot[digits] == ',');
        }
        text += word;
    }
    annals->size = rank;
    return 0;
}

/* "job j: term 4, 6 workers known, round 50": another driver, which knows what was written down.
 * What its predecessor has said last may not be: then nobody was told of it, and its numbers are
 * free. */
static int note_driver(struct annals *annals, uint64_t round, struct hvd_err *err)
{
    struct annals_seat *seat;

    if (round < annals->trained)
        return err_set(err, HVD_E_MISMATCH,
                       "a driver knows of round %" PRIu64 ", and round %" PRIu64 " has trained",
                       round, annals->trained);
    if (round < annals->round) {
        annals->round = round;
        annals->size = 0;
        VEC_EACH (seat, &annals->seats)
            seat->round = seat->round > round ? 0 : seat->round;
    }
    annals->launched = annals->lived;
    return 0;
}

static int note_trains(struct annals *annals, uint64_t number, uint32_t size, struct hvd_err *err)
{
    if (number != annals->round)
        return 0;
    if (annals->size && size != annals->size)
        return err_set(err, HVD_E_MISMATCH, "round %" PRIu64 " of %" PRIu32 ": %" PRIu32 " train",
                       number, annals->size, size);
    annals->trained = number;
    annals->floor[0] = annals->commit[0];
    annals->floor[1] = annals->commit[1];
    return 0;
}

/* Who was launched is not known any more, nor who was in the last round. */
static void note_missing(struct annals *annals, uint64_t lines)
{
    struct annals_seat *seat;

    annals->missing += lines;
    annals->size = 0;
    VEC_EACH (seat, &annals->seats)
        seat->incarnation = 0;
}

bool annals_same_first(const struct annals *annals, uint64_t one, uint64_t other)
{
    const struct annals_round *a = &annals->recent[one % ANNALS_RECENT];
    const struct annals_round *b = &annals->recent[other % ANNALS_RECENT];

    return a->number == one && b->number == other && a->first && a->first == b->first;
}

/* Each goes on in the line behind what it has found; false: something else stands there. */
static bool take(const char **line, const char *words)
{
    size_t length = strlen(words);

    if (strncmp(*line, words, length) != 0)
        return false;
    *line += length;
    return true;
}

static bool take_number(const char **line, uint64_t *ret_number)
{
    char *end;

    if (**line < '0' || **line > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(*line, &end, 10);
    *line = end;
    return errno == 0;
}

static bool take_past(const char **line, const char *words)
{
    const char *found = strstr(*line, words);

    if (found)
        *line = found + strlen(words);
    return found != NULL;
}

/* "127.0.0.2:1#17" */
static bool take_worker(const char **line, char name[ANNALS_NAME], uint64_t *ret_incarnation)
{
    size_t length = strcspn(*line, "# ");
    const char *number = *line + length;

    if (length == 0 || length >= ANNALS_NAME || !take(&number, "#") ||
        !take_number(&number, ret_incarnation))
        return false;
    memcpy(name, *line, length);
    name[length] = '\0';
    *line = number;
    return true;
}

/* Behind "round ". */
static int about_round(struct annals *annals, const char *text, struct hvd_err *err)
{
    uint64_t number, commit_round, commit_place, size;

    if (!take_number(&text, &number))
        return 0;
    if (take(&text, ": by rank"))
        return number == annals->round ? note_ranks(annals, text, err) : 0;
    if (take(&text, ": all ") && take_number(&text, &size) && take(&text, " train"))
        return note_trains(annals, number, (uint32_t)size, err);
    if (take(&text, " (") && take_past(&text, "): size ") && take_number(&text, &size) &&
        take(&text, ", from commit ") && take_number(&text, &commit_round) && take(&text, ".") &&
        take_number(&text, &commit_place))
        return note_round(annals, number, commit_round, commit_place, err);
    return 0;
}

static int about_worker(struct annals *annals, const char *text, struct hvd_err *err)
{
    char name[ANNALS_NAME];
    uint64_t incarnation;

    if (!take_worker(&text, name, &incarnation))
        return 0;
    if (!strcmp(text, " is launched"))
        return note_launch(annals, name, incarnation, err);
    if (incarnation > annals->lived)
        annals->lived = incarnation;
    return 0;
}

int annals_line(struct annals *annals, const char *line, struct hvd_err *err)
{
    const char *text = strchr(line, ' ');
    uint64_t number;

    if (!text++)
        return 0;
    if (take(&text, "(")) {
        if (take_number(&text, &number) && take(&text, " lines are missing here)"))
            note_missing(annals, number);
        return 0;
    }
    if (take(&text, "round "))
        return about_round(annals, text, err);
    if (take(&text, "job ") && take_past(&text, " workers known, round ") &&
        take_number(&text, &number))
        return note_driver(annals, number, err);
    return about_worker(annals, text, err);
}

static int read_more(struct annals *annals, struct hvd_err *err)
{
    int fd = open(annals->path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    int rc = 0;

    if (fd < 0)
        return errno == ENOENT ? 0
                               : err_set(err, HVD_E_IO, "%s: %s", annals->path, strerror(errno));
    if (!fstat(fd, &stat) && (size_t)stat.st_size < annals->read)
        annals->read = 0;
    for (;;) {
        ssize_t got;

        rc = buf_reserve(&annals->rest, 65536);
        if (rc)
            break;
        got = pread(fd, annals->rest.data + annals->rest.length, 65536, (off_t)annals->read);
        if (got <= 0)
            break;
        annals->rest.length += (size_t)got;
        annals->read += (size_t)got;
    }
    close(fd);
    return rc ? err_set(err, rc, "%s: %s", annals->path, err_text(rc)) : 0;
}

int annals_read(struct annals *annals, struct hvd_err *err)
{
    size_t done = 0;
    int rc = read_more(annals, err);

    while (!rc && done < annals->rest.length) {
        char *line = annals->rest.data + done;
        char *end = memchr(line, '\n', annals->rest.length - done);

        if (!end)
            break;
        *end = '\0';
        rc = annals_line(annals, line, err);
        done = (size_t)(end - annals->rest.data) + 1;
    }
    buf_consume(&annals->rest, done);
    return rc;
}
