/*
 * s3_call.c: requests to one bucket: signed by libcurl, repeated with growing pauses, and with
 * errors that name the object first and the remedy last. Called by s3_storage.c, on a thread that
 * may block. Invariant: each call ends, within patience_us and the time limit of one request; and a
 * request is repeated only if its repetition does no harm, which is true for all requests of
 * s3_storage.c.
 */
#include "state/remote/s3_call.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/time.h"
#include "os/clock.h"
#include "state/remote/s3_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define S3_URL_MAX     (3 * S3_KEY_MAX + 8192) /* most bytes of the URL of a request */
#define S3_MESSAGE_MAX 120                     /* most bytes of the server's message in an error */
/* The time limit of a request grows by one second for each block of this many bytes in its body. */
#define S3_BYTES_A_SECOND (64 * 1024)
/* A server that has never answered gets patience_us / S3_UNHEARD, because its name may be wrong. */
#define S3_UNHEARD 4

#define S3_REMEDY                                                                               \
    "check the network, AWS_ENDPOINT_URL and AWS_CA_BUNDLE, and the variables https_proxy and " \
    "no_proxy"

const struct s3_limits s3_limits_default = { .connect_us = 10 * TIME_S,
                                             .request_us = 20 * TIME_S,
                                             .patience_us = 60 * TIME_S,
                                             .pause_us = 100 * TIME_MS,
                                             .pause_max_us = 5 * TIME_S,
                                             .part_bytes = 8 * 1024 * 1024 };

struct s3 {
    struct s3_address address;
    struct s3_keys keys;
    struct s3_limits limits;
    struct http_client *http;
    struct rng rng; /* for the pauses, so that many hosts do not repeat at the same moment */
    bool heard;     /* the server has answered once */
    /* the URL of the present request; the answer to the last one, unless the caller takes its
     * bytes */
    struct buf url, answer;
    char sign[S3_REGION_MAX + 16]; /* what libcurl signs with: "aws:amz:REGION:s3" */
    /* the credentials as libcurl wants them: "ID:SECRET" */
    char user[S3_ID_MAX + S3_SECRET_MAX + 2];
    char token[S3_TOKEN_MAX + 32]; /* the header with the session token */
};

/* Finds credentials, and writes them in the forms that requests need. Called when the bucket is
 * opened, and when the server says that the credentials are too old. */
static int s3_find_keys(struct s3 *s3, struct hvd_err *err)
{
    int rc = s3_keys_find(&s3->keys, err);

    if (rc)
        return rc;
    snprintf(s3->sign, sizeof(s3->sign), "aws:amz:%s:s3", s3->keys.found.region);
    snprintf(s3->user, sizeof(s3->user), "%s:%s", s3->keys.found.id, s3->keys.found.secret);
    snprintf(s3->token, sizeof(s3->token), "x-amz-security-token: %s", s3->keys.found.token);
    return 0;
}

/* Opens a bucket: parses its address and finds credentials, but sends no request to the bucket. */
int s3_open(const char *where, const struct s3_limits *limits, struct s3 **ret_s3,
            struct hvd_err *err)
{
    struct http_config http = { .connect_us = limits->connect_us,
                                .request_us = limits->request_us,
                                .use_proxy = true,
                                .remedy = S3_REMEDY };
    struct s3 *s3 = mem_zalloc(sizeof(*s3));
    int rc;

    if (!s3)
        return err_set(err, HVD_E_NOMEM,
                       "%s: no memory to open the bucket; free memory on this host", where);
    s3->limits = *limits;
    buf_init(&s3->url, S3_URL_MAX);
    buf_init(&s3->answer, S3_ANSWER_MAX);
    rng_seed(&s3->rng, (uint64_t)clock_wall_us() ^ (uintptr_t)s3);
    rc = s3_address_parse(where, &s3->address, err);
    if (!rc && (rc = s3_find_keys(s3, err)) != 0)
        err_prefix(err, rc, "%s", where);
    http.ca_file = *s3->keys.ca_file ? s3->keys.ca_file : NULL;
    if (!rc)
        rc = http_client_create(&http, &s3->http, err);
    if (rc)
        s3_close(s3);
    else
        *ret_s3 = s3;
    return rc;
}

