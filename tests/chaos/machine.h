/*
 * machine.h: on what a figure was measured.
 */
#ifndef TESTS_CHAOS_MACHINE_H
#define TESTS_CHAOS_MACHINE_H

#include <stddef.h>

/* "2 cores, Linux 6.1.0" */
void machine_say(char *text, size_t size);

#endif
