#include "agent/io/address.h"

#include "base/text.h"

#include <arpa/inet.h>
#include <string.h>

#define IP_TEXT_BYTES 64

static bool is_ip(struct span text)
{
    char copy[IP_TEXT_BYTES];
    struct in6_addr ip; /* the larger of the two */
    int family = AF_INET;

    if (text.length > 2 && text.at[0] == '[' && text.at[text.length - 1] == ']') {
        text = (struct span){ text.at + 1, text.length - 2 };
        family = AF_INET6;
    }
    if (text.length >= sizeof(copy))
        return false;
    memcpy(copy, text.at, text.length);
    copy[text.length] = '\0';
    return inet_pton(family, copy, &ip) == 1;
}

int address_check(const char *text, struct hvd_err *err)
{
    const char *colon = strrchr(text, ':');
    char quoted[TEXT_QUOTE_MAX];
    uint64_t port;

    if (colon && is_ip((struct span){ text, (size_t)(colon - text) }) &&
        !text_parse_u64((struct span){ colon + 1, strlen(colon + 1) }, 1, UINT16_MAX, "the port",
                        &port, NULL))
        return 0;
    return err_set(err, HVD_E_INVAL,
                   "%s: is no numeric address with a port; write 10.0.0.7:4321 or [fd00::7]:4321",
                   text_quote(text, strlen(text), quoted));
}
