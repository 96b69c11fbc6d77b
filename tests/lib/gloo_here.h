/*
 * gloo_here.h: the module of the Gloo link, for programs that are not beside it.
 */
#ifndef TESTS_LIB_GLOO_HERE_H
#define TESTS_LIB_GLOO_HERE_H

#include <stdbool.h>

/* Names the module of this build in the environment, unless the caller of the program has named
 * one. false: this build has none (HVD_GLOO=OFF); the first call prints that Gloo is skipped. Call
 * it before there are other threads. */
bool gloo_here(void);

#endif
