/*
 * http_head.c: reads the head of an HTTP request from bytes in memory. web.c calls it each time
 * that bytes have come. Invariant: no byte behind `length` is read, and a head with any bytes gives
 * a status.
 */
#include "driver/control/http_head.h"

#include "base/limits.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

const char *http_status_text(int status)
{
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Service Unavailable";
    }
}

/* True: the header Host names "localhost" or a numeric address, with or without a port. An IPv6
 * address stands in brackets. */
bool http_host_is_plain(const char *host)
{
    char name[HTTP_HOST_MAX];
    bool is_ipv6 = *host == '[';
    const char *end = is_ipv6 ? strchr(host, ']') : strchr(host, ':');
    size_t length = end ? (size_t)(end - host) : strlen(host);
    struct in6_addr address;

    if (length >= sizeof(name) || (is_ipv6 && (!end || (end[1] && end[1] != ':'))))
        return false;
    memcpy(name, host + is_ipv6, length - is_ipv6);
    name[length - is_ipv6] = '\0';
    return is_ipv6 ? inet_pton(AF_INET6, name, &address) == 1
                   : !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &address) == 1;
}

/* Copies a text to ret_text if it fits; a text that is too long is left out. */
static void http_keep(struct span text, char *ret_text, size_t size)
{
    if (text.length >= size)
        return;
    memcpy(ret_text, text.at, text.length);
    ret_text[text.length] = '\0';
}

/* True: the text begins with `word`, in upper or lower case; *ret_rest is then what follows,
 * without blanks. */
static bool http_begins(struct span text, const char *word, struct span *ret_rest)
{
    size_t length = strlen(word);

    if (text.length < length || strncasecmp(text.at, word, length) != 0)
        return false;
    *ret_rest = span_trim((struct span){ text.at + length, text.length - length });
    return true;
}

/* Reads the header lines of the head. *ret_body: the length of the body of a POST. Returns 200, or
 * the status of a refusal. */
static int http_read_lines(struct span rest, struct http_head *head, uint64_t *ret_body)
{
    struct span line, value, host = { "", 0 }, origin = { "", 0 };
    size_t hosts = 0, origins = 0, bearers = 0, lengths = 0;

    while (span_next(&rest, '\n', &line)) {
        if (http_begins(line, "host:", &host)) {
            http_keep(host, head->host, sizeof(head->host));
            hosts++;
        }
        origins += http_begins(line, "origin:", &origin);
        if (http_begins(line, "authorization:", &value) && http_begins(value, "bearer ", &value)) {
            http_keep(value, head->bearer, sizeof(head->bearer));
            bearers++;
        }
        /* The weight of the format ("q=0.5") does not matter: a client that names the format can
         * read it. */
        if (http_begins(line, "accept:", &value))
            for (; value.length && !head->openmetrics; value.at++, value.length--)
                head->openmetrics = http_begins(value, "application/openmetrics-text", &line);
        else if (head->post && http_begins(line, "transfer-encoding:", &value))
            return 411;
        else if (head->post && http_begins(line, "content-length:", &value) &&
                 (++lengths > 1 || text_parse_u64(value, 0, UINT32_MAX, "", ret_body, NULL)))
            return 400;
    }
    if (hosts > 1 || origins > 1 || bearers > 1)
        return 400; /* a server between the client and this one might use the other of two such
                       headers */
    head->own_origin =
        !origins ||
        ((http_begins(origin, "http://", &value) || http_begins(origin, "https://", &value)) &&
         value.length == host.length && !strncasecmp(value.at, host.at, host.length));
    return *ret_body > HTTP_BODY_MAX ? 413 : 200;
}

/* Finds the blank line that ends the head, then reads the request line, the query, the header lines
 * and the body. */
int http_head_read(const char *bytes, size_t length, bool posts, struct http_head *ret_head)
{
    struct http_head head = { .only_head = false };
    /* the length of the head with its blank line; 0: the head is not complete yet */
    size_t whole = 0;
    struct span rest, line, method, target, value, query = { NULL, 0 };
    uint64_t body = 0;
    const char *mark;
    int status;

    for (size_t i = 0; i + 1 < length && !whole; i++) {
        if (bytes[i] != '\n')
            continue;
        if (bytes[i + 1] == '\n')
            whole = i + 2;
        else if (bytes[i + 1] == '\r' && i + 2 < length && bytes[i + 2] == '\n')
            whole = i + 3;
    }
    rest = (struct span){ bytes, whole };
    if (whole > LIMIT_WEB_HEAD_BYTES || (!whole && length >= LIMIT_WEB_HEAD_BYTES))
        return 431;
    if (!whole)
        return 0;
    if (memchr(bytes, '\0', whole))
        return 400;
    (void)span_next(&rest, '\n', &line);
    line = span_trim(line); /* "GET /metrics?x HTTP/1.1" */
    if (!span_next(&line, ' ', &method) || !span_next(&line, ' ', &target) || !target.length ||
        *target.at != '/')
        return 400;
    if (!span_is(line, "HTTP/1.1") && !span_is(line, "HTTP/1.0"))
        return line.length > 5 && !memcmp(line.at, "HTTP/", 5) ? 505 : 400;
    head.only_head = span_is(method, "HEAD");
    head.post = posts && span_is(method, "POST");
    if (!head.only_head && !head.post && !span_is(method, "GET"))
        return 405;
    mark = memchr(target.at, '?', target.length);
    if (mark) {
        query = (struct span){ mark + 1, target.length - (size_t)(mark - target.at) - 1 };
        target.length = (size_t)(mark - target.at);
    }
    if (target.length >= sizeof(head.path))
        return 404;
    http_keep(target, head.path, sizeof(head.path));
    while (span_next(&query, '&', &line))
        if (http_begins(line, "token=", &value))
            http_keep(value, head.token, sizeof(head.token));
    status = http_read_lines(rest, &head, &body);
    if (status != 200)
        return status;
    if (length - whole < body)
        return 0;
    if (memchr(bytes + whole, '\0', (size_t)body))
        return 400;
    http_keep((struct span){ bytes + whole, (size_t)body }, head.body, sizeof(head.body));
    *ret_head = head;
    return 200;
}
