/*
 * notice_ask.c: requests to a metadata service, and what is made of their answers. Called by the
 * files of AWS, Google and Azure, on the thread of a watch. Invariant: a request goes to the
 * address of the service and through no proxy, follows no redirection, and ends within its limit.
 */
#include "agent/notice/notice_internal.h"
#include "base/log.h"
#include "base/stamp.h"
#include "base/time.h"
#include "os/clock.h"

#include <stdio.h>
#include <string.h>

/* Called for each header of an answer: keeps the date, the tag, and the mark of Google's service. A
 * date that cannot be read counts as missing. */
static void notice_on_header(void *arg, const char *name, const char *value)
{
    struct notice_answer *answer = arg;
    struct span title = { name, strlen(name) };
    struct span text = { value, strlen(value) };

    if (notice_same(title, "date"))
        (void)stamp_read_http(text, &answer->wall_us);
    else if (notice_same(title, "etag") && text.length < sizeof(answer->etag))
        memcpy(answer->etag, value, text.length + 1);
    else if (notice_same(title, "metadata-flavor"))
        answer->is_google = !strcmp(value, "Google");
}

/* Sends a request to the metadata service, and waits for the whole answer. */
int notice_ask(struct notice_watch *watch, const struct notice_request *request,
               struct notice_answer *ret_answer, struct hvd_err *err)
{
    const char *headers[2] = { request->header, "Content-Type: application/json" };
    char url[NOTICE_SERVER_MAX + 256];
    struct http_answer got = { .status = 0 };
    int rc;

    *ret_answer = (struct notice_answer){ .wall_us = NOTICE_NO_TIME };
    buf_init(&ret_answer->body, LIMIT_NOTICE_BYTES);
    snprintf(url, sizeof(url), "%s%s", watch->server, request->path);
    rc = http_send(watch->client,
                   &(struct http_request){
                       .method = request->method,
                       .url = url,
                       .headers = headers,
                       .header_count = !request->header ? 0
                                       : request->body  ? 2
                                                        : 1,
                       .body = request->body,
                       .body_length = request->body ? strlen(request->body) : 0,
                       .body_to = &ret_answer->body,
                       .header = notice_on_header,
                       .arg = ret_answer,
                       .limit_us = request->limit_us,
                   },
                   &got, err);
    ret_answer->status = got.status;
    /* The moment of the answer, from which the time that is left is counted. A date has whole
     * seconds; the end of that second is safe, because less time seems to be left. Without a date
     * the clock of this machine counts. */
    if (ret_answer->wall_us == NOTICE_NO_TIME)
        ret_answer->wall_us = clock_wall_us();
    else
        ret_answer->wall_us += TIME_S;
    return rc;
}

/* The error of a look whose answer has an HTTP status that makes it useless. */
int notice_odd_status(const struct notice_answer *answer, const char *path, struct hvd_err *err)
{
    return err_set(err, HVD_E_PROTO, "%s: the answer has the HTTP status %ld", path,
                   answer->status);
}

/* Sets the notice that a look returns: `what` happens in left_us. */
void notice_say_left(struct notice_watch *watch, int64_t left_us, const char *what,
                     struct notice_said *ret_said)
{
    ret_said->given = true;
    ret_said->left_us = left_us;
    snprintf(ret_said->text, sizeof(ret_said->text), "%s: %.480s", watch->giver->name, what);
}

/* Sets the notice that a look returns: `what` happens at the moment at_us by the service's clock. A
 * moment that is long past or far away gives no notice; the log says so, unless looks have just
 * failed. */
void notice_say(struct notice_watch *watch, const struct notice_answer *answer, int64_t at_us,
                const char *what, struct notice_said *ret_said)
{
    char stamp[TIME_STAMP_MAX], text[NOTICE_TEXT_MAX];
    int64_t left_us = 0;

    snprintf(text, sizeof(text), "%.300s at %s", what, time_stamp(at_us, stamp));
    if (notice_left(at_us, answer->wall_us, &left_us) == NOTICE_COMES)
        notice_say_left(watch, left_us, text, ret_said);
    else if (!watch->failures)
        log_warning(AGENT,
                    "%s says: %s, which is long past or more than a week away by the clock of the "
                    "service: this is no notice",
                    watch->giver->name, text);
}
