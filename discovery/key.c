/*
 * key.c: reads the HOST or HOST:SLOT of an operator's command, such as drain. driver/control calls
 * it. The host name of a result has passed host_name_check. This file does not check that the job
 * has such a host.
 */
#include "discovery/key.h"

#include "base/text.h"
#include "discovery/hosts.h"

#include <string.h>

/* Reads "HOST", "HOST:SLOT", "[IPv6]" or "[IPv6]:SLOT" from an operator's command. Without a slot,
 * ret_key->slot is KEY_WHOLE_HOST. `option` is the name of the verb, for errors. */
int key_parse(const char *option, const char *text, struct key *ret_key, struct hvd_err *err)
{
    bool bracketed = text[0] == '[';
    const char *end = strchr(text, bracketed ? ']' : ':');
    const char *name = text + bracketed; /* `bracketed` is 1: behind the '[' */
    size_t length = end ? (size_t)(end - name) : strlen(name);
    const char *rest = name + length + (bracketed && end); /* what follows the name and its ']' */
    char quoted[TEXT_QUOTE_MAX];
    struct key key = { .slot = KEY_WHOLE_HOST };
    uint64_t slot;
    int rc = 0;

    if (bracketed && !end)
        rc = err_set(err, HVD_E_INVAL, "there is no ']' after '['; write [::1] or [::1]:3");
    else if (!bracketed && end && strchr(end + 1, ':'))
        rc = err_set(err, HVD_E_INVAL, "an IPv6 address needs brackets; write [::1] or [::1]:3");
    else
        rc = host_name_check(name, length, err);
    if (!rc && *rest && *rest != ':')
        rc = err_set(err, HVD_E_INVAL, "only :SLOT may follow a host; write HOST or HOST:SLOT");
    if (!rc && *rest) {
        rc = text_parse_u64((struct span){ rest + 1, strlen(rest + 1) }, 0,
                            LIMIT_SLOTS_PER_HOST - 1, "the slot", &slot, err);
        if (!rc)
            key.slot = (uint32_t)slot;
    }
    if (rc)
        return err_prefix(err, rc, "%s %s", option, text_quote(text, strlen(text), quoted));
    memcpy(key.host, name, length);
    *ret_key = key;
    return 0;
}
