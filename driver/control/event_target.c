/*
 * event_target.c: reads the URL of --on-event-url and the file of its headers.
 * driver/io/event_url.c checks both at the start of a job, and posts to them. Invariant: a target
 * that was accepted has a URL and headers that end no line of an HTTP request early, and a name
 * without secrets.
 */
#include "driver/control/event_target.h"

#include "base/text.h"
#include "os/file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The bytes of a header's name, as RFC 9110 (5.6.2) has them. */
static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "!#$%&'*+-.^_`|~";
static const char host_bytes[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
/* of an IPv6 address in brackets, with its zone */
static const char ipv6_bytes[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";

#define CA_FILE_MAX (1024 * 1024) /* the bytes of a file of authorities that are looked at */

/* true: the part is not empty, and each of its bytes is in the list. */
static bool target_has_only(struct span part, const char *bytes)
{
    for (size_t i = 0; i < part.length; i++)
        if (!part.at[i] || !strchr(bytes, part.at[i]))
            return false;
    return part.length > 0;
}

/* true: the text has a control character, or with `blanks` a blank. */
static bool target_has_controls(struct span text, bool blanks)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.at[i];

        if (c == 0x7f || (c < ' ' && (c != '\t' || blanks)) || (c == ' ' && blanks))
            return true;
    }
    return false;
}

/* true: the text is a server, "HOST", "HOST:PORT" or "[IPV6]:PORT". */
static bool target_is_server(struct span server)
{
    const char *bracket = server.length ? memchr(server.at, ']', server.length) : NULL;
    bool ipv6 = server.length && *server.at == '[' && bracket;
    struct span host = server, port;
    const char *colon = server.length ? memchr(server.at, ':', server.length) : NULL;
    uint64_t number;

    if (ipv6) {
        colon = bracket + 1 < server.at + server.length ? bracket + 1 : NULL;
        host = (struct span){ server.at + 1, (size_t)(bracket - server.at - 1) };
    } else if (colon) {
        host.length = (size_t)(colon - server.at);
    }
    if (!target_has_only(host, ipv6 ? ipv6_bytes : host_bytes) ||
        host.length > LIMIT_HOST_NAME_BYTES)
        return false;
    if (!colon)
        return true;
    port = (struct span){ colon + 1, (size_t)(server.at + server.length - colon - 1) };
    return *colon == ':' && !text_parse_u64(port, 1, UINT16_MAX, "the port", &number, NULL);
}

/* Checks the URL. Its parts are cut off from the left: scheme, user and password, server. curl
 * takes the rest as it is. */
int event_target_name(const char *url, char ret_name[EVENT_TARGET_NAME_MAX], struct hvd_err *err)
{
    const size_t scheme = !strncasecmp(url, "http://", 7)    ? 7
                          : !strncasecmp(url, "https://", 8) ? 8
                                                             : 0;
    struct span server = { url + scheme, strcspn(url + scheme, "/?#") };
    const char *sign = server.length ? memchr(server.at, '@', server.length) : NULL;

    if (!scheme)
        return err_set(err, HVD_E_INVAL,
                       "--on-event-url: it is not the URL of a web server; write "
                       "http://HOST:PORT/PATH or https://HOST:PORT/PATH");
    if (strlen(url) > LIMIT_OPTION_TEXT_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "--on-event-url: the URL is longer than %d bytes (LIMIT_OPTION_TEXT_BYTES); "
                       "shorten it",
                       LIMIT_OPTION_TEXT_BYTES);
    if (target_has_controls((struct span){ url, strlen(url) }, true /* blanks, too */))
        return err_set(err, HVD_E_INVAL,
                       "--on-event-url: the URL has a blank or a control character; write %%20 for "
                       "a blank");
    if (sign) {
        server.length -= (size_t)(sign + 1 - server.at);
        server.at = sign + 1;
    }
    if (!target_is_server(server))
        return err_set(err, HVD_E_INVAL,
                       "--on-event-url: it names no valid server; write http://HOST:PORT/PATH, and "
                       "in a user or password %%40 for @, %%2F for /, %%3F for ? and %%23 for #");
    snprintf(ret_name, EVENT_TARGET_NAME_MAX, "%.*s%.*s", (int)scheme, url, (int)server.length,
             server.at);
    return 0;
}

/* Reads one line of the file, and adds its header to the target. The header ends where the line
 * ends, with a NUL that replaces the end of the line. `place` is "FILE:LINE". */
