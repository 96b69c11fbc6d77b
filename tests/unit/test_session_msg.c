#include "tests/lib/session_tape.h"
#include "tests/lib/test.h"

static struct tape tape;

TAPE_CASE(nothing, "state joining |\n")
TESTS(CASE(nothing))
