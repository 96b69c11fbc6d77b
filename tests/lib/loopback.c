/*
 * loopback.c: makes the address of loopback.h. Called by tests and their fakes before they listen.
 * Invariant: the addresses 127.64.0.0 to 127.127.255.255 are as many as the kernel has pids.
 */
#include "tests/lib/loopback.h"

#include "base/base.h"

#include <stdio.h>
#include <unistd.h>

const char *loopback_own(void)
{
    static _Thread_local char text[16];
    uint32_t pid = (uint32_t)getpid();

    (void)snprintf(text, sizeof(text), "127.%u.%u.%u", 64 + (pid >> 16) % 64, pid >> 8 & 255,
                   pid & 255);
    return text;
}
