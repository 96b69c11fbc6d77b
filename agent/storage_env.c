/*
 * storage_env.c: takes the credentials and settings of S3 that the driver has. main.c calls it with
 * the lines of standard input. Invariant: a setting that the host has itself stays as it is, and
 * only names that begin with AWS_ are set, so no line of the driver changes how the agent runs.
 */
#include "agent/storage_env.h"

#include "base/base.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STORAGE_PREFIX   "AWS_"
#define STORAGE_NAME_MAX 128

/* Variables that say who uses S3. They belong together: the agent takes all of the driver's, or
 * none, if the host has one of them. */
static const char *const storage_credentials[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                                   "AWS_SESSION_TOKEN", "AWS_PROFILE",
                                                   "AWS_SHARED_CREDENTIALS_FILE" };
/* Variables whose value is the path of a file. */
static const char *const storage_files[] = { "AWS_CA_BUNDLE", "AWS_CONFIG_FILE",
                                             "AWS_SHARED_CREDENTIALS_FILE" };

/* true: the list has this name. */
static bool storage_is_one(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* Sets the variables of the list in the environment of the agent, as far as the host does not have
 * them. After an error the loop goes on, to wipe the text of every item: it may be a secret. */
int storage_env_take(const struct opt_list *list, struct hvd_err *err)
{
    const char *home = getenv("HOME");
    char path[LIMIT_PATH_BYTES];
    bool has_own, wanted;
    int rc = 0;

    snprintf(path, sizeof(path), "%s/.aws/credentials", home ? home : "");
    has_own = !access(path, R_OK); /* the host has credentials of its own */
    for (size_t i = 0; i < ARRAY_SIZE(storage_credentials); i++)
        has_own = has_own || getenv(storage_credentials[i]);

    for (size_t i = 0; i < list->count; i++) {
        char *entry = list->items[i];
        size_t length = strcspn(entry, "=");
        char name[STORAGE_NAME_MAX];

        if (!rc && (strncmp(entry, STORAGE_PREFIX, strlen(STORAGE_PREFIX)) != 0 || !entry[length] ||
                    length >= sizeof(name)))
            rc = err_set(
                err, HVD_E_INVAL,
                "storage-env: item %zu has not the form AWS_NAME=value, with a name of less "
                "than %d bytes; write the item so, or leave it out",
                i + 1, STORAGE_NAME_MAX);
        snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : 0), entry);
        /* Credentials are taken only if this host has none at all; another variable only if the
         * host does not have this one. The path of a file that this user cannot read is left out.
         */
        wanted = storage_is_one(name, storage_credentials, ARRAY_SIZE(storage_credentials))
                     ? !has_own
                     : !getenv(name);
        if (storage_is_one(name, storage_files, ARRAY_SIZE(storage_files)))
            wanted = wanted && !access(entry + length + 1, R_OK);
        if (!rc && wanted && setenv(name, entry + length + 1, 1))
            rc = err_set(err, HVD_E_NOMEM,
                         "storage-env: no memory for the variable %s; free memory on this host",
                         name);
        explicit_bzero(entry, strlen(entry));
    }
    return rc;
}
