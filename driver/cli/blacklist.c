/*
 * blacklist.c: the verb "blacklist": shows which hosts and slots have failed; with "clear" it makes
 * the driver forget the failures of a host or slot. On the connection these are two requests:
 * "blacklist", which control/tables.c answers, and "clear", which the core answers (EVENT_CLEAR).
 */
#include "driver/cli/verbs.h"
#include "driver/control/tables.h"

#include <string.h>

/* Turns "blacklist clear HOST" into the request "clear" with the host or slot as its argument.
 * Without the word "clear" nothing is done here: the first word is then the name of the job. */
static int blacklist_read(struct cli_request *request, struct hvd_err *err)
{
    if (!request->word_count || strcmp(request->words[0], "clear") != 0)
        return 0;
    (void)cli_next_word(request);
    request->ask.verb = "clear";
    return cli_read_slot(request, err);
}

const struct cli_verb cli_blacklist = {
    .name = "blacklist",
    .words = "[clear HOST[:SLOT]] ",
    .about = "Shows which hosts and slots have failed, and when they are used again; with clear, "
             "forgets the failures of a host or slot.",
    .read = blacklist_read,
    .repeats = true,
    .orphan_table = table_blacklist,
    .ended_too = true,
};
