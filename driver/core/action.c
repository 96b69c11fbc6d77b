#include "driver/core/action.h"

#include "proto/codec.h"

#include <inttypes.h>
#include <stdio.h>

#define ACTION_MEMORY_MAX                                                  \
    ((size_t)1 << 32) /* a round of LIMIT_WORKERS told to LIMIT_HOSTS fits \
                       */

static const char *const names[] = {
    [ACTION_RECORD] = "record",
    [ACTION_BLACKLIST] = "blacklist",
    [ACTION_SEND] = "send",
    [ACTION_CLOSE] = "close",
    [ACTION_START_AGENT] = "start agent",
    [ACTION_DISCOVER] = "discover",
    [ACTION_REPLY] = "reply",
    [ACTION_EXIT] = "exit",
};

void action_list_init(struct action_list *list)
{
    *list = (struct action_list){ 0 };
    arena_init(&list->memory, ACTION_MEMORY_MAX);
}

void action_list_release(struct action_list *list)
{
    if (!list)
        return;
    VEC_RELEASE(list);
    arena_release(&list->memory);
}

void action_list_clear(struct action_list *list)
{
    list->count = 0;
    list->failed = false;
    arena_release(&list->memory);
}

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
    default:
        snprintf(text, size, "%s peer=%" PRIu32 " ask=%" PRIu64 " code=%d %s%s",
                 names[action->kind], action->peer, action->ask, action->code,
                 action->host ? action->host : "", action->text ? action->text : "");
        break;
    }
    return text;
}

/* What the line leaves out of a record. */
static int write_members(const struct journal_record *record, struct buf *out)
{
    int rc = 0;

    for (size_t i = 0; i < record->members.count && !rc; i++)
        rc = buf_printf(out, " %" PRIu64, record->members.items[i]);
    return rc ? rc : buf_append_text(out, "\n");
}

int action_write(const struct action *action, struct buf *out)
{
    char text[JOURNAL_LINE_MAX + 64];
    size_t before = out->length;
    int rc = buf_printf(out, "%s\n", action_describe(action, text, sizeof(text)));

    if (!rc && action->kind == ACTION_RECORD)
        rc = write_members(action->record, out);
    if (!rc && action->kind == ACTION_BLACKLIST)
        rc = buf_append(out, &action->change->record.until_wall_us,
                        sizeof(action->change->record.until_wall_us));
    if (!rc && action->kind == ACTION_SEND)
        rc = msg_encode(action->msg, out, NULL);
    if (rc && out->length > before) {
        out->length = before;
        out->data[before] = '\0';
    }
    return rc;
}
