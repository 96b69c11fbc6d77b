/*
 * s3_call.h: one bucket of S3: requests that are signed, have a time limit, and are repeated when
 * the server is busy or a connection breaks.
 */
#ifndef STATE_REMOTE_S3_CALL_H
#define STATE_REMOTE_S3_CALL_H

#include "http/client.h"
#include "state/remote/s3_address.h"
#include "state/remote/s3_keys.h"

/* Times and sizes, which tests make smaller. */
struct s3_limits {
    int64_t connect_us;  /* the time limit to connect */
    int64_t request_us;  /* the time limit of a request without a body */
    int64_t patience_us; /* a failed request is repeated until this time after its first failure */
    int64_t pause_us; /* the pause before the first repetition; each later pause is twice as long,
                         up to pause_max_us */
    int64_t pause_max_us; /* the longest pause between two repetitions */
    uint64_t part_bytes;  /* a larger object is sent in parts of this size */
};
extern const struct s3_limits s3_limits_default;

#define S3_ETAG_MAX  128
#define S3_ERROR_MAX 64
/* bytes of an answer in memory: a page of a list with 1000 names */
#define S3_ANSWER_MAX ((size_t)4 * 1024 * 1024)

struct s3; /* used by one thread */

struct s3_request {
    enum http_method method;
    const char *doing; /* the operation in error texts: "cannot write it" */
    const char
        *key; /* the name of the object below the prefix; NULL: the request is for the bucket */
    const char *query;      /* the query of the URL, encoded; NULL: none */
    const char *headers[2]; /* further headers, "NAME: VALUE"; NULL: none */
    const char *body;       /* the bytes that are sent; NULL: none */
    uint64_t length;        /* bytes of `body` */
    void *into;  /* takes the body of a good answer, at most `room` bytes; NULL: s3_answer_text */
    size_t room; /* bytes that `into` has room for */
    bool once;   /* the request is not repeated */
};

struct s3_answer {
    long status;              /* the HTTP status; 0: there was no answer */
    char error[S3_ERROR_MAX]; /* the name of the error, such as "NoSuchKey"; "" for a good answer */
    char etag[S3_ETAG_MAX];   /* the ETag of the object, for the list of an upload's parts */
    bool has_total;           /* true: `total` is known */
    uint64_t total;           /* bytes of the whole object, as an answer with a part of it says */
    size_t taken;             /* bytes in `into` */
};

/* Opens a bucket and looks for credentials. No request is sent to the bucket yet. */
int s3_open(const char *where, const struct s3_limits *limits, struct s3 **ret_s3,
            struct hvd_err *err) MUST_CHECK;
void s3_close(struct s3 *s3); /* NULL is fine */
const struct s3_limits *s3_limits_of(const struct s3 *s3);
const struct s3_address *s3_address_of(const struct s3 *s3);

/*
 * Sends a request, and repeats the request while a repetition may succeed. 0: the status is 200 to
 * 299. HVD_E_NOTFOUND: there is no such object or upload. HVD_E_EXISTS: an object is there already
 * (If-None-Match). HVD_E_CORRUPT: the range lies behind the end of the object. HVD_E_DENIED,
 * HVD_E_FULL, HVD_E_LIMIT. HVD_E_INVAL: the bucket or a setting is wrong. HVD_E_BUSY: the server
 * was busy or silent for patience_us. The server may have carried out a request that has failed.
 * *ret_answer is filled in any case.
 */
int s3_call(struct s3 *s3, const struct s3_request *request, struct s3_answer *ret_answer,
            struct hvd_err *err) MUST_CHECK;

/* Returns the body of the last answer; borrowed until the next call. */
struct span s3_answer_text(const struct s3 *s3);

#endif
