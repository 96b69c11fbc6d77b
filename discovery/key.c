#include "discovery/key.h"

#include "base/text.h"
#include "discovery/hosts.h"

#include <string.h>

/* Divides the text into the name and what follows it; NULL, or what is wrong. */
static const char *cut_name(struct span text, struct span *ret_name, struct span *ret_rest)
{
    bool bracketed = text.length && text.at[0] == '[';
    const char *end = text.length ? memchr(text.at, bracketed ? ']' : ':', text.length) : NULL;
    size_t length = end ? (size_t)(end - text.at) : text.length;

    if (bracketed && !end)
        return "no ']' after '['; write [::1] or [::1]:3";
    if (!bracketed && end && memchr(end + 1, ':', text.length - length - 1))
        return "an IPv6 address needs brackets: [::1] or [::1]:3";
    *ret_name = (struct span){ text.at + bracketed, length - bracketed };
    *ret_rest = (struct span){ text.at + length + bracketed, text.length - length - bracketed };
    return NULL;
}

static int parse(struct span text, struct key *key, struct hvd_err *err)
{
    struct span name;
    struct span rest;
    const char *why = cut_name(text, &name, &rest);
    uint64_t slot;
    int rc;

    if (why)
        return err_set(err, HVD_E_INVAL, "%s", why);
    rc = host_name_check(name.at, name.length, err);
    if (rc)
        return rc;
    memcpy(key->host, name.at, name.length);
    key->host[name.length] = '\0';
    key->slot = KEY_WHOLE_HOST;
    if (rest.length == 0)
        return 0;
    if (rest.at[0] != ':')
        return err_set(err, HVD_E_INVAL, "only :SLOT may follow a host");
    rest = (struct span){ rest.at + 1, rest.length - 1 };
    rc = text_parse_u64(rest, 0, LIMIT_SLOTS_PER_HOST - 1, "the slot", &slot, err);
    if (!rc)
        key->slot = (uint32_t)slot;
    return rc;
}

int key_parse(const char *option, const char *text, struct key *ret_key, struct hvd_err *err)
{
    char quoted[TEXT_QUOTE_MAX];
    struct key key;
    int rc = parse((struct span){ text, strlen(text) }, &key, err);

    if (rc)
        return err_prefix(err, rc, "%s %s", option, text_quote(text, strlen(text), quoted));
    *ret_key = key;
    return 0;
}
