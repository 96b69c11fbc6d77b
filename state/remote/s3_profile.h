/*
 * s3_profile.h: the files in which users of AWS keep their credentials, "~/.aws/credentials" and
 * "~/.aws/config": the few settings of one profile that are needed here.
 */
#ifndef STATE_REMOTE_S3_PROFILE_H
#define STATE_REMOTE_S3_PROFILE_H

#include "base/text.h"

#define S3_ID_MAX       256
#define S3_SECRET_MAX   512
#define S3_TOKEN_MAX    8192
#define S3_REGION_MAX   64
#define S3_ENDPOINT_MAX 1024

/* The settings of one profile. Each text is "" if no file has it. */
struct s3_profile {
    bool found; /* true: a file has the section of this profile */
    char id[S3_ID_MAX];
    char secret[S3_SECRET_MAX];
    char token[S3_TOKEN_MAX];
    char region[S3_REGION_MAX];
    char endpoint[S3_ENDPOINT_MAX];
};

/* Reads the section of this profile: "[NAME]", or "[profile NAME]". A setting that
 * `profile` has already stays. Indented lines belong to settings of other programs, and are
 * ignored. HVD_E_LIMIT: a value is longer than its field; the text names file and line, never the
 * value. */
int s3_profile_read(const char *path, struct span text, const char *name,
                    struct s3_profile *profile, struct hvd_err *err) MUST_CHECK;

#endif
