#include "tests/lib/core_tape.h"
#include "tests/lib/test.h"

static struct core_tape tape;

TAPE_CASE(a_driver_begins, "start | record TERM 1\n")

TESTS(CASE(a_driver_begins))
