/*
 * s3_keys.h: the credentials with which requests to S3 are signed, and the settings beside them:
 * region, endpoint, certificates. From the environment, else from the files of ~/.aws, else from
 * the metadata service of a machine in Amazon's cloud.
 */
#ifndef STATE_REMOTE_S3_KEYS_H
#define STATE_REMOTE_S3_KEYS_H

#include "base/limits.h"
#include "state/remote/s3_profile.h"

struct s3_keys {
    struct s3_profile found;        /* id, secret, token, region and endpoint */
    const char *from;               /* the source of the credentials, for error texts */
    char ca_file[LIMIT_PATH_BYTES]; /* "": the certificate authorities of the system */
};

/* Finds them; may ask the metadata service, for a few seconds at most. HVD_E_DENIED: there are
 * none, and the text names the places that were looked at. HVD_E_INVAL, HVD_E_LIMIT: a setting is
 * wrong. */
int s3_keys_find(struct s3_keys *ret_keys, struct hvd_err *err) MUST_CHECK;

/* The server has refused the credentials as too old: the next s3_keys_find asks the metadata
 * service again. */
void s3_keys_forget(void);

/* Wipes the secrets. */
void s3_keys_release(struct s3_keys *keys);

#endif