/* Frees the bucket and wipes its credentials. */
void s3_close(struct s3 *s3)
{
    if (!s3)
        return;
    http_client_free(s3->http);
    buf_release(&s3->url);
    buf_release(&s3->answer);
    explicit_bzero(s3, sizeof(*s3));
    mem_free(s3);
}

/* Returns the times and sizes that the bucket was opened with. */
const struct s3_limits *s3_limits_of(const struct s3 *s3)
{
    return &s3->limits;
}

const struct s3_address *s3_address_of(const struct s3 *s3)
{
    return &s3->address;
}

/* Returns the body of the last answer. It is borrowed until the next request. */
struct span s3_answer_text(const struct s3 *s3)
{
    return (struct span){ buf_text(&s3->answer), s3->answer.length };
}

/* The meaning of an error of S3: each row is for an error by its name, or for the status of an
 * answer whose name is not in the table. A row with status 0 is for its name alone, the row without
 * a name for its status alone. */
static const struct s3_meaning {
    const char *name;
    long status;
    int code; /* the code of hvd-elastic; HVD_E_BUSY: the request is sent again */
    const char *remedy;
} s3_meanings[] = {
    {"NoSuchBucket",                  0,   HVD_E_INVAL,       "create the bucket, or write another name after s3://"},
    { "InvalidBucketName",            0,   HVD_E_INVAL,       "write the name of a bucket after s3://"              },
    { "NoSuchKey",                    404, HVD_E_NOTFOUND,    "put the object back, or use another checkpoint"      },
    { "NoSuchUpload",                 404, HVD_E_NOTFOUND,    "let no lifecycle rule of the bucket end this upload" },
    { "PreconditionFailed",           412, HVD_E_EXISTS,
     "another writer uses the prefix; give each job a prefix of its own"                                            },
    { "InvalidRange",                 416, HVD_E_CORRUPT,     "use another checkpoint"                              },
    { "EntityTooLarge",               413, HVD_E_LIMIT,       "train with more workers"                             },
    { "QuotaExceeded",                507, HVD_E_FULL,        "make room in the bucket, or keep fewer checkpoints"  },
    { "ExpiredToken",                 0,   HVD_E_DENIED,      "renew the credentials"                               },
    { "InvalidToken",                 0,   HVD_E_DENIED,      "renew the credentials"                               },
    { "TokenRefreshRequired",         0,   HVD_E_DENIED,      "renew the credentials"                               },
    { "RequestTimeTooSkewed",         0,   HVD_E_DENIED,      "set the clock of this host"                          },
    { "InvalidAccessKeyId",           0,   HVD_E_DENIED,      "correct the credentials"                             },
    { "SignatureDoesNotMatch",        0,   HVD_E_DENIED,      "correct the credentials"                             },
    { "AccessDenied",                 403, HVD_E_DENIED,
     "let these credentials list the bucket, and get, put and delete objects of the prefix"                         },
    { NULL,                           401, HVD_E_DENIED,      "correct the credentials"                             },
    { "AuthorizationHeaderMalformed", 0,   HVD_E_INVAL,
     "set AWS_REGION to the region of the bucket"                                                                   },
    { "PermanentRedirect",            301, HVD_E_INVAL,       "set AWS_REGION to the region of the bucket"          },
    { "TemporaryRedirect",            307, HVD_E_INVAL,       "set AWS_REGION to the region of the bucket"          },
    { "NotImplemented",               501, HVD_E_UNSUPPORTED, "use a server that has this operation of S3"          },
    { "RequestTimeout",               408, HVD_E_BUSY,        "try again later"                                     },
    { "ConditionalRequestConflict",   0,   HVD_E_BUSY,        "try again later"                                     },
    { "OperationAborted",             0,   HVD_E_BUSY,        "try again later"                                     },
    { "InternalError",                0,   HVD_E_BUSY,        "try again later"                                     },
    { "SlowDown",                     429, HVD_E_BUSY,        "write fewer checkpoints"                             },
};

/* Writes the path of the object that a request is about. */
static const char *s3_path(const struct s3 *s3, const struct s3_request *request,
                           char path[S3_KEY_MAX + S3_BUCKET_MAX + 16])
{
    snprintf(path, S3_KEY_MAX + S3_BUCKET_MAX + 16, S3_SCHEME "%s/%s%s", s3->address.bucket,
             s3->address.prefix, request->key ? request->key : "");
    return path;
}

