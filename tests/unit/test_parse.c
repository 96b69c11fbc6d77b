#include "base/limits.h"
#include "base/mem.h"
#include "tests/lib/hosts_shown.h"
#include "tests/lib/test.h"

/* A literal and its length, so that a NUL byte may stand in it. */
#define TEXT(literal) literal, sizeof(literal) - 1

typedef int parse_fn(struct span text, const char *source, uint32_t default_slots,
                     struct hosts *ret_hosts, struct hvd_err *err);

/* A text, and the set that it gives or what is said against it. */
struct row {
    const char *text;
    size_t length;
    const char *expected;
};

static void reads_all(struct test *t, parse_fn *parse, uint32_t default_slots,
                      const struct row *rows, size_t count)
{
    struct hvd_err err = { .text = "" };
    struct hosts hosts;

    hosts_init(&hosts);
    for (size_t i = 0; i < count; i++) {
        int rc = parse((struct span){ rows[i].text, rows[i].length }, "src", default_slots, &hosts,
                       &err);

        CHECK_TEXT(t, err.text, "");
        CHECK_OK(t, rc);
        CHECK_TEXT(t, hosts_shown(&hosts), rows[i].expected);
    }
out:
    hosts_release(&hosts);
}

/* Each text is refused with these words, and the set that was there is still there. */
static void refuses_all(struct test *t, parse_fn *parse, int code, const struct row *rows,
                        size_t count)
{
    struct hvd_err err;
    struct hosts hosts;

    hosts_init(&hosts);
    CHECK_OK(t, hosts_add(&hosts, "before", 7));
    for (size_t i = 0; i < count; i++) {
        int rc = parse((struct span){ rows[i].text, rows[i].length }, "src", 0, &hosts, &err);

        CHECK_TEXT(t, hosts_shown(&hosts), "before:7");
        CHECK_HAS(t, err.text, rc == HVD_E_NOMEM ? "src: " : rows[i].expected);
        CHECK_INT(t, err.code, ==, rc);
        CHECK_CODE(t, rc, code);
    }
out:
    hosts_release(&hosts);
}

#define READS(t, parse, default_slots, rows) \
    reads_all((t), (parse), (default_slots), (rows), ARRAY_SIZE(rows))
#define REFUSES(t, parse, code, rows) refuses_all((t), (parse), (code), (rows), ARRAY_SIZE(rows))

/* The eight outputs with which elastic Horovod tests its own discovery. */
static void find_available_hosts_and_slots(struct test *t)
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

static void reads_every_way_to_write_a_host(struct test *t)
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

static void ignores_comments_and_blanks(struct test *t)
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

static void reads_lines_of_other_systems(struct test *t)
{
    static const struct row rows[] = {
        {TEXT("a:2\r\nb\r\n\r\nc slots=3\r\n"), "a:2 b:1 c:3"},
        { TEXT("a:2\r\n# x\r\n[::1]:4\r"),      "a:2 ::1:4"  },
        { TEXT("\r\n"),                         ""           },
    };

    READS(t, hosts_parse_text, 1, rows);
}

static void keeps_hosts_that_offer_nothing(struct test *t)
{
    static const struct row rows[] = {
        {TEXT("a:0\nb slots=0\nc:1\n"), "a:0 b:0 c:1"},
    };

    READS(t, hosts_parse_text, 4, rows);
}

static void keeps_the_order_of_the_lines(struct test *t)
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

static void merges_a_host_said_twice(struct test *t)
{
    static const struct row rows[] = {
        {TEXT("a:2\nb\na:2\na slots=2\na\n"), "a:2 b:2"},
        { TEXT("[::1]:0\n[::1] slots=0"),     "::1:0"  },
    };
    static const struct row more[] = {
        {TEXT("a:2,a"), "a:2"},
    };

    READS(t, hosts_parse_text, 2, rows);
    READS(t, hosts_parse_list, 2, more);
}

/* One whole sentence, as a person reads it. */
static void errors_say_where_what_and_what_to_do(struct test *t)
{
    struct span text = { TEXT("a:2\n\nb slot=3 # typo\n") };
    struct hvd_err err;
    struct hosts hosts;

    hosts_init(&hosts);
    CHECK_CODE(t, hosts_parse_text(text, "hosts.txt", 1, &hosts, &err), HVD_E_INVAL);
    CHECK_TEXT(t, err.text,
               "hosts.txt: line 3: \"b slot=3\": only :n or slots=n may follow a host name; "
               "write one host a line");
    CHECK_INT(t, err.code, ==, HVD_E_INVAL);
out:
    hosts_release(&hosts);
}

