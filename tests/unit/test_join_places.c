/*
 * test_join_places.c: agent/join/join_places: the list of --join, and the addresses of its names.
 */
#include "agent/join/join_places.h"

#include "tests/lib/test.h"

TEST(lists_that_are_right)
{
    static const char *const lists[] = { "main:7000", "main:7000,10.0.0.8:1", "[fd00::7]:65535",
                                         "127.0.0.1:7000" };

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        CHECK_OK(t, join_places_check(lists[i], NULL));
out:;
}

TEST(lists_that_are_wrong)
{
    static const char *const lists[][2] = {
        {"",                                                                     "HOST:PORT"},
        { "main",                                                                "HOST:PORT"},
        { ":7000",                                                               "HOST:PORT"},
        { "main:",                                                               "port"     },
        { "main:0",                                                              "port"     },
        { "main:65536",                                                          "port"     },
        { "fd00::7:1",                                                           "brackets" },
        { "a:1,,b:1",                                                            "HOST:PORT"},
        { "a:1,b:1,a:1,b:1,a:1,b:1,a:1,b:1,a:1,b:1,a:1,b:1,a:1,b:1,a:1,b:1,a:1",
         "LIMIT_ADDRESSES"                                                                  }
    };
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        CHECK(t, join_places_check(lists[i][0], &err) < 0);
        CHECK_HAS(t, err.text, lists[i][1]);
    }
out:;
}

TEST(numbers_need_no_name_server)
{
    struct join_places places;

    CHECK_OK(t, join_places_find("10.0.0.8:7000,[::1]:7001", &places, NULL));
    CHECK_INT(t, places.count, ==, 2);
    CHECK_TEXT(t, places.text[0], "10.0.0.8:7000");
    CHECK_TEXT(t, places.text[1], "[::1]:7001");
out:;
}
