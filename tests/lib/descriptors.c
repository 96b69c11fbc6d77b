/*
 * descriptors.c: sets the limit of descriptors.h. Called by tests of listeners and links, while no
 * other thread opens or closes a descriptor. Invariant: the lowest free descriptors are the ones
 * that stay allowed, because the kernel gives them out first.
 */
#include "tests/lib/descriptors.h"

#include <unistd.h>

int descriptors_allow(int count, struct rlimit *ret_before)
{
    struct rlimit few;
    int next[DESCRIPTORS_MAX], last = -1;

    if (count < 1 || count > DESCRIPTORS_MAX || getrlimit(RLIMIT_NOFILE, ret_before))
        return -1;
    few = *ret_before;
    for (int i = 0; i < count; i++)
        next[i] = last = dup(STDERR_FILENO);
    for (int i = 0; i < count; i++)
        close(next[i]);
    few.rlim_cur = (rlim_t)last + 1;
    return last < 0 ? -1 : setrlimit(RLIMIT_NOFILE, &few);
}
