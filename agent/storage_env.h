/*
 * storage_env.h: the variables AWS_* of the driver, with which this agent writes checkpoints to S3
 * when the host has no credentials of its own.
 */
#ifndef AGENT_STORAGE_ENV_H
#define AGENT_STORAGE_ENV_H

#include "base/err.h"
#include "base/opt_table.h"

/* Sets the variables of the list, "AWS_NAME=value", that this host does not have, and wipes the
 * texts. Credentials are taken only together, and only if the host names none: neither a variable
 * nor ~/.aws/credentials. The path of a file is taken only if the file can be read here.
 * HVD_E_INVAL: a text is none of these variables; the error quotes no value. Called before threads
 * start. */
int storage_env_take(const struct opt_list *list, struct hvd_err *err) MUST_CHECK;

#endif
