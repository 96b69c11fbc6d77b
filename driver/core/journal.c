/*
 * journal.c: the names of journal records, for traces and for errors about a damaged journal.
 * driver/journal stores the records; their numbers never change (journal.h).
 */
#include "driver/core/journal.h"

#include "proto/commit.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[] = {
    [JOURNAL_TERM] = "TERM",         [JOURNAL_LAUNCH] = "LAUNCH",   [JOURNAL_READY] = "READY",
    [JOURNAL_NUMBER] = "NUMBER",     [JOURNAL_ROUND] = "ROUND",     [JOURNAL_ENTERED] = "ENTERED",
    [JOURNAL_FINISHED] = "FINISHED", [JOURNAL_ENDED] = "ENDED",     [JOURNAL_DRAIN] = "DRAIN",
    [JOURNAL_OVER] = "OVER",         [JOURNAL_STUCK] = "STUCK",     [JOURNAL_KEY] = "KEY",
    [JOURNAL_BASE] = "BASE",         [JOURNAL_STORE] = "STORE",     [JOURNAL_TOKEN] = "TOKEN",
    [JOURNAL_NOTICE] = "NOTICE",     [JOURNAL_GOODPUT] = "GOODPUT", [JOURNAL_REPORTED] = "REPORTED",
};

const char *journal_kind_name(enum journal_kind kind)
{
    return (size_t)kind < ARRAY_SIZE(names) && names[kind] ? names[kind] : "?";
}

/* Writes the line of a NOTICE, GOODPUT or REPORTED record for journal_describe. */
static void journal_describe_counts(const struct journal_record *record,
                                    char line[JOURNAL_LINE_MAX])
{
    const char *name = journal_kind_name(record->kind);

    if (record->kind == JOURNAL_NOTICE)
        snprintf(line, JOURNAL_LINE_MAX, "%s host=%s honoured=%d of %d", name, record->host,
                 record->value, record->code);
    else if (record->kind == JOURNAL_REPORTED)
        snprintf(line, JOURNAL_LINE_MAX, "%s name=%s incarnation=%" PRIu64 " bits=%016" PRIx64,
                 name, record->text, record->incarnation, record->check);
    else
        snprintf(line, JOURNAL_LINE_MAX,
                 "%s host=%s use=%" PRIu32 " worker_us=%" PRIu64 " us=%" PRIu64, name, record->host,
                 record->slot, record->check, record->manifest);
}

/* Writes the record as one line of text for traces: the name of its kind, and the fields that this
 * kind uses. Returns `line`. */
const char *journal_describe(const struct journal_record *record, char line[JOURNAL_LINE_MAX])
{
    const char *name = journal_kind_name(record->kind);

    switch (record->kind) {
    case JOURNAL_TERM:
        snprintf(line, JOURNAL_LINE_MAX, "%s term=%" PRIu64, name, record->term);
        break;
    case JOURNAL_LAUNCH:
        snprintf(line, JOURNAL_LINE_MAX, "%s incarnation=%" PRIu64 " host=%s slot=%" PRIu32, name,
                 record->incarnation, record->host, record->slot);
        break;
    case JOURNAL_ROUND:
        snprintf(line, JOURNAL_LINE_MAX,
                 "%s round=%" PRIu64 " cause=%" PRIu32 " previous=%" PRIu64 " commit=%" PRIu64
                 ".%" PRIu32 " check=%" PRIu64 " members=%zu",
                 name, record->round, record->cause, record->previous,
                 COMMIT_ROUND_OF(record->commit), COMMIT_PLACE_OF(record->commit), record->check,
                 record->members.count);
        break;
    case JOURNAL_ENDED:
        snprintf(line, JOURNAL_LINE_MAX, "%s incarnation=%" PRIu64 " ended=%" PRIu32 " value=%d",
                 name, record->incarnation, record->ended, record->value);
        break;
    case JOURNAL_STUCK:
        snprintf(line, JOURNAL_LINE_MAX,
                 "%s host=%s slot=%" PRIu32 " failures=%d job=%d commit=%" PRIu64 ".%" PRIu32, name,
                 record->host, record->slot, record->value, record->code,
                 COMMIT_ROUND_OF(record->commit), COMMIT_PLACE_OF(record->commit));
        break;
    case JOURNAL_KEY:
        snprintf(line, JOURNAL_LINE_MAX, "%s host=%s epoch=%d code=%d", name, record->host,
                 record->value, record->code);
        break;
    case JOURNAL_DRAIN:
        snprintf(line, JOURNAL_LINE_MAX, "%s host=%s slot=%" PRIu32 " until=%" PRId64, name,
                 record->host, record->slot, record->wall_us);
        break;
    case JOURNAL_BASE:
        snprintf(line, JOURNAL_LINE_MAX,
                 "%s incarnation=%" PRIu64 " round=%" PRIu64 " previous=%" PRIu64 " commit=%" PRIu64
                 ".%" PRIu32 " rounds=%" PRIu64 " epoch=%d joined=%d",
                 name, record->incarnation, record->round, record->previous,
                 COMMIT_ROUND_OF(record->commit), COMMIT_PLACE_OF(record->commit), record->check,
                 record->value, record->code);
        break;
    case JOURNAL_STORE:
        snprintf(line, JOURNAL_LINE_MAX,
                 "%s incarnation=%" PRIu64 " call=%" PRIu64 " round=%" PRIu64 " code=%d key=%s",
                 name, record->incarnation, record->check, record->round, record->code,
                 record->text);
        break;
    case JOURNAL_TOKEN: /* without the key, as the line may be logged */
        snprintf(line, JOURNAL_LINE_MAX, "%s id=%.8s host=%s uses=%d code=%d", name, record->text,
                 record->host, record->value, record->code);
        break;
    case JOURNAL_NOTICE:
    case JOURNAL_REPORTED:
    case JOURNAL_GOODPUT: journal_describe_counts(record, line); break;
    case JOURNAL_OVER:
        snprintf(line, JOURNAL_LINE_MAX, "%s code=%d: %s", name, record->code, record->text);
        break;
    default:
        snprintf(line, JOURNAL_LINE_MAX, "%s incarnation=%" PRIu64 " round=%" PRIu64, name,
                 record->incarnation, record->round);
        break;
    }
    return line;
}
