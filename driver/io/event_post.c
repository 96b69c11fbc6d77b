/*
 * event_post.c: one POST for each event, for the thread of event_url.c. Invariants: a post ends
 * within its limit, also with a server that never answers; no secret of the URL or of the headers
 * is in an error.
 */
#include "driver/io/event_post.h"

#include "base/mem.h"
#include "base/time.h"
#include "driver/control/event_target.h"
#include "http/client.h"

#define OWN_HEADERS 2

struct event_post {
    struct event_target target;
    struct http_client *client;
    const char *headers[OWN_HEADERS + LIMIT_HOOK_HEADERS];
};

/* Copies the URL and the headers. A proxy of the environment is used, because many networks let
 * nothing else reach a web server. */
int event_post_create(const struct event_hook_config *config, struct event_post **ret_post,
                      struct hvd_err *err)
{
    const struct http_config http = {
        .connect_us = config->limit_us,
        .request_us = config->limit_us,
        .use_proxy = true,
        .ca_file = config->ca_file,
    };
    struct event_post *post = mem_zalloc(sizeof(*post));
    int rc;

    if (!post)
        return err_set(err, HVD_E_NOMEM, "no memory for --on-event-url; free memory on this host");
    rc = event_target_init(&post->target, config->url, config->header_file, err);
    if (!rc && config->ca_file)
        rc = event_target_ca(config->url, config->ca_file, err);
    if (!rc)
        rc = http_client_create(&http, &post->client, err);
    if (rc) {
        event_post_free(post);
        return rc;
    }
    post->headers[0] = "Content-Type: application/json";
    post->headers[1] = "User-Agent: hvd-elastic/" HVD_VERSION_TEXT;
    for (size_t i = 0; i < post->target.header_count; i++)
        post->headers[OWN_HEADERS + i] = post->target.headers[i];
    *ret_post = post;
    return 0;
}

void event_post_free(struct event_post *post)
{
    if (!post)
        return;
    http_client_free(post->client);
    event_target_release(&post->target);
    mem_free(post);
}

const char *event_post_name(const struct event_post *post)
{
    return post->target.name;
}

void event_post_stop(struct event_post *post)
{
    http_client_stop(post->client);
}

/* Returns what the operator can do about an answer of this status. The body of the answer is not
 * shown: many servers quote the path in it, which may have a secret. */
static const char *event_post_remedy(long status)
{
    switch (status) {
    case 401:
    case 403: return "check the credentials in --on-event-url-header-file or in the URL";
    case 404:
    case 405:
    case 410: return "correct the path of --on-event-url";
    case 407: return "give the proxy of the environment its user and password";
    case 429: return "choose fewer events with --on-event-filter";
    default: break;
    }
    if (status >= 300 && status < 400)
        return "redirections are not followed: give --on-event-url the URL to which this one leads";
    if (status >= 400 && status < 500)
        return "the server must accept a POST of docs/events.md's JSON; if it wants another form, "
               "let a command of --on-event make that form";
    return "look at the log of the server";
}

/* Posts the line, and judges the answer by its status. An answer with the status 200 whose body is
 * cut says that the server has the event. */
enum post_verdict event_post_send(struct event_post *post, const struct buf *line, int64_t limit_us,
                                  int64_t *ret_after_us, struct hvd_err *err)
{
    const struct http_request request = { .method = HTTP_POST,
                                          .url = buf_text(&post->target.url),
                                          .headers = post->headers,
                                          .header_count = OWN_HEADERS + post->target.header_count,
                                          .body = buf_text(line),
                                          .body_length = line->length,
                                          .head_counts = true,
                                          /* curl takes 0 ms for no limit */
                                          .limit_us = limit_us > TIME_MS ? limit_us : TIME_MS };
    struct http_answer answer = { .status = 0 };
    struct hvd_err why;
    int rc = http_send(post->client, &request, &answer, &why);

    *ret_after_us = 0;
    if (rc) {
        err_set(err, rc, "%s; %s", why.text,
                rc == HVD_E_DENIED
                    ? "give the file of the authority that signs the server's certificate with "
                      "--on-event-url-ca"
                    : "see that the server runs and can be reached from the driver's machine, or "
                      "correct --on-event-url");
        return rc == HVD_E_INVAL ? POST_BROKEN : POST_LATER;
    }
    *ret_after_us =
        answer.retry_after_us < EVENT_POST_AFTER_US ? answer.retry_after_us : EVENT_POST_AFTER_US;
    if (answer.status >= 200 && answer.status < 300)
        return POST_TOLD;
    err_set(err, HVD_E_IO, "%s answers with the HTTP status %ld; %s", post->target.name,
            answer.status, event_post_remedy(answer.status));
    switch (answer.status) {
    case 429:
    case 502:
    case 503:
    case 504: return POST_LATER;
    case 500: return POST_BROKEN;
    default: return POST_REFUSED;
    }
}
