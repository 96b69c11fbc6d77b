/*
 * s3_keys.c: looks for credentials where other programs for S3 look: environment, files, metadata
 * service. Called by s3_call.c when a storage is opened, and when the server says that they are too
 * old. Invariant: no error text has a secret, and credentials of two sources are never mixed.
 */
#include "state/remote/s3_keys.h"

#include "base/mem.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/file.h"
#include "state/remote/s3_address.h"
#include "state/remote/s3_metadata.h"

#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEYS_FILE_MAX (1024 * 1024)
/* How long the credentials of the metadata service are used without another look. The service
 * renews them at least five minutes before they end. */
#define KEYS_FRESH_US (4 * TIME_MIN)

/* The last answer of the metadata service, for all threads of the process. */
static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;
static struct s3_profile keys_metadata;
static int64_t keys_until_us; /* 0: the service must be asked */

void s3_keys_forget(void)
{
    pthread_mutex_lock(&keys_lock);
    keys_until_us = 0;
    explicit_bzero(&keys_metadata, sizeof(keys_metadata));
    pthread_mutex_unlock(&keys_lock);
}

void s3_keys_release(struct s3_keys *keys)
{
    explicit_bzero(keys, sizeof(*keys));
}

/* Returns a variable, NULL if it is not set or empty. */
static const char *keys_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* Copies a variable; without it `into` stays. */
static int keys_take_variable(const char *name, char *into, size_t size, struct hvd_err *err)
{
    const char *value = keys_variable(name);

    if (!value)
        return 0;
    if (strlen(value) >= size || !text_is_clean(value, strlen(value)))
        return err_set(err, HVD_E_LIMIT, "%s: is longer than %zu bytes, or no text; correct it",
                       name, size - 1);
    snprintf(into, size, "%s", value);
    return 0;
}

/* Reads a file of ~/.aws, unless it is not there. `variable` names another file. */
static int keys_read_file(const char *variable, const char *name, const char *profile,
                          struct s3_profile *found, struct hvd_err *err)
{
    const char *path = keys_variable(variable), *home = keys_variable("HOME");
    char own[LIMIT_PATH_BYTES], room[4096];
    struct passwd user, *known = NULL;
    struct buf text;
    int rc;

    if (!path) {
        if (!home && !getpwuid_r(geteuid(), &user, room, sizeof(room), &known) && known)
            home = known->pw_dir;
        snprintf(own, sizeof(own), "%s/.aws/%s", home ? home : "", name);
        path = own;
    }
    buf_init(&text, KEYS_FILE_MAX);
    rc = file_read(path, &text, err);
    if (!rc)
        rc = s3_profile_read(path, (struct span){ buf_text(&text), text.length }, profile, found,
                             err);
    else if (rc == HVD_E_NOTFOUND && path == own)
        rc = 0;
    buf_release(&text);
    return rc;
}

/* Takes the credentials of the metadata service, which were asked for shortly before or are asked
 * for now. */
static int keys_ask(struct s3_profile *found, struct hvd_err *err)
{
    const char *server = keys_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *disabled = keys_variable("AWS_EC2_METADATA_DISABLED");
    int64_t now_us = clock_now_us();
    int rc = 0;

    if (disabled && !strcmp(disabled, "true"))
        return err_set(err, HVD_E_NOTFOUND, "AWS_EC2_METADATA_DISABLED is set");
    pthread_mutex_lock(&keys_lock);
    if (keys_until_us <= now_us) {
        memset(&keys_metadata, 0, sizeof(keys_metadata));
        rc = s3_metadata_ask(server ? server : S3_METADATA_SERVER, &keys_metadata, err);
        keys_until_us = rc ? 0 : now_us + KEYS_FRESH_US;
    }
    if (!rc) {
        memcpy(found->id, keys_metadata.id, sizeof(found->id));
        memcpy(found->secret, keys_metadata.secret, sizeof(found->secret));
        memcpy(found->token, keys_metadata.token, sizeof(found->token));
    }
    pthread_mutex_unlock(&keys_lock);
    return rc;
}

