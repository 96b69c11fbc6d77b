/*
 * s3_metadata.c: asks the metadata service for credentials: a token, the name of the role, and the
 * credentials of the role. Called by s3_keys.c. Invariant: each request has a short time limit,
 * goes through no proxy, and every text of the answer is checked.
 */
#include "state/remote/s3_metadata.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/time.h"
#include "http/client.h"
#include "state/checkpoint/json_text.h"

#include <stdio.h>
#include <string.h>

/* time limit to connect: on a machine outside of Amazon's cloud there is no service */
#define METADATA_CONNECT_US TIME_S
#define METADATA_LIMIT_US   (2 * TIME_S) /* time limit of one request */
#define METADATA_TOKEN_MAX  1024
#define METADATA_MAX        16384 /* bytes of an answer */
#define METADATA_VALUES     64    /* most JSON values of an answer */
/* the path of the role's name; with that name behind it, the path of the credentials */
#define ROLES "/latest/meta-data/iam/security-credentials/"

/* Reads the JSON with the credentials of a role. HVD_E_PROTO: the text is something else. */
int s3_metadata_read(const char *text, size_t length, struct s3_profile *profile,
                     struct hvd_err *err)
{
    const struct {
        const char *name;
        char *into;
        size_t size;
    } fields[] = {
        {"AccessKeyId",      profile->id,     sizeof(profile->id)    },
        { "SecretAccessKey", profile->secret, sizeof(profile->secret)},
        { "Token",           profile->token,  sizeof(profile->token) },
    };
    struct arena memory;
    const char *value;
    json_t *root;
    int rc = json_text_load("metadata service", text, length, METADATA_VALUES, &root, NULL);

    if (rc)
        return err_set(err, rc == HVD_E_NOMEM ? rc : HVD_E_PROTO,
                       "its answer with the credentials cannot be read as JSON");
    arena_init(&memory, 2 * METADATA_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(fields) && !rc; i++) {
        rc = json_text_copy(json_object_get(root, fields[i].name), fields[i].size - 1, &memory,
                            &value);
        if (!rc)
            snprintf(fields[i].into, fields[i].size, "%s", value);
        else
            err_set(err, rc == HVD_E_NOMEM ? rc : HVD_E_PROTO,
                    "its answer with the credentials has no text %s", fields[i].name);
    }
    arena_release(&memory);
    json_decref(root);
    return !rc || rc == HVD_E_NOMEM ? rc : HVD_E_PROTO;
}

/* Sends one request with one header to the service. HVD_E_NOTFOUND: the machine has no role. */
static int metadata_get(struct http_client *client, enum http_method method, const char *url,
                        const char *header, struct buf *answer, struct hvd_err *err)
{
    const struct http_request request = {
        .method = method, .url = url, .headers = &header, .header_count = 1, .body_to = answer
    };
    struct http_answer got;
    int rc;

    buf_clear(answer);
    rc = http_send(client, &request, &got, err);
    if (rc || got.status == 200)
        return rc;
    return err_set(err, got.status == 404 ? HVD_E_NOTFOUND : HVD_E_PROTO,
                   got.status == 404 ? "this machine has no role of IAM (HTTP status %ld)"
                                     : "its answer has the HTTP status %ld",
                   got.status);
}

/* Asks for the credentials of the machine's role, in three requests: for the token that
 * the next requests need, for the name of the role, and for the credentials. */
int s3_metadata_ask(const char *server, struct s3_profile *profile, struct hvd_err *err)
{
    const struct http_config config = { .connect_us = METADATA_CONNECT_US,
                                        .request_us = METADATA_LIMIT_US };
    char header[METADATA_TOKEN_MAX + 64], url[1024];
    struct http_client *client = NULL;
    struct buf answer;
    int rc = http_client_create(&config, &client, err);

    buf_init(&answer, METADATA_MAX);
    snprintf(url, sizeof(url), "%.400s/latest/api/token", server);
    if (!rc)
        rc = metadata_get(client, HTTP_PUT, url, "X-aws-ec2-metadata-token-ttl-seconds: 300",
                          &answer, err);
    if (!rc && (answer.length > METADATA_TOKEN_MAX || !text_is_clean(answer.data, answer.length)))
        rc = err_set(err, HVD_E_PROTO, "its token is longer than %d bytes, or is not plain text",
                     METADATA_TOKEN_MAX);
    snprintf(header, sizeof(header), "X-aws-ec2-metadata-token: %.*s",
             (int)(rc ? 0 : answer.length), buf_text(&answer));
    snprintf(url, sizeof(url), "%.400s" ROLES, server);
    if (!rc)
        rc = metadata_get(client, HTTP_GET, url, header, &answer, err);
    /* The first line is the name of the role. */
    snprintf(url, sizeof(url), "%.400s" ROLES "%.*s", server,
             (int)(rc ? 0 : strcspn(buf_text(&answer), "\r\n ?#")), buf_text(&answer));
    if (!rc)
        rc = metadata_get(client, HTTP_GET, url, header, &answer, err);
    if (!rc)
        rc = s3_metadata_read(buf_text(&answer), answer.length, profile, err);
    explicit_bzero(header, sizeof(header));
    buf_release(&answer);
    http_client_free(client);
    return rc;
}
