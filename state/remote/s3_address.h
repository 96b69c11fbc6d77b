/*
 * s3_address.h: the address of checkpoints in S3, "s3://BUCKET/PREFIX", and the URLs of its
 * objects.
 */
#ifndef STATE_REMOTE_S3_ADDRESS_H
#define STATE_REMOTE_S3_ADDRESS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

#define S3_SCHEME     "s3://"
#define S3_BUCKET_MAX 63
#define S3_KEY_MAX    1024 /* bytes of the name of an object, its prefix included */

struct s3_address {
    char bucket[S3_BUCKET_MAX + 1];
    /* before the names of all objects: "", or a text that ends in '/' */
    char prefix[S3_KEY_MAX + 2];
};

/* Parses "s3://BUCKET/PREFIX". HVD_E_INVAL: the text is not such an address. */
int s3_address_parse(const char *where, struct s3_address *ret_address,
                     struct hvd_err *err) MUST_CHECK;

/* Checks an endpoint, "http://HOST:PORT" or "https://HOST/PATH"; `name` is the source of the
 * endpoint, for the error text. HVD_E_INVAL. */
int s3_endpoint_check(const char *name, const char *endpoint, struct hvd_err *err) MUST_CHECK;

/* Appends the URL of an object; `key` NULL: of the bucket. `endpoint` NULL: Amazon's server for the
 * region. `query` (may be NULL) is encoded already, and its parameters are sorted by name: libcurl
 * signs the query unchanged. 0, HVD_E_LIMIT or HVD_E_NOMEM. */
int s3_url(const struct s3_address *address, const char *endpoint, const char *region,
           const char *key, const char *query, struct buf *out) MUST_CHECK;

/* Appends text with each byte as %XX that is no letter, digit, '-', '.', '_' or '~'; a slash stays
 * if `slashes`. */
int s3_encode(struct buf *out, const char *text, bool slashes) MUST_CHECK;

#endif
