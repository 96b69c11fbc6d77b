/*
 * s3_keys.c: looks for credentials where other programs for S3 look: environment, files, metadata
 * service. Called by s3_call.c when a storage is opened, and when the server says that its
 * credentials are too old. Invariant: no error text has a secret, and credentials of two sources
 * are never mixed.
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

#define KEYS_FILE_MAX (1024 * 1024) /* most bytes that are read of a file with profiles */
/* The time for which credentials of the metadata service are used before the service is asked
 * again. The service renews them at least five minutes before they end. */
#define KEYS_FRESH_US (4 * TIME_MIN)

/* The last answer of the metadata service, for all threads of the process. */
static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;
static struct s3_profile keys_metadata;
static int64_t keys_until_us; /* until when keys_metadata is used; 0: the service must be asked */

/* Forgets what the metadata service has answered, so that s3_keys_find asks it again. Called when
 * the server has refused the credentials as too old. */
void s3_keys_forget(void)
{
    pthread_mutex_lock(&keys_lock);
    keys_until_us = 0;
    explicit_bzero(&keys_metadata, sizeof(keys_metadata));
    pthread_mutex_unlock(&keys_lock);
}

/* Returns the value of a variable; NULL: the variable is not set, or empty. */
static const char *keys_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

/* Copies the value of a variable. If the variable is not set, `into` stays as it is. */
static int keys_take_variable(const char *name, char *into, size_t size, struct hvd_err *err)
{
    const char *value = keys_variable(name);

    if (!value)
        return 0;
    if (strlen(value) >= size || !text_is_clean(value, strlen(value)))
        return err_set(err, HVD_E_LIMIT,
                       "%s: the value of this variable is longer than %zu bytes, or is not plain "
                       "text; correct the "
                       "value",
                       name, size - 1);
    snprintf(into, size, "%s", value);
    return 0;
}

/* Names the files with profiles, for error texts. */
static const char *keys_files(void)
{
    return keys_variable("AWS_SHARED_CREDENTIALS_FILE") || keys_variable("AWS_CONFIG_FILE")
               ? "the files of AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE"
               : "~/.aws";
}

/* Writes the name of a profile as the source of a setting, for error texts. */
static void keys_name_profile(const char *profile, char from[S3_FROM_MAX])
{
    snprintf(from, S3_FROM_MAX, "the profile \"%.60s\" in %s", profile, keys_files());
}

/* Reads a file of ~/.aws. A file that does not exist is no error, unless the value of `variable`
 * names it. */
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

/* Takes the credentials of the metadata service: those of the last answer, if that is recent;
 * otherwise the service is asked now. */