/* Turns an answer into a code and an error. An answer with status 200 may be an error, too: a
 * server that works on a request for long sends the status before the result is known. */
static int s3_judge(struct s3 *s3, const struct s3_request *request, struct s3_answer *answer,
                    struct hvd_err *err)
{
    struct span body = s3_answer_text(s3), text;
    char path[S3_KEY_MAX + S3_BUCKET_MAX + 16], message[S3_MESSAGE_MAX] = "";
    bool good = answer->status >= 200 && answer->status < 300;
    struct s3_meaning meaning = { .code = HVD_E_IO, .remedy = "read the log of the server" };
    char region[S3_REGION_MAX + S3_FROM_MAX + 16] = "";
    size_t row = ARRAY_SIZE(s3_meanings);

    if (s3_text_find(body, "Error", S3_DEPTH_TOP, &text) &&
        s3_text_find(body, "Code", S3_DEPTH_PART, &text) &&
        !s3_text_decode(text, answer->error, sizeof(answer->error)))
        answer->error[0] = '\0';
    if (good && !*answer->error)
        return 0;
    if (s3_text_find(body, "Message", S3_DEPTH_PART, &text)) {
        text.length = text.length < sizeof(message) ? text.length : sizeof(message) - 1;
        if (!s3_text_decode(text, message, sizeof(message)) ||
            !text_is_clean(message, strlen(message)))
            message[0] = '\0';
    }
    if (good || answer->status >= 500)
        meaning.code = HVD_E_BUSY;
    for (size_t i = 0; i < ARRAY_SIZE(s3_meanings); i++)
        if (*answer->error && s3_meanings[i].name && !strcmp(answer->error, s3_meanings[i].name))
            row = i;
    for (size_t i = 0; row == ARRAY_SIZE(s3_meanings) && i < row; i++)
        if (answer->status == s3_meanings[i].status)
            meaning = s3_meanings[i];
    if (row < ARRAY_SIZE(s3_meanings))
        meaning = s3_meanings[row];
    if (meaning.code == HVD_E_INVAL)
        snprintf(region, sizeof(region), ", region %s from %s", s3->keys.found.region,
                 s3->keys.region_from);
    return err_set(err, meaning.code, "%s: %s: %s%s%s (status %ld%s)%s%s; %s",
                   s3_path(s3, request, path), request->doing, answer->error,
                   *answer->error && *message ? ": " : "", message, answer->status, region,
                   meaning.code == HVD_E_DENIED ? ", with credentials of " : "",
                   meaning.code == HVD_E_DENIED ? s3->keys.from : "", meaning.remedy);
}

/* The argument of the callbacks that take the body and the headers of a good answer. */
struct s3_taking {
    const struct s3_request *request;
    struct s3_answer *answer;
};

/* Takes the next bytes of the body into the caller's memory. HVD_E_LIMIT: the answer is longer than
 * the caller expects. */
static int s3_take(void *arg, const char *bytes, size_t length)
{
    struct s3_taking *taking = arg;
    struct s3_answer *answer = taking->answer;

    if (length > taking->request->room - answer->taken)
        return HVD_E_LIMIT;
    memcpy((char *)taking->request->into + answer->taken, bytes, length);
    answer->taken += length;
    return 0;
}

/* Compares the name of a header, without regard to case; `name` is in lower case. */
static bool s3_is_header(const char *header, const char *name)
{
    while (*name && tolower((unsigned char)*header) == *name)
        header++, name++;
    return !*header && !*name;
}

/* Takes two headers: ETag, and the size of the object from Content-Range: "bytes 0-9/200". The
 * ETag is written into XML later, so one with characters of XML is not taken. */
static void s3_take_header(void *arg, const char *name, const char *value)
{
    struct s3_answer *answer = ((struct s3_taking *)arg)->answer;
    const char *slash = strchr(value, '/');
    uint64_t total;

    if (s3_is_header(name, "etag") && strlen(value) < sizeof(answer->etag) &&
        !strpbrk(value, "<>&"))
        snprintf(answer->etag, sizeof(answer->etag), "%s", value);
    if (!s3_is_header(name, "content-range") || !slash)
        return;
    if (text_parse_u64((struct span){ slash + 1, strlen(slash + 1) }, 0, INT64_MAX, "", &total,
                       NULL))
        return;
    answer->has_total = true;
    answer->total = total;
}

