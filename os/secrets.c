/*
 * secrets.c: called by the mains of the driver and of the agent, before a key is read. A process
 * that is not dumpable writes no core. The limit of core dumps is not lowered for that purpose: the
 * workers would inherit it, and their users may want cores.
 */
#include "os/secrets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* Forbids other processes to read the memory of this process. HVD_TRACEABLE=1 leaves this out, for
 * a user who wants to debug the process. */
void secrets_seal(void)
{
    const char *traceable = getenv("HVD_TRACEABLE");

    if (!traceable || strcmp(traceable, "1") != 0)
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* it cannot fail for these arguments */
}
