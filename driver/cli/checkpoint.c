/*
 * checkpoint.c: the verb "checkpoint": a running job writes a checkpoint now. The core of the
 * driver requests it (EVENT_WANT_CHECKPOINT). With --wait the driver answers when the checkpoint is
 * complete, or says why there is none; the training goes on meanwhile, with and without --wait.
 * verbs.c has the row of this verb.
 */
#include "driver/cli/verbs.h"

const struct cli_verb cli_checkpoint = {
    .name = "checkpoint",
    .words = "",
    .about = "Writes the newest commit of a running job to its --checkpoint-dir, without waiting "
             "for the next interval, and prints the name of the checkpoint.",
    .read = cli_read_wait,
    .unfinished = "the driver has ended before the checkpoint was complete; 'hvd-elastic "
                  "checkpoints' says which checkpoints are complete",
};