static int keys_ask(struct s3_profile *found, struct hvd_err *err)
{
    const char *server = keys_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *disabled = keys_variable("AWS_EC2_METADATA_DISABLED");
    int64_t now_us = clock_now_us();
    int rc = 0;

    if (disabled && !strcmp(disabled, "true"))
        return err_set(err, HVD_E_NOTFOUND, "AWS_EC2_METADATA_DISABLED is \"true\"");
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

/* Takes id, secret and token from the environment or, if AWS_ACCESS_KEY_ID is not set there, from
 * the profile in the files: never a part of each. Region and endpoint come from the profile; the
 * caller then lets the environment replace them. */
static int keys_collect(struct s3_keys *keys, const char *profile, struct hvd_err *err)
{
    struct s3_profile *file = mem_zalloc(sizeof(*file));
    struct s3_profile *found = &keys->found;
    int rc = HVD_E_NOMEM;

    if (!file)
        return err_set(err, rc, "no memory for the credentials of S3; free memory on this host");
    rc = keys_take_variable("AWS_ACCESS_KEY_ID", found->id, sizeof(found->id), err);
    if (!rc)
        rc = keys_take_variable("AWS_SECRET_ACCESS_KEY", found->secret, sizeof(found->secret), err);
    if (!rc && *found->id)
        rc = keys_take_variable("AWS_SESSION_TOKEN", found->token, sizeof(found->token), err);
    if (!rc && !*found->id != !*found->secret)
        rc = err_set(err, HVD_E_INVAL, "%s: this variable is set, and %s is not; set both or none",
                     *found->id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                     *found->id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
    if (!rc && *found->id)
        snprintf(keys->from, sizeof(keys->from), "the environment (AWS_ACCESS_KEY_ID)");
    if (!rc)
        rc = keys_read_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile, file, err);
    if (!rc)
        rc = keys_read_file("AWS_CONFIG_FILE", "config", profile, file, err);
    if (!rc && !*found->id && *file->id && *file->secret) {
        memcpy(found->id, file->id, sizeof(found->id));
        memcpy(found->secret, file->secret, sizeof(found->secret));
        memcpy(found->token, file->token, sizeof(found->token));
        keys_name_profile(profile, keys->from);
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

/* Takes a setting from two variables; if both are set, the second one counts. `from` becomes the
 * name of the variable that counts. */
static int keys_take_setting(const char *const names[2], char *into, size_t size,
                             char from[S3_FROM_MAX], struct hvd_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < 2 && !rc; i++) {
        rc = keys_take_variable(names[i], into, size, err);
        if (keys_variable(names[i]))
            snprintf(from, S3_FROM_MAX, "%s", names[i]);
    }
    return rc;
}

/* Finds credentials: in the environment, else in the profile of the files, else from the metadata
 * service. Also finds region, endpoint and certificates. On failure the secrets are wiped. */
int s3_keys_find(struct s3_keys *ret_keys, struct hvd_err *err)
{
    static const char *const region_names[] = { "AWS_DEFAULT_REGION", "AWS_REGION" };
    static const char *const endpoint_names[] = { "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3" };
    const char *named = keys_variable("AWS_PROFILE"), *profile = named ? named : "default";
    struct s3_keys *keys = ret_keys;
    struct s3_profile *found = &keys->found;
    struct hvd_err why = { .text = "" };
    char endpoint_from[S3_FROM_MAX];
    int rc;

    memset(keys, 0, sizeof(*keys));
    keys_name_profile(profile, keys->region_from);
    keys_name_profile(profile, endpoint_from);
    rc = keys_collect(keys, profile, err);
    if (!rc)
        rc = keys_take_setting(region_names, found->region, sizeof(found->region),
                               keys->region_from, err);
    if (!rc && !*found->region) {
        snprintf(found->region, sizeof(found->region), "us-east-1");
        snprintf(keys->region_from, sizeof(keys->region_from), "the default of hvd-elastic");
    }
    if (!rc &&
        strspn(found->region, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(found->region))
        rc = err_set(err, HVD_E_INVAL,
                     "%s: \"%s\" is not the name of a region; write a name such as us-east-1",
                     keys->region_from, found->region);
    if (!rc)
        rc = keys_take_setting(endpoint_names, found->endpoint, sizeof(found->endpoint),
                               endpoint_from, err);
    if (!rc && *found->endpoint)
        rc = s3_endpoint_check(endpoint_from, found->endpoint, err);
    if (!rc)
        rc = keys_take_variable("AWS_CA_BUNDLE", keys->ca_file, sizeof(keys->ca_file), err);
    if (!rc && !*found->id) {
        snprintf(keys->from, sizeof(keys->from), "the metadata service");
        if (keys_ask(found, &why))
            rc =
                err_set(err, HVD_E_DENIED,
                        "credentials of S3: AWS_ACCESS_KEY_ID is not set, the profile \"%.60s\" in "
                        "%s has none, and the metadata service gives none: %.200s; set "
                        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write the profile",
                        profile, keys_files(), why.text);
    }
    if (rc)
        explicit_bzero(keys, sizeof(*keys)); /* the secrets of the caller's keys */
    return rc;
}
