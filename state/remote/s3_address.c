/*
 * s3_address.c: reads an address of S3, and makes the URLs of requests. Called by s3_call.c and
 * s3_storage.c. Invariant: a path and a query are encoded exactly once, as the signature of AWS
 * wants them, and no part of a path is "." or "..".
 */
#include "state/remote/s3_address.h"

#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Parses the address "s3://BUCKET/PREFIX"; the prefix may be missing, and gets one slash at its
 * end. */
int s3_address_parse(const char *where, struct s3_address *ret_address, struct hvd_err *err)
{
    const char *bucket = where + strlen(S3_SCHEME);
    size_t length = strcspn(bucket, "/");
    const char *prefix = bucket + length + (bucket[length] == '/');
    struct span rest = { prefix, strlen(prefix) }, part;
    struct s3_address address;
    bool good = length >= 3 && length <= S3_BUCKET_MAX && isalnum((unsigned char)*bucket);

    /* Other servers than Amazon's also have buckets with capital letters and '_'. */
    for (size_t i = 0; good && i < length; i++)
        good = isalnum((unsigned char)bucket[i]) || strchr("-._", bucket[i]);
    if (!good)
        return err_set(err, HVD_E_INVAL,
                       "%.200s: this address has no name of a bucket; write s3://BUCKET/PREFIX",
                       where);
    if (rest.length > S3_KEY_MAX - LIMIT_CHECKPOINT_NAME_BYTES)
        return err_set(err, HVD_E_INVAL,
                       "%.200s...: the prefix has more than %d bytes; shorten the "
                       "prefix",
                       where, S3_KEY_MAX - LIMIT_CHECKPOINT_NAME_BYTES);
    while (rest.length > 0 && rest.at[rest.length - 1] == '/')
        rest.length--;
    snprintf(address.bucket, sizeof(address.bucket), "%.*s", (int)length, bucket);
    snprintf(address.prefix, sizeof(address.prefix), "%.*s%s", (int)rest.length, prefix,
             rest.length ? "/" : "");
    while (rest.length > 0 && span_next(&rest, '/', &part))
        if (!part.length || span_is(part, ".") || span_is(part, "..") ||
            !text_is_clean(part.at, part.length))
            return err_set(err, HVD_E_INVAL,
                           "%.200s: the prefix has an empty part, \".\", \"..\" or a byte that is "
                           "not text; write another prefix",
                           where);
    *ret_address = address;
    return 0;
}

/* Checks the address of a server that the user has given; `name` says where it was given. */
int s3_endpoint_check(const char *name, const char *endpoint, struct hvd_err *err)
{
    const char *host = strstr(endpoint, "://");

    if ((!strncmp(endpoint, "http://", 7) || !strncmp(endpoint, "https://", 8)) && host[3] &&
        host[3] != '/' && !strpbrk(endpoint, "?# \"<>@"))
        return 0;
    return err_set(err, HVD_E_INVAL,
                   "%s: \"%.200s\" is not the address of a server; write http://HOST:PORT or "
                   "https://HOST",
                   name, endpoint);
}

/* Appends a text in the encoding of URLs. `slashes` true: a slash stays as it is. */
int s3_encode(struct buf *out, const char *text, bool slashes)
{
    int rc = 0;

    for (; *text && !rc; text++) {
        unsigned char byte = (unsigned char)*text;

        if ((byte < 0x80 && isalnum(byte)) || strchr("-._~", byte) || (slashes && byte == '/'))
            rc = buf_append(out, text, 1);
        else
            rc = buf_printf(out, "%%%02X", byte);
    }
    return rc;
}

/* Appends the URL of an object. The bucket is the first part of the path if the user has named the
 * server, or if a dot in the name of the bucket would not fit the certificate of Amazon's server.
 * Otherwise the bucket is a part of the host name. */
int s3_url(const struct s3_address *address, const char *endpoint, const char *region,
           const char *key, const char *query, struct buf *out)
{
    bool in_path = endpoint || strchr(address->bucket, '.');
    size_t length = endpoint ? strlen(endpoint) : 0;
    int rc;

    while (length > 0 && endpoint[length - 1] == '/')
        length--;
    if (endpoint)
        rc = buf_append(out, endpoint, length);
    else
        rc = buf_printf(out, "https://%s%ss3.%s.%s", in_path ? "" : address->bucket,
                        in_path ? "" : ".", region,
                        strncmp(region, "cn-", 3) != 0 ? "amazonaws.com" : "amazonaws.com.cn");
    if (!rc)
        rc = buf_printf(out, "/%s", in_path ? address->bucket : "");
    if (!rc && key) {
        rc = in_path ? buf_append_text(out, "/") : 0;
        rc = rc ? rc : s3_encode(out, address->prefix, true /* a slash stays */);
        rc = rc ? rc : s3_encode(out, key, true /* a slash stays */);
    }
    if (!rc && query)
        rc = buf_printf(out, "?%s", query);
    return rc;
}
