/*
 * test_parse.c: discovery/parse: every form in which hosts can be written, every refusal with its
 * line and remedy, and the cases of Horovod's own tests. A row is a text with the expected result.
 */
#include "base/limits.h"
#include "tests/lib/fixture.h"
#include "tests/lib/hosts_shown.h"

/* A literal and its length, so that a NUL byte may stand in it. */
#define TEXT(literal) literal, sizeof(literal) - 1

typedef int parse_fn(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err);

/* A text, and the expected set of hosts, or the expected words of the refusal. */
struct row {
    const char *text;
    size_t length;
    const char *expected;
};

static struct hosts hosts;
static char bytes[LIMIT_HOST_TEXT_BYTES + 1];

static void begin(struct test *t)
{
    (void)t;
    hosts_init(&hosts);
}

static void end(struct test *t)
{
    (void)t;
    hosts_release(&hosts);
}
FIXTURE(begin, end)

static void reads_all(struct test *t, parse_fn *parse, uint32_t default_slots,
                      const struct row *rows, size_t count)
{
    struct hvd_err err = { .text = "" };

    for (size_t i = 0; i < count; i++) {
        int rc = parse((struct span){ rows[i].text, rows[i].length }, "src", default_slots, &hosts,
                       &err);

        CHECK_TEXT(t, err.text, "");
        CHECK_OK(t, rc);
        CHECK_TEXT(t, hosts_shown(&hosts), rows[i].expected);
    }
}

/* Each text is refused with its words, and the set of hosts is as before. */
static void refuses_all(struct test *t, parse_fn *parse, int code, const struct row *rows,
                        size_t count)
{
    struct hvd_err err;

    hosts_release(&hosts);
    CHECK_OK(t, hosts_add(&hosts, "before", 7));
    for (size_t i = 0; i < count; i++) {
        int rc = parse((struct span){ rows[i].text, rows[i].length }, "src", 0, &hosts, &err);

        CHECK_TEXT(t, hosts_shown(&hosts), "before:7");
        CHECK_HAS(t, err.text, rc == HVD_E_NOMEM ? "src: " : rows[i].expected);
        CHECK_INT(t, err.code, ==, rc);
        CHECK_CODE(t, rc, code);
    }
}

#define READS(t, parse, default_slots, rows) \
    reads_all((t), (parse), (default_slots), (rows), ARRAY_SIZE(rows))
#define REFUSES(t, parse, code, rows) refuses_all((t), (parse), (code), (rows), ARRAY_SIZE(rows))

/* The eight outputs with which elastic Horovod tests its own discovery. */
TEST(find_available_hosts_and_slots)
{
    static const struct row rows[] = {
        {TEXT(""),                        ""                 },
        { TEXT("host-1"),                 "host-1:4"         },
        { TEXT("host-1:2"),               "host-1:2"         },
        { TEXT("host-1:2\nhost-2:3"),     "host-1:2 host-2:3"},
        { TEXT("host-1:2\nhost-2"),       "host-1:2 host-2:4"},
        { TEXT("\nhost-1:2\nhost-2:3"),   "host-1:2 host-2:3"},
        { TEXT("host-1:2\n\n\nhost-2:3"), "host-1:2 host-2:3"},
        { TEXT("host-1:2\nhost-2:3\n\n"), "host-1:2 host-2:3"},
    };

    READS(t, hosts_parse_text, 4, rows);
}

TEST(reads_every_way_to_write_a_host)
{
    static const struct row rows[] = {
        {TEXT("a:2\n"),               "a:2"           },
        { TEXT("a slots=2\n"),        "a:2"           },
        { TEXT("a  slots=2\n"),       "a:2"           },
        { TEXT("a\tslots = 2\n"),     "a:2"           },
        { TEXT("a slots =2\n"),       "a:2"           },
        { TEXT("a slots= 2\n"),       "a:2"           },
        { TEXT("[::1]:2\n"),          "::1:2"         },
        { TEXT("[::1] slots=2\n"),    "::1:2"         },
        { TEXT("[fe80::1%eth0]:2\n"), "fe80::1%eth0:2"},
        { TEXT("10.0.0.1:2\n"),       "10.0.0.1:2"    },
        { TEXT("a:002\n"),            "a:2"           },
        { TEXT("slots slots=2\n"),    "slots:2"       },
    };
    static const struct row more[] = {
        {TEXT("a\n"),      "a:3"  },
        { TEXT("[::1]\n"), "::1:3"},
    };

    READS(t, hosts_parse_text, 0, rows);
    READS(t, hosts_parse_text, 3, more);
}

