#include "tests/chaos/machine.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

void machine_say(char *text, size_t size)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct utsname system;

    if (uname(&system) < 0)
        snprintf(text, size, "%ld cores", cores);
    else
        snprintf(text, size, "%ld cores, %.40s %.60s", cores, system.sysname, system.release);
}
