/*
 * test_report_call.c: hvd_report in a program that hvd-elastic has not started: a job of one
 * worker, whose values are not shown. The codes are those of any job.
 */
#include "hvd/hvd.h"
#include "tests/lib/test.h"

#include <math.h>
#include <string.h>

/* Not tortured: a round that lacks memory ends in the middle of the loop, as in test_job.c. */
TEST_FLAGS(only_a_good_name_in_a_round_is_taken, TEST_NO_TORTURE)
{
    static const char *const bad[] = { "", "a b", "<b>", "\"", "a\nb", "\x1b[31m", "\xff" };
    char longest[65];
    hvd_state *state = NULL;
    int64_t step = 0;

    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    CHECK_CODE(t, hvd_report("loss", 1), HVD_E_STATE);
    CHECK_OK(t, hvd_init());
    CHECK_CODE(t, hvd_report("loss", 1), HVD_E_STATE);
    CHECK_HAS(t, hvd_last_error(), "there has been no round yet");
    state = hvd_state_create();
    CHECK(t, state);
    CHECK_OK(t, hvd_state_add_scalar(state, "step", &step, HVD_INT64));
    CHECK_OK(t, hvd_elastic_begin(state));
    CHECK_OK(t, hvd_elastic_next(state, 0));
    CHECK_OK(t, hvd_report("loss", 1));
    CHECK_OK(t, hvd_report("loss/train", NAN));
    CHECK_OK(t, hvd_report("acc@1", -INFINITY));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_CODE(t, hvd_report(bad[i], 1), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(),
              "\"\\xff\" is no name of a value; a name must have 1 to 63 letters");
    CHECK_CODE(t, hvd_report(NULL, 1), HVD_E_INVAL);
    CHECK_HAS(t, hvd_last_error(), "NULL is no name of a value");
    CHECK_CODE(t, hvd_report(longest, 1), HVD_E_INVAL);
    longest[63] = '\0';
    CHECK_OK(t, hvd_report(longest, 1));
    CHECK_TEXT(t, hvd_last_error(), "");
    CHECK_OK(t, hvd_state_commit(state)); /* no failed report ends the round */
    CHECK_INT(t, hvd_elastic_next(state, 0), ==, HVD_FINISHED);
    CHECK_OK(t, hvd_report("last", 1)); /* also when train has returned */
out:
    hvd_state_free(state);
    hvd_shutdown();
}
