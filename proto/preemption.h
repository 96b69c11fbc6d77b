/*
 * preemption.h: what the option --preemption may say: who is asked whether this machine is about to
 * go away. Pure: the driver checks the option with it, and the agent follows it (agent/notice).
 */
#ifndef PROTO_PREEMPTION_H
#define PROTO_PREEMPTION_H

#include "base/text.h"

enum preemption_giver {
    PREEMPTION_AWS = 1 << 0,
    PREEMPTION_GCP = 1 << 1,
    PREEMPTION_AZURE = 1 << 2,
    PREEMPTION_SLURM = 1 << 3
};

struct preemption {
    bool automatic;  /* the agent finds out which of the givers (clouds, SLURM) its machine has */
    unsigned givers; /* bits of enum preemption_giver; 0 and not automatic: only SIGTERM counts */
    /* path of the file whose appearance is a notice; length 0: none. It points into the text, as
     * does `command` */
    struct span file;
    struct span command; /* command that the agent runs by /bin/sh -c; length 0: none */
};

/* Reads "auto", "none", or a list: "aws,gcp,azure,slurm,file:PATH,command:CMD". A command is the
 * last item, because it may have commas. Fails with HVD_E_INVAL, HVD_E_LIMIT. */
int preemption_parse(const char *text, struct preemption *ret_preemption,
                     struct hvd_err *err) MUST_CHECK;

#endif
