/*
 * remote.c: makes the kinds of this folder known to state/checkpoint/storage.c. Called by the mains
 * of hvd-elastic and hvd-agent. Invariant: libhvd does not call this file, so libhvd needs no
 * libcurl.
 */
#include "state/remote/remote.h"

#include "state/checkpoint/storage.h"
#include "state/remote/command_storage.h"
#include "state/remote/s3_storage.h"

/* Lets this program open addresses that begin with "s3://" or "command://". */
void remote_storage_add(void)
{
    static const struct checkpoint_store_kind s3 = { S3_SCHEME, s3_storage_open };
    static const struct checkpoint_store_kind command = { COMMAND_SCHEME, command_storage_open };

    checkpoint_store_add_kind(&s3);
    checkpoint_store_add_kind(&command);
}
