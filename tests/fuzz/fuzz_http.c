/*
 * fuzz_http.c: any bytes as the head of a request to --metrics or --page. The status is one of
 * those that have a text, bytes that come one by one give the same as bytes that come at once, and
 * a path that is accepted is a text without control over what follows it.
 */
#include "base/panic.h"
#include "driver/control/http_head.h"

#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct http_head head = { .path = "" };
    struct http_head again = { .path = "" };
    int status = http_head_read(bytes, size, true, &head), step = 0;

    ASSERT(!status || (status >= 200 && *http_status_text(status)));
    if (status == 200)
        ASSERT(head.path[0] == '/' && strlen(head.path) < HTTP_PATH_MAX);
    ASSERT(strlen(head.token) < HTTP_TOKEN_MAX && strlen(head.host) < HTTP_HOST_MAX);
    ASSERT(strlen(head.bearer) < HTTP_TOKEN_MAX && strlen(head.body) <= HTTP_BODY_MAX);
    ASSERT(head.post || !*head.body);
    /* a name that looks like an address is none */
    if (http_host_is_plain(head.host))
        ASSERT(!strcspn(head.host, "[0123456789") || !strncasecmp(head.host, "localhost", 9));
    for (size_t length = 0; size <= 512 && length <= size && !step; length++)
        step = http_head_read(bytes, length, true, &again);
    if (size <= 512) {
        ASSERT(step == status);
        ASSERT(!strcmp(head.path, again.path) && head.openmetrics == again.openmetrics);
        ASSERT(!strcmp(head.token, again.token) && !strcmp(head.host, again.host));
        ASSERT(!strcmp(head.bearer, again.bearer) && !strcmp(head.body, again.body));
        ASSERT(head.post == again.post && head.own_origin == again.own_origin);
    }
    return 0;
}
