/*
 * s3_keys.h: the credentials with which requests to S3 are signed, and the settings beside them:
 * region, endpoint, certificates. Each comes from the environment, else from the files of ~/.aws;
 * credentials also from the metadata service of a machine in Amazon's cloud.
 */
#ifndef STATE_REMOTE_S3_KEYS_H
#define STATE_REMOTE_S3_KEYS_H

#include "base/limits.h"
#include "state/remote/s3_profile.h"

#define S3_FROM_MAX 256

struct s3_keys {
    struct s3_profile found;        /* id, secret, token, region and endpoint */
    char from[S3_FROM_MAX];         /* the source of the credentials, for error texts */
    char region_from[S3_FROM_MAX];  /* the source of the region */
    char ca_file[LIMIT_PATH_BYTES]; /* "": the certificate authorities of the system */
};

/* Finds the credentials and settings; may ask the metadata service, for a few seconds at most.
 * HVD_E_DENIED: no source has credentials, and the text names all sources. HVD_E_INVAL,
 * HVD_E_LIMIT: a setting is wrong, and the text names its source. */
int s3_keys_find(struct s3_keys *ret_keys, struct hvd_err *err) MUST_CHECK;

/* Called when the server has refused the credentials as too old: the next s3_keys_find asks the
 * metadata service again. */
void s3_keys_forget(void);

#endif
