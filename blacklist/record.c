/*
 * record.c: checks of records and of history lines, and their texts. blacklist.c calls the checks
 * for each record that it loads, and driver/journal for each row that it reads or writes. A record
 * that passes the check is safe to use, even if an operator has edited it.
 */
#include "blacklist/record.h"

#include <stdio.h>
#include <string.h>

#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:%"

/* Checks a host name and a slot, which together name an entry. `slot` BLACKLIST_WHOLE_HOST: the
 * entry of the host itself. */
int blacklist_key_check(const char *host, uint32_t slot, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    size_t length = strnlen(host, LIMIT_HOST_NAME_BYTES + 1);

    if (length == 0)
        return err_set(err, HVD_E_INVAL, "the host name is empty");
    if (length > LIMIT_HOST_NAME_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "%s: the host name is too long; a host name has at most %d characters",
                       text_quote(host, length, quoted), LIMIT_HOST_NAME_BYTES);
    if (strspn(host, HOST_CHARACTERS) != length)
        return err_set(err, HVD_E_INVAL, "%s: a host name has only letters, digits and . _ - : %%",
                       text_quote(host, length, quoted));
    if (slot >= LIMIT_SLOTS_PER_HOST && slot != BLACKLIST_WHOLE_HOST)
        return err_set(err, HVD_E_LIMIT, "host %s: slot %u: a host has at most %d slots", host,
                       slot, LIMIT_SLOTS_PER_HOST);
    return 0;
}

/* Checks the host and the slot of a record: HVD_E_CORRUPT if they are not valid. The array `host`
 * may hold any bytes, even without a NUL at its end. */
static int record_check_key(const char host[LIMIT_HOST_NAME_BYTES + 1], uint32_t slot,
                            struct hvd_err *err)
{
    if (blacklist_key_check(host, slot, err))
        return err_prefix(err, HVD_E_CORRUPT, "a record of the blacklist is damaged");
    return 0;
}

/* Sets the error HVD_E_CORRUPT for the record of this host or slot; `what` says which rule it
 * breaks. */
static int record_damaged(const char *host, uint32_t slot, const char *what, struct hvd_err *err)
{
    char key[BLACKLIST_KEY_TEXT_MAX];

    return err_set(err, HVD_E_CORRUPT, "the blacklist's record of %s is damaged: %s",
                   blacklist_key_format(host, slot, key), what);
}

/* True: the reason ends within its array, and is one line of clean UTF-8. */
static bool reason_is_valid(const char reason[LIMIT_REASON_BYTES + 1])
{
    size_t length = strnlen(reason, LIMIT_REASON_BYTES + 1);

    return length <= LIMIT_REASON_BYTES && text_is_clean(reason, length) &&
           !memchr(reason, '\n', length) && !memchr(reason, '\t', length);
}

/* Checks a record that was read from the job's file: HVD_E_CORRUPT if no driver can have written
 * it. */
int blacklist_record_check(const struct blacklist_record *record, struct hvd_err *err)
{
    int rc = record_check_key(record->host, record->slot, err);
    const char *what = NULL;

    if (rc)
        return rc;
    /* numbers_are_valid also bounds the counts, so that the lists are safe to walk. */
    if (record->since_wall_us < 0)
        what = "the time is negative";
    else if (record->until_wall_us < record->since_wall_us)
        what = "the cooldown ends before it begins";
    else if (!numbers_are_valid(&record->restarts))
        what = "the times of restarts are not in rising order";
    else if (!numbers_are_valid(&record->incarnations))
        what = "the incarnations are not in rising order";
    else if (!reason_is_valid(record->reason))
        what = "the reason is not clean text";
    return what ? record_damaged(record->host, record->slot, what, err) : 0;
}

/* Checks a line of the history in the same way as blacklist_record_check checks a record. */
int blacklist_event_check(const struct blacklist_event *event, struct hvd_err *err)
{
    int rc = record_check_key(event->host, event->slot, err);
    const char *what = NULL;

    if (rc)
        return rc;
    if (event->wall_us < 0)
        what = "the time is negative";
    else if (event->incarnation > INT64_MAX)
        what = "the incarnation is too high";
    else if (!reason_is_valid(event->reason))
        what = "the reason is not clean text";
    return what ? record_damaged(event->host, event->slot, what, err) : 0;
}

/* Sets a reason to the text, as one line of clean UTF-8 of at most LIMIT_REASON_BYTES. */
void blacklist_reason_set(char reason[LIMIT_REASON_BYTES + 1], const char *text)
{
    char quoted[TEXT_QUOTE_MAX];
    size_t length = strlen(text);

    if (!text_is_clean(text, length)) {
        text = text_quote(text, length, quoted);
        length = strlen(text);
    }
    /* A cut must not split a character: the cut moves back over the continuation bytes of UTF-8. */
    if (length > LIMIT_REASON_BYTES) {
        length = LIMIT_REASON_BYTES;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    }
    for (size_t i = 0; i < length; i++)
        reason[i] = text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
    reason[length] = '\0';
}

/* Writes "host" or "host:3", with an IPv6 address in brackets, "[::1]:3". Returns `text`. */
const char *blacklist_key_format(const char *host, uint32_t slot, char text[BLACKLIST_KEY_TEXT_MAX])
{
    bool is_ipv6 = strchr(host, ':') != NULL;
    int length = snprintf(text, BLACKLIST_KEY_TEXT_MAX, "%s%s%s", is_ipv6 ? "[" : "", host,
                          is_ipv6 ? "]" : "");

    if (slot != BLACKLIST_WHOLE_HOST)
        snprintf(text + length, BLACKLIST_KEY_TEXT_MAX - (size_t)length, ":%u", slot);
    return text;
}
