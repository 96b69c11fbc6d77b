/*
 * launch_text.h: what a start of an agent looks like on the outside: the words that ssh is given,
 * and what is said when it came to nothing.
 */
#ifndef DRIVER_HOSTS_LAUNCH_TEXT_H
#define DRIVER_HOSTS_LAUNCH_TEXT_H

#include "base/vec.h"
#include "driver/hosts/command.h"
#include "driver/hosts/launch.h"

#define LAUNCH_PORT_MAX 24

struct launch_words {
    struct VEC(const char *) argv; /* ends in NULL; the words are borrowed from the config ... */
    char port[LAUNCH_PORT_MAX];    /* ... and from here */
};

void launch_words_init(struct launch_words *words);
void launch_words_release(struct launch_words *words);

/* The one word that the shell of the other host reads, whichever shell that is. */
int launch_remote(const struct launch_config *config, struct buf *command) MUST_CHECK;

/* remote as launch_remote gave it. 0 or HVD_E_NOMEM. */
int launch_ssh(const struct launch_config *config, const char *host, const char *remote,
               struct launch_words *words) MUST_CHECK;
int launch_local(const struct launch_config *config, struct launch_words *words) MUST_CHECK;

/* True when the agent is there now; otherwise err says what failed, and where. */
bool launch_worked(const struct command_spec *spec, const struct command_end *end, const char *host,
                   bool local, struct hvd_err *err);

#endif
