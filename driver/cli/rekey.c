/*
 * rekey.c: the verb "rekey": gives each host of a running job a new key, and ends the old keys. The
 * core of the driver does it (EVENT_REKEY). With --wait the driver reports each step until it
 * accepts no old key any more.
 */
#include "driver/cli/verbs.h"

const struct cli_verb cli_rekey = {
    .name = "rekey",
    .words = "",
    .about = "Gives the agent of each host a new key while the job trains, and ends the old keys. "
             "A key that was stolen before is worth nothing afterwards.",
    .read = cli_read_wait,
    .unfinished =
        "the driver has ended before all hosts had new keys; if the job goes on, its next driver "
        "changes the other keys, too: 'hvd-elastic rekey' waits until all keys are changed",
};