/* Fills in the credentials of the environment, if it has them. */
static int keys_from_environment(struct s3_keys *keys, struct hvd_err *err)
{
    struct s3_profile *found = &keys->found;
    int rc = keys_take_variable("AWS_ACCESS_KEY_ID", found->id, sizeof(found->id), err);

    if (!rc)
        rc = keys_take_variable("AWS_SECRET_ACCESS_KEY", found->secret, sizeof(found->secret), err);
    if (!rc && *found->id)
        rc = keys_take_variable("AWS_SESSION_TOKEN", found->token, sizeof(found->token), err);
    if (!rc && !*found->id != !*found->secret)
        rc = err_set(err, HVD_E_INVAL, "%s: is set, and %s is not; set both or none",
                     *found->id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                     *found->id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
    if (!rc && *found->id)
        keys->from = "the environment (AWS_ACCESS_KEY_ID)";
    return rc;
}

/* Takes the settings of the profile that are not known yet; the credentials only together. */
static int keys_from_files(struct s3_keys *keys, const char *profile, struct hvd_err *err)
{
    struct s3_profile *file = mem_zalloc(sizeof(*file));
    struct s3_profile *found = &keys->found;
    int rc = HVD_E_NOMEM;

    if (!file)
        return err_set(err, rc, "credentials of S3: %s", err_text(rc));
    rc = keys_read_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile, file, err);
    if (!rc)
        rc = keys_read_file("AWS_CONFIG_FILE", "config", profile, file, err);
    if (!rc && !*found->id && *file->id && *file->secret) {
        memcpy(found->id, file->id, sizeof(found->id));
        memcpy(found->secret, file->secret, sizeof(found->secret));
        memcpy(found->token, file->token, sizeof(found->token));
        keys->from = "the profile of AWS_PROFILE in ~/.aws";
    }
    if (!rc) {
        memcpy(found->region, file->region, sizeof(found->region));
        memcpy(found->endpoint, file->endpoint, sizeof(found->endpoint));
        found->found = file->found;
    }
    explicit_bzero(file, sizeof(*file));
    mem_free(file);
    return rc;
}

int s3_keys_find(struct s3_keys *ret_keys, struct hvd_err *err)
{
    const char *profile = keys_variable("AWS_PROFILE");
    struct s3_keys *keys = ret_keys;
    struct s3_profile *found = &keys->found;
    struct hvd_err why = { .text = "" };
    int rc;

    memset(keys, 0, sizeof(*keys));
    rc = keys_from_environment(keys, err);
    if (!rc)
        rc = keys_from_files(keys, profile ? profile : "default", err);
    if (!rc)
        rc = keys_take_variable("AWS_DEFAULT_REGION", found->region, sizeof(found->region), err);
    if (!rc)
        rc = keys_take_variable("AWS_REGION", found->region, sizeof(found->region), err);
    if (!rc)
        rc = keys_take_variable("AWS_ENDPOINT_URL", found->endpoint, sizeof(found->endpoint), err);
    if (!rc)
        rc = keys_take_variable("AWS_ENDPOINT_URL_S3", found->endpoint, sizeof(found->endpoint),
                                err);
    if (!rc && *found->endpoint)
        rc = s3_endpoint_check("AWS_ENDPOINT_URL", found->endpoint, err);
    if (!rc)
        rc = keys_take_variable("AWS_CA_BUNDLE", keys->ca_file, sizeof(keys->ca_file), err);
    if (!rc && !*found->region)
        snprintf(found->region, sizeof(found->region), "us-east-1");
    if (!rc &&
        strspn(found->region, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(found->region))
        rc = err_set(err, HVD_E_INVAL,
                     "AWS_REGION: \"%s\" is no name of a region; write one as us-east-1",
                     found->region);
    if (!rc && !*found->id) {
        keys->from = "the metadata service";
        if (keys_ask(found, &why))
            rc =
                err_set(err, HVD_E_DENIED,
                        "credentials of S3: AWS_ACCESS_KEY_ID is not set, the profile \"%.60s\" in "
                        "~/.aws has none, and the metadata service gives none: %.200s; set "
                        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write the profile",
                        profile ? profile : "default", why.text);
    }
    if (rc)
        s3_keys_release(keys);
    return rc;
}
