/*
 * action.c: describes an action as text and writes it as bytes. Tests and the simulation compare
 * actions by these bytes. An action is what the core wants done (action.h). tell.c fills the list
 * of actions, and driver/io carries out the actions.
 */
#include "driver/core/action.h"

#include "proto/codec.h"
#include "proto/commit.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[] = {
    [ACTION_RECORD] = "record",
    [ACTION_BLACKLIST] = "blacklist",
    [ACTION_SEND] = "send",
    [ACTION_CLOSE] = "close",
    [ACTION_KEY] = "key",
    [ACTION_TOKEN] = "token",
    [ACTION_START_AGENT] = "start agent",
    [ACTION_DISCOVER] = "discover",
    [ACTION_CHECK_OWNER] = "check owner",
    [ACTION_CHECKPOINT] = "checkpoint",
    [ACTION_CHECKPOINT_REJECT] = "checkpoint reject",
    [ACTION_REPLY] = "reply",
    [ACTION_REKEYING] = "rekeying",
    [ACTION_EXIT] = "exit",
};

/* Writes the action as one line of text, "send 3 ROUND ...", and returns `text`. A line that is too
 * long is cut. */
const char *action_describe(const struct action *action, char *text, size_t size)
{
    char line[JOURNAL_LINE_MAX];

    switch (action->kind) {
    case ACTION_RECORD:
        snprintf(text, size, "record %s", journal_describe(action->record, line));
        break;
    case ACTION_BLACKLIST:
        snprintf(text, size, "blacklist %s:%" PRIu32 " failures=%" PRIu32 ": %s",
                 action->change->record.host, action->change->record.slot,
                 action->change->record.failures, action->change->event.reason);
        break;
    case ACTION_SEND:
        snprintf(text, size, "send %" PRIu32 " %s", action->peer,
                 msg_describe(action->msg, line, sizeof(line)));
        break;
    case ACTION_CHECKPOINT:
        snprintf(text, size, "checkpoint %" PRIu64 " of commit %" PRIu64 ".%" PRIu32 ": %zu files",
                 action->checkpoint->number, COMMIT_ROUND_OF(action->checkpoint->commit),
                 COMMIT_PLACE_OF(action->checkpoint->commit), action->checkpoint->file_count);
        break;
    case ACTION_TOKEN: /* without the key, as the line may be logged */
        snprintf(text, size, "token %.8s", action->text);
        break;
    default:
        snprintf(text, size, "%s peer=%" PRIu32 " ask=%" PRIu64 " code=%d %s%s",
                 names[action->kind], action->peer, action->ask, action->code,
                 action->host ? action->host : "", action->text ? action->text : "");
        break;
    }
    return text;
}

/* Appends the action to `out` as bytes: the line of action_describe, then what the line does not
 * show. Two actions are equal if their bytes are equal: so tests compare what two cores do.
 * After a failure `out` is as before. */
int action_write(const struct action *action, struct buf *out)
{
    char text[JOURNAL_LINE_MAX + 64];
    size_t before = out->length;
    int rc = buf_printf(out, "%s\n", action_describe(action, text, sizeof(text)));

    /* The line of a record has only the number of its members, so the members themselves follow. */
    for (size_t i = 0; action->kind == ACTION_RECORD && !rc && i < action->record->members.count;
         i++)
        rc = buf_printf(out, " %" PRIu64, action->record->members.items[i]);
    if (!rc && action->kind == ACTION_RECORD)
        rc = buf_append_text(out, "\n");
    if (!rc && action->kind == ACTION_BLACKLIST)
        rc = buf_append(out, &action->change->record.until_wall_us,
                        sizeof(action->change->record.until_wall_us));
    for (size_t i = 0;
         action->kind == ACTION_CHECKPOINT && !rc && i < action->checkpoint->file_count; i++)
        rc = buf_append(out, action->checkpoint->files[i].sums.at,
                        action->checkpoint->files[i].sums.length);
    if (!rc && action->kind == ACTION_SEND)
        rc = msg_encode(action->msg, out, NULL);
    if (rc && out->length > before) {
        out->length = before;
        out->data[before] = '\0';
    }
    return rc;
}