TEST(ignores_comments_and_blanks)
{
    static const struct row rows[] = {
        {TEXT("# nothing but words"),                             ""           },
        { TEXT("# one\n  # two\n\ta:2 # three\n#b:4\n"),          "a:2"        },
        { TEXT("a:2#no blank before it"),                         "a:2"        },
        { TEXT("a#a:2"),                                          "a:1"        },
        { TEXT("a slots=2 # first\n[::1]#\n"),                    "a:2 ::1:1"  },
        { TEXT("  a:2  \n\tb\t\n   \n \t \nc"),                   "a:2 b:1 c:1"},
        { TEXT("\n\n\n"),                                         ""           },
        { TEXT("# \xff\xfe old encodings are fine in a comment"), ""           },
    };

    READS(t, hosts_parse_text, 1, rows);
}

TEST(reads_lines_of_other_systems)
{
    static const struct row rows[] = {
        {TEXT("a:2\r\nb\r\n\r\nc slots=3\r\n"), "a:2 b:1 c:3"},
        { TEXT("a:2\r\n# x\r\n[::1]:4\r"),      "a:2 ::1:4"  },
        { TEXT("\r\n"),                         ""           },
    };

    READS(t, hosts_parse_text, 1, rows);
}

TEST(keeps_hosts_that_offer_nothing)
{
    static const struct row rows[] = {
        {TEXT("a:0\nb slots=0\nc:1\n"), "a:0 b:0 c:1"},
    };

    READS(t, hosts_parse_text, 4, rows);
}

TEST(keeps_the_order_of_the_lines)
{
    static const struct row rows[] = {
        {TEXT("z\nb\nm\na\n"), "z:1 b:1 m:1 a:1"},
    };
    static const struct row more[] = {
        {TEXT("z,b,m,a"), "z:1 b:1 m:1 a:1"},
    };

    READS(t, hosts_parse_text, 1, rows);
    READS(t, hosts_parse_list, 1, more);
}

TEST(merges_a_host_said_twice)
{
    static const struct row rows[] = {
        {TEXT("a:2\nb\na:2\na slots=2\na\n"), "a:2 b:2"},
        { TEXT("[::1]:0\n[::1] slots=0"),     "::1:0"  },
    };
    static const struct row more[] = {
        {TEXT("a:2,a"),  "a:4"    },
        { TEXT("a,b,a"), "a:4 b:2"},
    };

    READS(t, hosts_parse_text, 2, rows);
    READS(t, hosts_parse_list, 2, more);
}

