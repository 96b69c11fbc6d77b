/*
 * s3_metadata.h: the metadata service, which gives programs on a machine in Amazon's cloud the
 * credentials of the machine's role (IMDSv2).
 */
#ifndef STATE_REMOTE_S3_METADATA_H
#define STATE_REMOTE_S3_METADATA_H

#include "state/remote/s3_profile.h"

/* The address of the service, unless AWS_EC2_METADATA_SERVICE_ENDPOINT has another one. */
#define S3_METADATA_SERVER "http://169.254.169.254"

/* Asks for id, secret and token: three requests, each with a time limit of two seconds. HVD_E_BUSY:
 * no answer. HVD_E_NOTFOUND: the machine has no role. HVD_E_PROTO: the answer is
 * not one of this service. */
int s3_metadata_ask(const char *server, struct s3_profile *profile, struct hvd_err *err) MUST_CHECK;

/* Reads the JSON with the credentials. HVD_E_PROTO, HVD_E_NOMEM. */
int s3_metadata_read(const char *text, size_t length, struct s3_profile *profile,
                     struct hvd_err *err) MUST_CHECK;

#endif
