/*
 * epoch_schedule.c: parses the text of a scenario: which rank fails at which epoch and batch, and
 * after which epochs a change must come.
 */
#include "tests/workers/epoch_schedule.h"

#include "base/base.h"
#include "base/text.h"

#include <string.h>

static const char *const hows[] = { "raise", "kill", "raise-once", "kill-once" };

/* One entry like "1.0:kill:0,2" (EPOCH.BATCH:HOW:RANKS); a rank may name its host: 1@localhost. */
struct failure {
    uint64_t epoch, batch;
    enum epoch_schedule_how how;
    struct span ranks;
};

static struct span whole(const char *text)
{
    return (struct span){ text, text ? strlen(text) : 0 };
}

static int number(struct span text, const char *what, uint64_t *ret_value, struct hvd_err *err)
{
    return text_parse_u64(text, 0, INT32_MAX, what, ret_value, err);
}

static int read_how(struct span text, enum epoch_schedule_how *ret_how, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(hows); i++)
        if (span_is(text, hows[i])) {
            *ret_how = (enum epoch_schedule_how)i;
            return 0;
        }
    return err_set(err, HVD_E_INVAL, "%s is no way to fail; write raise, kill or one of them -once",
                   text_quote(text.at, text.length, quoted));
}

static int read_failure(struct span word, struct failure *failure, struct hvd_err *err)
{
    struct span when = { "", 0 }, how = { "", 0 }, epoch = { "", 0 };
    int rc;

    if (!span_next(&word, ':', &when) || !span_next(&word, ':', &how) ||
        !span_next(&when, '.', &epoch) || !word.at)
        return err_set(err, HVD_E_INVAL, "a failure is written EPOCH.BATCH:HOW:RANK,RANK");
    failure->ranks = word;
    rc = number(epoch, "epoch", &failure->epoch, err);
    if (!rc)
        rc = number(when, "batch", &failure->batch, err);
    return rc ? rc : read_how(how, &failure->how, err);
}

/* Cuts "@HOST" off the text and returns the host; empty: no host was given. */
static struct span cut_rank(struct span *who)
{
    struct span rank = { "", 0 };

    span_next(who, '@', &rank);
    return rank;
}

static bool is_meant(struct span named, const struct epoch_schedule_who *who)
{
    uint64_t rank = 0;

    if (number(cut_rank(&named), "rank", &rank, NULL) || rank != who->start_rank)
        return false;
    return !named.at || span_is(named, who->host);
}

int epoch_schedule_check(const char *exits, const char *changes, struct hvd_err *err)
{
    struct span rest = whole(exits), word, rank;
    struct failure failure = { 0 };
    uint64_t value = 0;
    int rc = 0;

    while (!rc && span_next(&rest, ' ', &word)) {
        rc = read_failure(word, &failure, err);
        while (!rc && span_next(&failure.ranks, ',', &rank))
            rc = number(cut_rank(&rank), "rank", &value, err);
    }
    rest = whole(changes);
    while (!rc && span_next(&rest, ' ', &word))
        rc = number(word, "epoch", &value, err);
    return rc;
}

bool epoch_schedule_exits(const char *exits, uint64_t epoch, uint64_t batch,
                          const struct epoch_schedule_who *who, bool *ret_me,
                          enum epoch_schedule_how *ret_how)
{
    struct span rest = whole(exits), word, named;
    struct failure failure = { 0 };
    bool anybody = false;

    *ret_me = false;
    while (span_next(&rest, ' ', &word)) {
        if (read_failure(word, &failure, NULL) || failure.epoch != epoch || failure.batch != batch)
            continue;
        anybody = true;
        while (span_next(&failure.ranks, ',', &named))
            if (is_meant(named, who)) {
                *ret_me = true;
                *ret_how = failure.how;
            }
    }
    return anybody;
}

bool epoch_schedule_changes(const char *changes, uint64_t epoch)
{
    struct span rest = whole(changes), word;
    uint64_t value = 0;

    while (span_next(&rest, ' ', &word))
        if (!number(word, "epoch", &value, NULL) && value == epoch)
            return true;
    return false;
}
