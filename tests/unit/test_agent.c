#include "tests/lib/agent_script.h"
#include "tests/lib/test.h"
static struct script s;
static void x(struct test *t)
{
    CHECK_OK(t, script_init(&s));
out:
    script_release(&s);
}
TESTS(CASE(x))
