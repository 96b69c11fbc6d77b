/*
 * fuzz_event_target.c: any bytes as --on-event-url, and the same bytes as the file of
 * --on-event-url-header-file. A text that is accepted ends no line of a request early, and each
 * header has a name and a value. A refusal has an error.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "driver/control/event_target.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The name of an accepted URL is its scheme and its server, as the URL has them. */
static void check_url(const char *url)
{
    char name[EVENT_TARGET_NAME_MAX] = "";
    struct hvd_err err = { .text = "" };
    const char *server;

    if (event_target_name(url, name, &err)) {
        ASSERT(*err.text && !*name);
        return;
    }
    server = strstr(name, "://");
    ASSERT(server && strlen(server) > 3);
    ASSERT(!strpbrk(server + 3, "/?#@ \r\n") && strstr(url, server + 3));
    ASSERT(!strpbrk(url, " \t\r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *url = mem_strndup((const char *)data, size);
    struct event_target target = { .header_count = 0 };
    struct hvd_err err = { .text = "" };

    check_url(url);
    mem_free(url);
    buf_init(&target.text, LIMIT_OPTION_TEXT_BYTES + 1);
    if (!buf_append(&target.text, data, size)) {
        if (event_target_headers(&target, "headers", &err)) {
            ASSERT(*err.text);
        } else {
            ASSERT(target.header_count > 0);
            for (size_t i = 0; i < target.header_count; i++) {
                const char *header = target.headers[i], *colon = strchr(header, ':');

                ASSERT(colon && colon > header && colon[1] && !strpbrk(header, "\r\n"));
                ASSERT(header + strlen(header) <= target.text.data + target.text.length);
            }
        }
    }
    buf_release(&target.text);
    return 0;
}