/* Compares one whole error text, as the user reads it. */
TEST(errors_say_where_what_and_what_to_do)
{
    struct span text = { TEXT("a:2\n\nb slot=3 # typo\n") };
    struct hvd_err err;

    CHECK_CODE(t, hosts_parse_text(text, "hosts.txt", 1, &hosts, &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "hosts.txt: line 3: \"b slot=3\": only :n or slots=n may follow a host name; "
               "write one host a line");
    CHECK_INT(t, err.code, ==, HVD_E_INVAL);
}

TEST(refuses_a_host_with_two_numbers)
{
    static const struct row rows[] = {
        {TEXT("a:2\n\nb:1\nb:1\na:3\n"),    "src: line 5: \"a:3\": line 1 gives this host 2"    },
        { TEXT("#\nb:1\n[::1]:0\n[::1]:1"), "src: line 4: \"[::1]:1\": line 3 gives this host 0"},
        { TEXT("a:2\na:0"),                 "src: line 2: \"a:0\": line 1 gives this host 2"    },
    };
    static const struct row more[] = {
        {TEXT("a:2,b:1,a:1"), "src: entry 3: \"a:1\": entry 1 gives this host 2 slots"},
        { TEXT("a:1,a:1"),    "src: entry 2: \"a:1\": entry 1 gives this host 1 slots"},
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
    REFUSES(t, hosts_parse_list, HVD_E_INVAL, more);
}

TEST(the_default_counts_as_a_number)
{
    struct span text = { TEXT("a\na:3") };
    struct hvd_err err;

    CHECK_CODE(t, hosts_parse_text(text, "src", 2, &hosts, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "src: line 2: \"a:3\": line 1 gives this host 2 slots");
    CHECK_OK(t, hosts_parse_text(text, "src", 3, &hosts, &err));
    CHECK_TEXT(t, hosts_shown(&hosts), "a:3");
}

TEST_FLAGS(a_default_past_the_limit_is_a_bug, TEST_NO_TORTURE)
{
    struct span text = { TEXT("a") };

    CHECK_PANICS(t, "default_slots <= LIMIT_SLOTS_PER_HOST",
                 (void)hosts_parse_text(text, "src", LIMIT_SLOTS_PER_HOST + 1, &hosts, NULL));
}

TEST(refuses_a_missing_number)
{
    static const struct row rows[] = {
        {TEXT("a:1\nb # here\n"), "src: line 2: \"b\": no number of slots; write name:slots"    },
        { TEXT("[::1]"),          "src: line 1: \"[::1]\": no number of slots; write name:slots"},
        { TEXT("a:"),             "\"a:\": the number of slots is missing; write name:slots"    },
        { TEXT("a slots="),       "\"a slots=\": the number of slots is missing"                },
        { TEXT("a slots = # 4"),  "\"a slots =\": the number of slots is missing"               },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
}

TEST(refuses_what_is_not_a_number)
{
    static const struct row rows[] = {
        {TEXT("a:1\na:x"),               "src: line 2: \"x\": the number of slots must be a "},
        { TEXT("a:-1"),                  "\"-1\": the number of slots must be a whole number"},
        { TEXT("a:+1"),                  "\"+1\": the number of slots must be"               },
        { TEXT("a:1.5"),                 "\"1.5\": the number of slots must be"              },
        { TEXT("a:0x2"),                 "\"0x2\": the number of slots must be"              },
        { TEXT("a: 2"),                  "\" 2\": the number of slots must be"               },
        { TEXT("a:2 b:2"),               "\"2 b:2\": the number of slots must be"            },
        { TEXT("a:2 slots=2"),           "\"2 slots=2\": the number of slots must be"        },
        { TEXT("a slots=4 max_slots=3"), "max_slots is less than the slots"                  },
        { TEXT("a slots=4 max_slots="),  "max_slots is missing"                              },
        { TEXT("a slots=4 slots=4"),     "only :n or slots=n may follow"                     },
    };
    static const struct row more[] = {
        {TEXT("a:1025"),                        "\"1025\": the number of slots must be between 0"},
        { TEXT("a slots=99999999999999999999"), "must be between 0 and 1024"                     },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
    REFUSES(t, hosts_parse_text, HVD_E_LIMIT, more);
}

TEST(takes_the_maximum_of_mpirun)
{
    static const struct row rows[] = {
        {TEXT("a slots=4 max_slots=8"),         "a:4"    },
        { TEXT("a slots=4 max-slots = 4 # me"), "a:4"    },
        { TEXT("a max_slots=8 slots=2\nb:1"),   "a:2 b:1"},
        { TEXT("a max_slots=4"),                "a:3"    },
    };

    READS(t, hosts_parse_text, 3, rows);
    READS(t, hosts_parse_hostfile, 3, rows);
}

/* mpirun counts the lines of a host that have no number, and refuses a second number for a host. */
TEST(repeated_hosts_of_a_host_file_add)
{
    static const struct row rows[] = {
        {TEXT("a\na\n"),              "a:4"    },
        { TEXT("a\nb\na # twice\na"), "a:6 b:2"},
        { TEXT("a slots=3\na\n"),     "a:5"    },
        { TEXT("a:0\na\n"),           "a:2"    },
    };
    static const struct row wrong[] = {
        {TEXT("a slots=3\nb:1\na slots=3"),
         "src: line 3: \"a slots=3\": line 1 gives this host 3"                                   },
        { TEXT("a:1\na:2"),                 "src: line 2: \"a:2\": line 1 gives this host 1 slots"},
    };
    char text[] = "a:1023\na\na\n";
    struct span span = { text, strlen(text) };
    struct hvd_err err = { .text = "" };

    READS(t, hosts_parse_hostfile, 2, rows);
    REFUSES(t, hosts_parse_hostfile, HVD_E_INVAL, wrong);
    CHECK_CODE(t, hosts_parse_hostfile(span, "src", 1, &hosts, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text,
              "src: line 3: \"a\": with this line the host has more than 1024 slots "
              "(LIMIT_SLOTS_PER_HOST)");
    CHECK_TEXT(t, hosts_shown(&hosts), "before:7");
}

TEST(refuses_more_than_a_host_on_a_line)
{
    static const struct row rows[] = {
        {TEXT("x:1\n\na b\n"),  "src: line 3: \"a b\": only :n or slots=n may follow"},
        { TEXT("a :2"),         "\"a :2\": only :n or slots=n"                       },
        { TEXT("a slots 2"),    "only :n or slots=n"                                 },
        { TEXT("a slots"),      "only :n or slots=n"                                 },
        { TEXT("a cpus=2"),     "only :n or slots=n"                                 },
        { TEXT("a SLOTS=2"),    "only :n or slots=n"                                 },
        { TEXT("[::1]x"),       "\"[::1]x\": only :n or slots=n"                     },
        { TEXT("[::1]slots=2"), "only :n or slots=n"                                 },
        { TEXT("a,b:2"),        "\"a,b\": \",\" cannot be in a host name"            },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
}

TEST(refuses_ipv6_without_brackets)
{
    static const struct row rows[] = {
        {TEXT("::1"),                  "src: line 1: \"::1\": more than one ':'; an IPv6"},
        { TEXT("fe80::1%eth0:4"),      "an IPv6 address needs brackets"                  },
        { TEXT("2001:db8::7 slots=2"), "an IPv6 address needs brackets"                  },
        { TEXT("a:2:3"),               "\"a:2:3\": more than one ':'"                    },
    };
    static const struct row more[] = {
        {TEXT("a:1,::1"), "src: entry 2: \"::1\": more than one ':'; an IPv6"},
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
    REFUSES(t, hosts_parse_list, HVD_E_INVAL, more);
}

TEST(refuses_broken_brackets)
{
    static const struct row rows[] = {
        {TEXT("[::1"),         "src: line 1: \"[::1\": no ']' after '['; write [::1] or [::1]:n"},
        { TEXT("["),           "no ']' after '['"                                               },
        { TEXT("[]:2"),        "a host name cannot be empty; write a name"                      },
        { TEXT("[a]:2"),       "\"[a]:2\": not an IPv6 address; write a name without brackets"  },
        { TEXT("[1.2.3.4]:2"), "not an IPv6 address; write a name without brackets"             },
        { TEXT("[::g]:2"),     "\"::g\": not an IPv6 address"                                   },
        { TEXT("[::1%]:2"),    "\"::1%\": not an IPv6 address"                                  },
        { TEXT("[[::1]:2"),    "\"[::1\": not an IPv6 address"                                  },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
}

TEST(refuses_names_that_are_none)
{
    static const struct row rows[] = {
        {TEXT("a:1\n:2"),         "src: line 2: \":2\": no host name; write name:slots"    },
        { TEXT("-oHostName=x:2"), "a host name cannot start with '-'"                      },
        { TEXT(".a:2"),           "a host name cannot start with '.'"                      },
        { TEXT("=2"),             "\"=\" cannot be in a host name"                         },
        { TEXT("user@a:2"),       "\"user@a\": \"@\" cannot be in a host name"             },
        { TEXT("a:1\rb"),         "\"1\\x0db\": the number of slots must be a whole number"},
        { TEXT("x\ry:2"),         "\"\\x0d\" cannot be in a host name"                     },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
}

TEST(refuses_bytes_that_are_no_text)
{
    static const struct row rows[] = {
        {TEXT("a:1\nb\0:2"),         "src: line 2: \"b\\x00:2\": a NUL byte; write text only"},
        { TEXT("# a comment\0"),     "a NUL byte; write text only"                           },
        { TEXT("\177ELF\2\1\1\0\0"), "\"\\x7fELF\\x02"                                       },
        { TEXT("\x1f\x8b\x08\x03"),  "\"\\x1f\\x8b\\x08\\x03\": \"\\x1f\" cannot be in"      },
        { TEXT("\357\273\277a:2"),   "\"\\xef\" cannot be in a host name"                    },
        { TEXT("\xff\xfe"),          "\"\\xff\" cannot be in a host name"                    },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
}

TEST(reads_lists)
{
    static const struct row rows[] = {
        {TEXT(""),             ""         },
        { TEXT("  "),          ""         },
        { TEXT("a:2,b:2"),     "a:2 b:2"  },
        { TEXT(" a:2 , b:4 "), "a:2 b:4"  },
        { TEXT("[::1]:2,a:0"), "::1:2 a:0"},
        { TEXT("a slots=2"),   "a:2"      },
    };
    static const struct row more[] = {
        {TEXT("a,b:2,[::1]"), "a:8 b:2 ::1:8"},
    };

    READS(t, hosts_parse_list, 0, rows);
    READS(t, hosts_parse_list, 8, more);
}

TEST(refuses_bad_lists)
{
    static const struct row rows[] = {
        {TEXT("a:2,,b:2"),  "src: entry 2: \"\": no host name; write name:slots"              },
        { TEXT("a:2,"),     "src: entry 2: \"\": no host name; write name:slots"              },
        { TEXT(",a:2"),     "src: entry 1: \"\": no host name"                                },
        { TEXT(","),        "src: entry 1: \"\": no host name"                                },
        { TEXT("a:1,b:x"),  "src: entry 2: \"x\": the number of slots must be"                },
        { TEXT("a:1,b"),    "src: entry 2: \"b\": no number of slots; write name:slots or use"},
        { TEXT("a:1 # b"),  "\"1 # b\": the number of slots must be a whole number"           },
        { TEXT("a:1\nb:1"), "\"a:1\\x0ab:1\": more than one ':'"                              },
    };

    REFUSES(t, hosts_parse_list, HVD_E_INVAL, rows);
}

/* A line of the greatest length is read; a line that is one byte longer is refused. */
TEST(lines_have_a_longest)
{
    char line[LIMIT_HOST_LINE_BYTES + 1];
    struct span text = { line, sizeof(line) };
    struct hvd_err err;

    memset(line, ' ', sizeof(line));
    line[0] = 'a';
    line[LIMIT_HOST_LINE_BYTES] = '\n';
    CHECK_OK(t, hosts_parse_text(text, "src", 2, &hosts, &err));
    line[LIMIT_HOST_LINE_BYTES] = ' ';
    CHECK_CODE(t, hosts_parse_text(text, "src", 2, &hosts, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "src: line 1: \"a    ");
    CHECK_HAS(t, err.text,
              "\"...: the line is longer than LIMIT_HOST_LINE_BYTES (1024); write one host a");
    CHECK_TEXT(t, hosts_shown(&hosts), "a:2");
}

TEST(a_megabyte_on_one_line_is_refused)
{
    /* ends where the memory ends, so that a sanitizer sees a read behind the text */
    struct span text = { bytes + 1, LIMIT_HOST_TEXT_BYTES };
    struct hvd_err err;

    memset(bytes, 'x', sizeof(bytes));
    CHECK_CODE(t, hosts_parse_text(text, "src", 1, &hosts, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "src: line 1: \"xxx");
    CHECK_HAS(t, err.text, "xxx\"...: the line is longer than LIMIT_HOST_LINE_BYTES (1024)");
    CHECK_CODE(t, hosts_parse_list(text, "-H", 1, &hosts, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "-H: entry 1: \"xxx");
}

/* A script prints without end: the caller hands over one byte more than the limit. */
TEST(endless_output_is_refused)
{
    struct span text = { bytes, LIMIT_HOST_TEXT_BYTES };
    struct hvd_err err;

    for (size_t i = 0; i <= LIMIT_HOST_TEXT_BYTES; i++)
        bytes[i] = "yes\n"[i % 4];
    CHECK_OK(t, hosts_parse_text(text, "src", 1, &hosts, &err));
    text.length++;
    CHECK_CODE(t, hosts_parse_text(text, "src", 1, &hosts, &err), HVD_E_LIMIT);
    CHECK_HAS(
        t, err.text,
        "src: the list of hosts is longer than LIMIT_HOST_TEXT_BYTES (1048576); write each host");
    CHECK_TEXT(t, hosts_shown(&hosts), "yes:1");
}

TEST_FLAGS(too_many_hosts_are_refused, TEST_NO_TORTURE)
{
    struct span text = { bytes, 0 };
    struct hvd_err err;
    size_t used = 0;

    for (int i = 0; i <= LIMIT_HOSTS; i++) {
        text.length = used;
        used += (size_t)snprintf(bytes + used, LIMIT_HOST_TEXT_BYTES - used, "h%d:1\n", i);
    }
    CHECK_OK(t, hosts_parse_text(text, "src", 0, &hosts, &err));
    CHECK_INT(t, hosts.count, ==, LIMIT_HOSTS);
    text.length = used;
    CHECK_CODE(t, hosts_parse_text(text, "src", 0, &hosts, &err), HVD_E_LIMIT);
    CHECK_TEXT(t, err.text,
               "src: line 16385: \"h16384:1\": more than 16384 hosts (LIMIT_HOSTS); list fewer");
    CHECK_INT(t, hosts.count, ==, LIMIT_HOSTS);
}

TEST_FLAGS(too_many_slots_of_all_hosts_are_refused, TEST_NO_TORTURE)
{
    struct span text = { bytes, 0 };
    struct hvd_err err;
    size_t used = 0;

    for (int i = 0; i < LIMIT_SLOTS / LIMIT_SLOTS_PER_HOST; i++)
        used += (size_t)snprintf(bytes + used, LIMIT_HOST_TEXT_BYTES - used, "h%d:1024\n", i);
    text.length = used;
    CHECK_OK(t, hosts_parse_text(text, "src", 0, &hosts, &err));
    CHECK_INT(t, hosts_total_slots(&hosts), ==, LIMIT_SLOTS);
    used += (size_t)snprintf(bytes + used, LIMIT_HOST_TEXT_BYTES - used, "h0:1024\nmore:0\n");
    text.length = used; /* a repetition and a host without slots are no more slots */
    CHECK_OK(t, hosts_parse_text(text, "src", 0, &hosts, &err));
    used += (size_t)snprintf(bytes + used, LIMIT_HOST_TEXT_BYTES - used, "last:1\n");
    text.length = used;
    CHECK_CODE(t, hosts_parse_text(text, "src", 0, &hosts, &err), HVD_E_LIMIT);
    CHECK_TEXT(t, err.text,
               "src: line 131: \"last:1\": with this line all hosts together have more than 131072 "
               "slots (LIMIT_SLOTS); list fewer");
    CHECK(t, !hosts_find(&hosts, "last"));
}

TEST(nothing_at_all_is_an_empty_set)
{
    struct span nothing = { NULL, 0 };

    CHECK_OK(t, hosts_add(&hosts, "before", 7));
    CHECK_OK(t, hosts_parse_text(nothing, "src", 0, &hosts, NULL));
    CHECK_INT(t, hosts.count, ==, 0);
    CHECK_OK(t, hosts_parse_list(nothing, "src", 0, &hosts, NULL));
    CHECK_INT(t, hosts.count, ==, 0);
}

TEST(works_without_an_error_to_fill)
{
    struct span text = { TEXT("a b") };

    CHECK_CODE(t, hosts_parse_text(text, "src", 1, &hosts, NULL), HVD_E_INVAL);
    text.length = LIMIT_HOST_TEXT_BYTES + 1; /* refused before the first byte is looked at */
    CHECK_CODE(t, hosts_parse_text(text, "src", 1, &hosts, NULL), HVD_E_LIMIT);
}
