/*
 * addresses.c: finds an address by its kind, and the host in an address.
 *
 * Called by worker.c for the agent's address and by rounds_prepare.c for those of the members. The
 * texts come from other machines, so they may have any form.
 */
#include "worker/addresses.h"

#include <string.h>

/* Finds the first text "KIND=VALUE" of this kind, and returns its value; NULL: there is no such
 * text. */
const char *addresses_find(const struct msg_texts *addresses, const char *kind)
{
    size_t length = strlen(kind);

    for (size_t i = 0; i < addresses->count; i++) {
        const char *text = addresses->items[i];

        if (strncmp(text, kind, length) == 0 && text[length] == '=')
            return text + length + 1;
    }
    return NULL;
}

/* Copies the host of an address "HOST:PORT" or "[HOST]:PORT", without brackets and port. `room`:
 * the bytes of ret_host. */
int addresses_host(const char *address, char *ret_host, size_t room)
{
    const char *end = strrchr(address, ':');
    size_t length;

    if (!end)
        return HVD_E_INVAL;
    if (address[0] == '[') {
        if (end == address + 1 || end[-1] != ']')
            return HVD_E_INVAL;
        address++;
        end--;
    }
    length = (size_t)(end - address);
    if (length == 0 || length >= room)
        return length ? HVD_E_LIMIT : HVD_E_INVAL;
    memcpy(ret_host, address, length);
    ret_host[length] = '\0';
    return 0;
}
