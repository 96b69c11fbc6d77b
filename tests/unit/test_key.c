/*
 * test_key.c: discovery/key: a host, or a host and a slot, as users type them.
 */
#include "discovery/key.h"
#include "tests/lib/fixture.h"

#include <string.h>

TEST(reads_hosts_and_slots)
{
    static const struct {
        const char *text, *host;
        uint32_t slot;
    } cases[] = {
        {"a",            "a",        KEY_WHOLE_HOST},
        { "a:0",         "a",        0             },
        { "n7.b-c:1023", "n7.b-c",   1023          },
        { "10.0.0.7:3",  "10.0.0.7", 3             },
        { "[::1]",       "::1",      KEY_WHOLE_HOST},
        { "[fd00::7]:2", "fd00::7",  2             },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct key key;

        CHECK_OK(t, key_parse("drain", cases[i].text, &key, NULL));
        CHECK_TEXT(t, key.host, cases[i].host);
        CHECK_INT(t, key.slot, ==, cases[i].slot);
    }
}

TEST(says_what_is_wrong)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"",        "drain \"\": "                                          },
        { ":1",     "drain \":1\": "                                        },
        { "a:",     "the slot"                                              },
        { "a:x",    "the slot"                                              },
        { "a:1024", "the slot"                                              },
        { "a b",    "drain \"a b\": "                                       },
        { "a\nb",   "drain \"a\\x0ab\": "                                   },
        { "[::1",   "no ']' after '['; write [::1] or [::1]:3"              },
        { "[::1]3", "only :SLOT may follow a host"                          },
        { "::1",    "an IPv6 address needs brackets; write [::1] or [::1]:3"},
    };
    struct hvd_err err;
    char name[LIMIT_HOST_NAME_BYTES + 2];
    struct key key;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK(t, key_parse("drain", cases[i].text, &key, &err));
        CHECK_HAS(t, err.text, cases[i].says);
    }
    memset(name, 'a', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    CHECK(t, key_parse("drain", name, &key, &err));
    name[sizeof(name) - 2] = '\0';
    CHECK_OK(t, key_parse("drain", name, &key, &err));
}
