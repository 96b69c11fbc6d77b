/*
 * places.h: which rank a command is told at its start. This rank counts until any worker joins:
 * then the rounds give the ranks. Each rank is told to one command at a time, so plain commands,
 * which are in no round, may share the work by HVD_RANK and HVD_SIZE.
 */
#ifndef DRIVER_CORE_PLACES_H
#define DRIVER_CORE_PLACES_H

#include "driver/core/core_internal.h"

void places_release(struct core *core);

/* Gives a rank to a worker that is launched before any worker has joined: the rank that its slot
 * had before; if another worker has that rank, the rank of a worker that has ended or is dead; if
 * there is none, a new rank; if --max-np allows no new rank, the rank of a command that has ended
 * with 0. When no memory is left, the step fails. */
void places_claim(struct core *core, const struct worker *worker);

/* Gives the worker the rank that an earlier driver has given it. False: there can be no such rank.
 * When no memory is left, the step fails. */
bool places_restore(struct core *core, const struct worker *worker, uint32_t rank);

/* Returns the place (ranks and sizes) that LAUNCH tells a worker that has a rank. A slot that keeps
 * its rank keeps its whole place; a worker with the rank of `fresh` gets the place `fresh`. All
 * workers that are launched together claim their ranks before the first of them is told. */
const struct place *places_of(const struct core *core, const struct worker *worker,
                              const struct place *fresh);

/* A plain command has ended with 0: the work of its rank is done, and its rank is not told
 * again. */
void places_note_done(struct core *core, const struct worker *worker);

#endif