static void refuses_a_host_with_two_numbers(struct test *t)
{
    static const struct row rows[] = {
        {TEXT("a:2\n\nb:1\nb:1\na:3\n"),    "src: line 5: \"a:3\": line 1 gives this host 2"    },
        { TEXT("#\nb:1\n[::1]:0\n[::1]:1"), "src: line 4: \"[::1]:1\": line 3 gives this host 0"},
        { TEXT("a:2\na:0"),                 "src: line 2: \"a:0\": line 1 gives this host 2"    },
    };
    static const struct row more[] = {
        {TEXT("a:2,b:1,a:1"), "src: entry 3: \"a:1\": entry 1 gives this host 2 slots"},
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
    REFUSES(t, hosts_parse_list, HVD_E_INVAL, more);
}

static void the_default_counts_as_a_number(struct test *t)
{
    struct span text = { TEXT("a\na:3") };
    struct hvd_err err;
    struct hosts hosts;

    hosts_init(&hosts);
    CHECK_CODE(t, hosts_parse_text(text, "src", 2, &hosts, &err), HVD_E_INVAL);
    CHECK_HAS(t, err.text, "src: line 2: \"a:3\": line 1 gives this host 2 slots");
    CHECK_OK(t, hosts_parse_text(text, "src", 3, &hosts, &err));
    CHECK_TEXT(t, hosts_shown(&hosts), "a:3");
out:
    hosts_release(&hosts);
}

static void a_default_past_the_limit_is_a_bug(struct test *t)
{
    struct span text = { TEXT("a") };
    struct hosts hosts;

    hosts_init(&hosts);
    CHECK_PANICS(t, "default_slots <= LIMIT_SLOTS_PER_HOST",
                 (void)hosts_parse_text(text, "src", LIMIT_SLOTS_PER_HOST + 1, &hosts, NULL));
out:
    hosts_release(&hosts);
}

static void refuses_a_missing_number(struct test *t)
{
    static const struct row rows[] = {
        {TEXT("a:1\nb # here\n"), "src: line 2: \"b\": no number of slots; write name:n"    },
        { TEXT("[::1]"),          "src: line 1: \"[::1]\": no number of slots; write name:n"},
        { TEXT("a:"),             "\"a:\": the number of slots is missing; write name:n"    },
        { TEXT("a slots="),       "\"a slots=\": the number of slots is missing"            },
        { TEXT("a slots = # 4"),  "\"a slots =\": the number of slots is missing"           },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
}

static void refuses_what_is_not_a_number(struct test *t)
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
        { TEXT("a slots=4 max-slots=8"), "\"4 max-slots=8\": the number of slots must be"    },
    };
    static const struct row more[] = {
        {TEXT("a:1025"),                        "\"1025\": the number of slots must be between 0"},
        { TEXT("a slots=99999999999999999999"), "must be between 0 and 1024"                     },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
    REFUSES(t, hosts_parse_text, HVD_E_LIMIT, more);
}

static void refuses_more_than_a_host_on_a_line(struct test *t)
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

static void refuses_ipv6_without_brackets(struct test *t)
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

static void refuses_broken_brackets(struct test *t)
{
    static const struct row rows[] = {
        {TEXT("[::1"),         "src: line 1: \"[::1\": no ']' after '['; write [::1] or [::1]:n"},
        { TEXT("["),           "no ']' after '['"                                               },
        { TEXT("[]:2"),        "an empty host name"                                             },
        { TEXT("[a]:2"),       "\"[a]:2\": not an IPv6 address; write a name without brackets"  },
        { TEXT("[1.2.3.4]:2"), "not an IPv6 address; write a name without brackets"             },
        { TEXT("[::g]:2"),     "\"::g\": not an IPv6 address"                                   },
        { TEXT("[::1%]:2"),    "\"::1%\": not an IPv6 address"                                  },
        { TEXT("[[::1]:2"),    "\"[::1\": not an IPv6 address"                                  },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
}

static void refuses_names_that_are_none(struct test *t)
{
    static const struct row rows[] = {
        {TEXT("a:1\n:2"),         "src: line 2: \":2\": no host name; write name:n"        },
        { TEXT("-oHostName=x:2"), "a host name cannot start with '-'"                      },
        { TEXT(".a:2"),           "a host name cannot start with '.'"                      },
        { TEXT("=2"),             "\"=\" cannot be in a host name"                         },
        { TEXT("user@a:2"),       "\"user@a\": \"@\" cannot be in a host name"             },
        { TEXT("a:1\rb"),         "\"1\\x0db\": the number of slots must be a whole number"},
        { TEXT("x\ry:2"),         "\"\\x0d\" cannot be in a host name"                     },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
}

static void refuses_bytes_that_are_no_text(struct test *t)
{
    static const struct row rows[] = {
        {TEXT("a:1\nb\0:2"),         "src: line 2: \"b\\x00:2\": a NUL byte; this is not text"},
        { TEXT("# a comment\0"),     "a NUL byte; this is not text"                           },
        { TEXT("\177ELF\2\1\1\0\0"), "\"\\x7fELF\\x02"                                        },
        { TEXT("\x1f\x8b\x08\x03"),  "\"\\x1f\\x8b\\x08\\x03\": \"\\x1f\" cannot be in"       },
        { TEXT("\357\273\277a:2"),   "\"\\xef\" cannot be in a host name"                     },
        { TEXT("\xff\xfe"),          "\"\\xff\" cannot be in a host name"                     },
    };

    REFUSES(t, hosts_parse_text, HVD_E_INVAL, rows);
}

static void reads_lists(struct test *t)
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

static void refuses_bad_lists(struct test *t)
{
    static const struct row rows[] = {
        {TEXT("a:2,,b:2"),  "src: entry 2: \"\": no host name; write name:n"              },
        { TEXT("a:2,"),     "src: entry 2: \"\": no host name; write name:n"              },
        { TEXT(",a:2"),     "src: entry 1: \"\": no host name"                            },
        { TEXT(","),        "src: entry 1: \"\": no host name"                            },
        { TEXT("a:1,b:x"),  "src: entry 2: \"x\": the number of slots must be"            },
        { TEXT("a:1,b"),    "src: entry 2: \"b\": no number of slots; write name:n or use"},
        { TEXT("a:1 # b"),  "\"1 # b\": the number of slots must be a whole number"       },
        { TEXT("a:1\nb:1"), "\"a:1\\x0ab:1\": more than one ':'"                          },
    };

    REFUSES(t, hosts_parse_list, HVD_E_INVAL, rows);
}

/* One byte within the limit is read, one past it is refused. */
static void lines_have_a_longest(struct test *t)
{
    char line[LIMIT_HOST_LINE_BYTES + 1];
    struct span text = { line, sizeof(line) };
    struct hvd_err err;
    struct hosts hosts;

    hosts_init(&hosts);
    memset(line, ' ', sizeof(line));
    line[0] = 'a';
    line[LIMIT_HOST_LINE_BYTES] = '\n';
    CHECK_OK(t, hosts_parse_text(text, "src", 2, &hosts, &err));
    line[LIMIT_HOST_LINE_BYTES] = ' ';
    CHECK_CODE(t, hosts_parse_text(text, "src", 2, &hosts, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "src: line 1: \"a    ");
    CHECK_HAS(t, err.text, "\"...: longer than LIMIT_HOST_LINE_BYTES (1024); write one host a");
    CHECK_TEXT(t, hosts_shown(&hosts), "a:2");
out:
    hosts_release(&hosts);
}

static void a_megabyte_on_one_line_is_refused(struct test *t)
{
    char *bytes = mem_alloc(LIMIT_HOST_TEXT_BYTES);
    struct span text = { bytes, LIMIT_HOST_TEXT_BYTES };
    struct hvd_err err;
    struct hosts hosts;

    hosts_init(&hosts);
    CHECK(t, bytes);
    memset(bytes, 'x', LIMIT_HOST_TEXT_BYTES);
    CHECK_CODE(t, hosts_parse_text(text, "src", 1, &hosts, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "src: line 1: \"xxx");
    CHECK_HAS(t, err.text, "xxx\"...: longer than LIMIT_HOST_LINE_BYTES (1024)");
    CHECK_CODE(t, hosts_parse_list(text, "-H", 1, &hosts, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "-H: entry 1: \"xxx");
out:
    hosts_release(&hosts);
    mem_free(bytes);
}

/* A script that never stops: the caller hands over one byte more than the limit. */
static void endless_output_is_refused(struct test *t)
{
    char *bytes = mem_alloc(LIMIT_HOST_TEXT_BYTES + 1);
    struct span text = { bytes, LIMIT_HOST_TEXT_BYTES };
    struct hvd_err err;
    struct hosts hosts;

    hosts_init(&hosts);
    CHECK(t, bytes);
    for (size_t i = 0; i <= LIMIT_HOST_TEXT_BYTES; i++)
        bytes[i] = "yes\n"[i % 4];
    CHECK_OK(t, hosts_parse_text(text, "src", 1, &hosts, &err));
    text.length++;
    CHECK_CODE(t, hosts_parse_text(text, "src", 1, &hosts, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "src: longer than LIMIT_HOST_TEXT_BYTES (1048576); write each host");
    CHECK_TEXT(t, hosts_shown(&hosts), "yes:1");
out:
    hosts_release(&hosts);
    mem_free(bytes);
}

static void too_many_hosts_are_refused(struct test *t)
{
    char *bytes = mem_alloc(LIMIT_HOST_TEXT_BYTES);
    struct span text = { bytes, 0 };
    struct hvd_err err;
    struct hosts hosts;
    size_t used = 0;

    hosts_init(&hosts);
    CHECK(t, bytes);
    for (int i = 0; i <= LIMIT_HOSTS; i++) {
        text.length = used;
        used += (size_t)snprintf(bytes + used, LIMIT_HOST_TEXT_BYTES - used, "h%d:1\n", i);
    }
    CHECK_OK(t, hosts_parse_text(text, "src", 0, &hosts, &err));
    CHECK_INT(t, hosts.count, ==, LIMIT_HOSTS);
    text.length = used;
    CHECK_CODE(t, hosts_parse_text(text, "src", 0, &hosts, &err), HVD_E_LIMIT);
    CHECK_TEXT(t, err.text, "src: line 16385: \"h16384:1\": more hosts than LIMIT_HOSTS (16384)");
    CHECK_INT(t, hosts.count, ==, LIMIT_HOSTS);
out:
    hosts_release(&hosts);
    mem_free(bytes);
}

static void nothing_at_all_is_an_empty_set(struct test *t)
{
    struct span nothing = { NULL, 0 };
    struct hosts hosts;

    hosts_init(&hosts);
    CHECK_OK(t, hosts_add(&hosts, "before", 7));
    CHECK_OK(t, hosts_parse_text(nothing, "src", 0, &hosts, NULL));
    CHECK_INT(t, hosts.count, ==, 0);
    CHECK_OK(t, hosts_parse_list(nothing, "src", 0, &hosts, NULL));
    CHECK_INT(t, hosts.count, ==, 0);
out:
    hosts_release(&hosts);
}

static void works_without_an_error_to_fill(struct test *t)
{
    struct span text = { TEXT("a b") };
    struct hosts hosts;

    hosts_init(&hosts);
    CHECK_CODE(t, hosts_parse_text(text, "src", 1, &hosts, NULL), HVD_E_INVAL);
    text.length = LIMIT_HOST_TEXT_BYTES + 1; /* refused before the first byte is looked at */
    CHECK_CODE(t, hosts_parse_text(text, "src", 1, &hosts, NULL), HVD_E_LIMIT);
out:
    hosts_release(&hosts);
}

TESTS(CASE(find_available_hosts_and_slots), CASE(reads_every_way_to_write_a_host),
      CASE(ignores_comments_and_blanks), CASE(reads_lines_of_other_systems),
      CASE(keeps_hosts_that_offer_nothing), CASE(keeps_the_order_of_the_lines),
      CASE(merges_a_host_said_twice), CASE(refuses_a_host_with_two_numbers),
      CASE(errors_say_where_what_and_what_to_do), CASE(the_default_counts_as_a_number),
      CASE_FLAGS(a_default_past_the_limit_is_a_bug, TEST_NO_TORTURE),
      CASE(refuses_a_missing_number), CASE(refuses_what_is_not_a_number),
      CASE(refuses_more_than_a_host_on_a_line), CASE(refuses_ipv6_without_brackets),
      CASE(refuses_broken_brackets), CASE(refuses_names_that_are_none),
      CASE(refuses_bytes_that_are_no_text), CASE(reads_lists), CASE(refuses_bad_lists),
      CASE(lines_have_a_longest), CASE(a_megabyte_on_one_line_is_refused),
      CASE(endless_output_is_refused), CASE_FLAGS(too_many_hosts_are_refused, TEST_NO_TORTURE),
      CASE(nothing_at_all_is_an_empty_set), CASE(works_without_an_error_to_fill))
