#include "blacklist/record.h"

#include "base/time.h"

#include <stdio.h>
#include <string.h>

#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:%"

int blacklist_key_check(const char *host, uint32_t slot, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    size_t length = strnlen(host, LIMIT_HOST_NAME_BYTES + 1);

    if (length == 0)
        return err_set(err, HVD_E_INVAL, "the host name is empty");
    if (length > LIMIT_HOST_NAME_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: a host name has at most %d characters",
                       text_quote(host, length, quoted), LIMIT_HOST_NAME_BYTES);
    if (strspn(host, HOST_CHARACTERS) != length)
        return err_set(err, HVD_E_INVAL, "%s: a host name has only letters, digits and . _ - : %%",
                       text_quote(host, length, quoted));
    if (slot >= LIMIT_SLOTS_PER_HOST && slot != BLACKLIST_WHOLE_HOST)
        return err_set(err, HVD_E_LIMIT, "host %s: slot %u: a host has at most %d slots", host,
                       slot, LIMIT_SLOTS_PER_HOST);
    return 0;
}

/* The name may be anything, even without an end. */
static int check_stored_key(const char host[LIMIT_HOST_NAME_BYTES + 1], uint32_t slot,
                            struct hvd_err *err)
{
    if (blacklist_key_check(host, slot, err))
        return err_prefix(err, HVD_E_CORRUPT, "a damaged record");
    return 0;
}

static int damaged(const char *host, uint32_t slot, const char *what, struct hvd_err *err)
{
    char key[BLACKLIST_KEY_TEXT_MAX];

    return err_set(err, HVD_E_CORRUPT, "a damaged record of %s: %s",
                   blacklist_key_format(host, slot, key), what);
}

static bool reason_is_valid(const char reason[LIMIT_REASON_BYTES + 1])
{
    size_t length = strnlen(reason, LIMIT_REASON_BYTES + 1);

    return length <= LIMIT_REASON_BYTES && text_is_clean(reason, length) &&
           !memchr(reason, '\n', length) && !memchr(reason, '\t', length);
}

int blacklist_record_check(const struct blacklist_record *record, struct hvd_err *err)
{
    int rc = check_stored_key(record->host, record->slot, err);
    const char *what = NULL;

    if (rc)
        return rc;
    if (record->since_wall_us < 0)
        what = "its time is negative";
    else if (record->until_wall_us < record->since_wall_us)
        what = "it ends before it begins";
    else if (!numbers_are_valid(&record->restarts))
        what = "its restarts do not rise";
    else if (!numbers_are_valid(&record->incarnations))
        what = "its incarnations do not rise";
    else if (!reason_is_valid(record->reason))
        what = "its reason is not clean text";
    return what ? damaged(record->host, record->slot, what, err) : 0;
}

int blacklist_event_check(const struct blacklist_event *event, struct hvd_err *err)
{
    int rc = check_stored_key(event->host, event->slot, err);
    const char *what = NULL;

    if (rc)
        return rc;
    if (event->wall_us < 0)
        what = "its time is negative";
    else if (event->incarnation > INT64_MAX)
        what = "its incarnation is too high";
    else if (!reason_is_valid(event->reason))
        what = "its reason is not clean text";
    return what ? damaged(event->host, event->slot, what, err) : 0;
}

void blacklist_reason_set(char reason[LIMIT_REASON_BYTES + 1], const char *text)
{
    char quoted[TEXT_QUOTE_MAX];
    size_t length = strlen(text);

    if (!text_is_clean(text, length)) {
        text = text_quote(text, length, quoted);
        length = strlen(text);
    }
    if (length > LIMIT_REASON_BYTES) {
        length = LIMIT_REASON_BYTES;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
    }
    for (size_t i = 0; i < length; i++)
        reason[i] = text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
    reason[length] = '\0';
}

const char *blacklist_key_format(const char *host, uint32_t slot, char text[BLACKLIST_KEY_TEXT_MAX])
{
    bool is_ipv6 = strchr(host, ':') != NULL;
    int length = snprintf(text, BLACKLIST_KEY_TEXT_MAX, "%s%s%s", is_ipv6 ? "[" : "", host,
                          is_ipv6 ? "]" : "");

    if (slot != BLACKLIST_WHOLE_HOST)
        snprintf(text + length, BLACKLIST_KEY_TEXT_MAX - (size_t)length, ":%u", slot);
    return text;
}
