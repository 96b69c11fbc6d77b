/*
 * gloo_here.c: tells the library where the Gloo module of this build is.
 */
#include "tests/lib/gloo_here.h"

#include <stdio.h>
#include <stdlib.h>

bool gloo_here(void)
{
#ifdef GLOO_MODULE_BUILT
    return !setenv("HVD_GLOO_LIBRARY", GLOO_MODULE_BUILT, 0);
#else
    static bool told;

    if (!told)
        fprintf(stderr, "Gloo is skipped: this build is without it; build with -DHVD_GLOO=ON\n");
    told = true;
    return false;
#endif
}