static int target_add_header(struct event_target *target, struct span line, const char *place,
                             struct hvd_err *err)
{
    /* the first two are set by the driver, the others by libcurl */
    static const char *const own[] = { "Content-Type", "User-Agent", "Content-Length",
                                       "Transfer-Encoding", "Expect" };
    const char *colon = memchr(line.at, ':', line.length);
    struct span name = { line.at, colon ? (size_t)(colon - line.at) : 0 };
    /* with the blanks before the value, among which a carriage return is wrong */
    struct span value = { line.at + name.length + 1, colon ? line.length - name.length - 1 : 0 };

    if (!target_has_only(name, name_bytes) || !span_trim(value).length ||
        target_has_controls(value, false /* blanks are allowed */))
        return err_set(err, HVD_E_INVAL, "%s: the line is no header; write \"Name: value\"", place);
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (name.length == strlen(own[i]) && !strncasecmp(name.at, own[i], name.length))
            return err_set(err, HVD_E_INVAL,
                           "%s: the driver itself sets the header %s; remove this line", place,
                           own[i]);
    if (target->header_count == LIMIT_HOOK_HEADERS)
        return err_set(err, HVD_E_LIMIT,
                       "%s: more than %d headers (LIMIT_HOOK_HEADERS); remove some", place,
                       LIMIT_HOOK_HEADERS);
    target->text.data[line.at + line.length - target->text.data] = '\0';
    target->headers[target->header_count++] = line.at;
    return 0;
}

/* Cuts the file into headers. Empty lines, and lines that begin with "#", are skipped. */
int event_target_headers(struct event_target *target, const char *path, struct hvd_err *err)
{
    struct span rest = { buf_text(&target->text), target->text.length }, line;
    char place[LIMIT_PATH_BYTES + 16];
    unsigned number = 0;
    int rc = 0;

    target->header_count = 0;
    if (target->text.length > LIMIT_OPTION_TEXT_BYTES)
        return err_set(err, HVD_E_LIMIT,
                       "%s: the file is longer than %d bytes (LIMIT_OPTION_TEXT_BYTES); shorten it",
                       path, LIMIT_OPTION_TEXT_BYTES);
    while (!rc && span_next(&rest, '\n', &line)) {
        line = span_trim(line);
        snprintf(place, sizeof(place), "%s:%u", path, ++number);
        if (line.length && *line.at != '#')
            rc = target_add_header(target, line, place, err);
    }
    if (!rc && !target->header_count)
        rc = err_set(err, HVD_E_INVAL, "%s: the file has no header; write \"Name: value\"", path);
    return rc;
}

/* Only https:// has certificates. curl itself would name the file only with each request. */
int event_target_ca(const char *url, const char *ca_file, struct hvd_err *err)
{
    struct buf text;
    int rc = 0;

    if (strncasecmp(url, "https://", 8) != 0)
        return err_set(err, HVD_E_INVAL,
                       "--on-event-url-ca: the URL of --on-event-url has no TLS; write https://");
    buf_init(&text, CA_FILE_MAX);
    if (ca_file) {
        if (strcmp(ca_file, "-") != 0) /* "-" is no standard input here */
            rc = file_read(ca_file, &text, err);
        if (!rc && !strstr(buf_text(&text), "-----BEGIN "))
            rc = err_set(err, HVD_E_INVAL,
                         "%s: the file has no certificate; give a file with \"-----BEGIN "
                         "CERTIFICATE-----\" (PEM)",
                         ca_file);
        if (rc)
            rc = err_prefix(err, rc, "--on-event-url-ca");
    }
    buf_release(&text);
    return rc;
}

/* Copies the URL, and reads the file. */
int event_target_init(struct event_target *target, const char *url, const char *header_file,
                      struct hvd_err *err)
{
    int rc;

    *target = (struct event_target){ .header_count = 0 };
    buf_init(&target->url, LIMIT_OPTION_TEXT_BYTES);
    buf_init(&target->text, LIMIT_OPTION_TEXT_BYTES + 1);
    rc = event_target_name(url, target->name, err);
    if (!rc && buf_append_text(&target->url, url))
        rc = err_set(err, HVD_E_NOMEM, "no memory for --on-event-url; free memory on this host");
    if (!rc && header_file) {
        rc = file_read_secret(header_file, &target->text, err);
        if (!rc)
            rc = event_target_headers(target, header_file, err);
        if (rc)
            rc = err_prefix(err, rc, "--on-event-url-header-file");
    }
    if (rc)
        event_target_release(target);
    return rc;
}

void event_target_release(struct event_target *target)
{
    buf_release(&target->url);
    buf_release(&target->text);
    target->header_count = 0;
}