/* Sends the request once, without a repetition. */
static int s3_try(struct s3 *s3, const struct s3_request *request, struct s3_answer *answer,
                  struct hvd_err *err)
{
    struct s3_taking taking = { request, answer };
    const char *headers[ARRAY_SIZE(request->headers) + 2];
    struct http_request http = { .method = request->method,
                                 .headers = headers,
                                 .body = request->body ? request->body : "",
                                 .body_length = request->length,
                                 .body_to = &s3->answer,
                                 .take = request->into ? s3_take : NULL,
                                 .take_max = request->room,
                                 .header = s3_take_header,
                                 .arg = &taking,
                                 .aws_sigv4 = s3->sign,
                                 .user_password = s3->user };
    struct http_answer got = { .status = 0 };
    char path[S3_KEY_MAX + S3_BUCKET_MAX + 16];
    int rc;

    *answer = (struct s3_answer){ .status = 0 };
    buf_clear(&s3->url);
    buf_clear(&s3->answer);
    rc = s3_url(&s3->address, *s3->keys.found.endpoint ? s3->keys.found.endpoint : NULL,
                s3->keys.found.region, request->key, request->query, &s3->url);
    if (rc)
        return err_set(err, rc,
                       "%s: %s: no room for the URL (%s); shorten the prefix, or free memory on "
                       "this host",
                       s3_path(s3, request, path), request->doing, err_text(rc));
    /* A checkpoint has checksums of its own, so the signature does not cover the body. */
    headers[http.header_count++] = "x-amz-content-sha256: UNSIGNED-PAYLOAD";
    if (*s3->keys.found.token)
        headers[http.header_count++] = s3->token;
    for (size_t i = 0; i < ARRAY_SIZE(request->headers); i++)
        if (request->headers[i])
            headers[http.header_count++] = request->headers[i];
    http.url = buf_text(&s3->url);
    http.limit_us = s3->limits.request_us +
                    (int64_t)((request->length + request->room) / S3_BYTES_A_SECOND) * TIME_S;
    rc = http_send(s3->http, &http, &got, err);
    answer->status = got.status;
    if (rc)
        return err_prefix(err, rc, "%s: %s", s3_path(s3, request, path), request->doing);
    s3->heard = true;
    return s3_judge(s3, request, answer, err);
}

/* Sends a request until it succeeds, fails for good, or patience_us is over. If the server says
 * that the credentials are too old, newer ones are looked for once, and the request is sent
 * again. */
int s3_call(struct s3 *s3, const struct s3_request *request, struct s3_answer *ret_answer,
            struct hvd_err *err)
{
    int64_t pause_us = s3->limits.pause_us, first_us = 0, now_us, until_us;
    struct hvd_err own = { .text = "" };
    bool renewed = false;
    unsigned tries = 0;
    int rc;

    for (;;) {
        rc = s3_try(s3, request, ret_answer, &own);
        /* The server accepted these credentials earlier, so they are too old now, and the sources
         * may have newer ones. */
        if (rc == HVD_E_DENIED && !renewed &&
            (!strcmp(ret_answer->error, "ExpiredToken") ||
             !strcmp(ret_answer->error, "InvalidToken") ||
             !strcmp(ret_answer->error, "TokenRefreshRequired"))) {
            renewed = true;
            s3_keys_forget();
            if (!s3_find_keys(s3, NULL))
                continue;
        }
        if (rc != HVD_E_BUSY || request->once)
            break;
        now_us = clock_now_us();
        /* the time counts from the first failure */
        first_us = tries++ ? first_us : now_us;
        until_us = first_us + s3->limits.patience_us / (s3->heard ? 1 : S3_UNHEARD);
        if (now_us + pause_us >= until_us)
            break;
        /* The pause is between half and all of pause_us, at random, so that many hosts do not send
         * again at the same moment. */
        (void)poll(NULL, 0,
                   (int)((pause_us / 2 + (int64_t)rng_below(&s3->rng, (uint64_t)pause_us / 2 + 1)) /
                         TIME_MS));
        pause_us = pause_us * 2 < s3->limits.pause_max_us ? pause_us * 2 : s3->limits.pause_max_us;
    }
    if (rc)
        err_set(err, rc, "%s", own.text);
    return rc;
}
