/*
 * record_check.c: the rules that a record of the journal has to keep. Each implementation of a
 * store calls record_wrong before it writes a record and after it has read one: so a record that
 * can be written can be read back, and a record that breaks a rule is reported as damage.
 */
#include "driver/store/record_check.h"

#include "discovery/hosts.h"

#include <string.h>

/* Returns the reason why the next driver could not read these ids back; NULL: it could.
 * Incarnations begin with 1. */
static const char *ids_wrong(const struct msg_ids *ids)
{
    if (ids->count > LIMIT_WORKERS)
        return "more ids than LIMIT_WORKERS";
    for (size_t i = 0; i < ids->count; i++)
        if (!ids->items[i] || ids->items[i] > LIMIT_INCARNATIONS)
            return "an id that no worker can have";
    return NULL;
}

/* Returns the reason why a journal cannot hold this record; NULL: it can. */
const char *record_wrong(const struct journal_record *record)
{
    const struct msg_texts *addresses = &record->addresses;
    const char *wrong;

    if (record->kind < JOURNAL_TERM || record->kind > JOURNAL_REPORTED)
        return "this version of hvd-elastic does not know this kind of record";
    if (record->incarnation > LIMIT_INCARNATIONS)
        return "an incarnation that no worker can have";
    if (record->cause >= CAUSE_COUNT || record->ended >= ENDED_COUNT || record->wall_us < 0)
        return "a number is out of range";
    if (*record->host && host_name_check(record->host, strlen(record->host), NULL))
        return "a host name that no host can have";
    if (strlen(record->text) > LIMIT_REASON_BYTES)
        return "a text is longer than LIMIT_REASON_BYTES";
    if (addresses->count > LIMIT_ADDRESSES)
        return "more addresses than LIMIT_ADDRESSES";
    for (size_t i = 0; i < addresses->count; i++)
        if (strlen(addresses->items[i]) > LIMIT_TEXT_BYTES)
            return "an address is longer than LIMIT_TEXT_BYTES";
    wrong = ids_wrong(&record->members);
    return wrong ? wrong : ids_wrong(&record->holders);
}
