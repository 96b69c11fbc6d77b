/*
 * test_arrivals.c: tools/arrivals: lines of timelines, the last to come to a call, calls that do
 * not count, and memory that is out.
 */
#include "tools/arrivals.h"

#include "tests/lib/test.h"

#include <string.h>

static int add(struct arrivals *arrivals, const char *line, struct hvd_err *err)
{
    return arrivals_line(arrivals, (struct span){ line, strlen(line) }, err);
}

#define CALL(pid, ts, number)                                                                   \
    "{\"ph\":\"X\",\"pid\":" pid ",\"tid\":5,\"cat\":\"collectives\",\"ts\":" ts ",\"dur\":90," \
    "\"name\":\"allreduce\",\"args\":{\"number\":" number ",\"round\":1,\"rank\":0,"            \
    "\"members\":2,\"ended\":\"done\"}},"

TEST(the_last_is_counted)
{
    struct arrivals arrivals;

    arrivals_init(&arrivals);
    CHECK_OK(t, add(&arrivals, "[", NULL));
    CHECK_OK(t, add(&arrivals,
                    "{\"ph\":\"M\",\"pid\":8,\"name\":\"process_name\",\"args\":{\"name\":\"b\"}},",
                    NULL));
    CHECK_OK(t, add(&arrivals, CALL("7", "100", "1"), NULL));
    CHECK_OK(t, add(&arrivals, CALL("8", "300", "2"), NULL));
    CHECK_OK(t, add(&arrivals, CALL("8", "130", "1"), NULL));
    CHECK_OK(t, add(&arrivals, CALL("7", "305", "2"), NULL));
    CHECK_OK(t, add(&arrivals, CALL("7", "400", "3"), NULL));
    CHECK_OK(t, arrivals_judge(&arrivals, NULL));
    CHECK_INT(t, arrivals.compared, ==, 2);
    CHECK_INT(t, arrivals.partial, ==, 1);
    CHECK_INT(t, arrivals.spread_us, ==, 35);
    CHECK_INT(t, arrivals.worst.number, ==, 1);
    CHECK_INT(t, arrivals.workers.count, ==, 2);
    CHECK_TEXT(t, arrivals.workers.items[0].name, "b");
    CHECK_INT(t, arrivals.workers.items[0].alone_us, ==, 30);
    CHECK_INT(t, arrivals.workers.items[1].alone_us, ==, 5);
    CHECK_INT(t, arrivals.clock_us, ==, 0);
out:
    arrivals_release(&arrivals);
}

TEST(odd_lines_are_refused)
{
    static const char *const odd[] = { "{",
                                       "{\"a\"}",
                                       "{\"a\":1.5}",
                                       "{\"a\":[]}",
                                       "{\"a\":1}}",
                                       "{\"args\":{\"b\":{}}}",
                                       "{\"a\":\"\\\"}",
                                       "{\"a\":99999999999999999999}",
                                       "my thesis" };
    struct arrivals_event event;
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        err.text[0] = 0;
        CHECK_CODE(t, arrivals_read((struct span){ odd[i], strlen(odd[i]) }, &event, &err),
                   HVD_E_INVAL);
        CHECK_HAS(t, err.text, "the file is no timeline of hvd-elastic");
    }
out:;
}
