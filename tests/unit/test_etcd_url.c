/* test_etcd_url.c: the URL of --store: what is read from it, and what is refused. */
#include "driver/store/etcd_url.h"

#include "tests/lib/test.h"

#include <string.h>

TEST(a_url_names_servers_and_a_prefix)
{
    struct etcd_url url;

    CHECK_OK(t, etcd_url_parse("etcd://127.0.0.1", &url, NULL));
    CHECK(t, !url.tls && url.loopback && !*url.user);
    CHECK_INT(t, url.count, ==, 1);
    CHECK_TEXT(t, url.server[0], "http://127.0.0.1:2379");
    CHECK_TEXT(t, url.prefix, "hvd-elastic");
    CHECK_OK(t, etcd_url_parse("etcds://job@h1:2379,h2:1/a/b-c/", &url, NULL));
    CHECK(t, url.tls && !url.loopback);
    CHECK_INT(t, url.count, ==, 2);
    CHECK_TEXT(t, url.user, "job");
    CHECK_TEXT(t, url.server[0], "https://h1:2379");
    CHECK_TEXT(t, url.server[1], "https://h2:1");
    CHECK_TEXT(t, url.prefix, "a/b-c");
    CHECK_OK(t, etcd_url_parse("etcd://[::1]:7,[::1],localhost/x", &url, NULL));
    CHECK(t, url.loopback);
    CHECK_TEXT(t, url.server[0], "http://[::1]:7");
    CHECK_TEXT(t, url.server[1], "http://[::1]:2379");
    CHECK_OK(t, etcd_url_parse("etcd://127.0.0.1,10.0.0.1/x", &url, NULL));
    CHECK(t, !url.loopback);
out:;
}

TEST(a_wrong_url_is_refused_with_its_part)
{
    static const struct {
        const char *url, *part;
    } wrong[] = {
        {"",                      "etcd://HOST:PORT/PREFIX"},
        { "http://a/b",           "etcd://HOST:PORT/PREFIX"},
        { "etcd://",              "not a server"           },
        { "etcd:///x",            "not a server"           },
        { "etcd://a,/x",          "not a server"           },
        { "etcd://a:0/x",         "not a server"           },
        { "etcd://a:65536/x",     "not a server"           },
        { "etcd://a b/x",         "not a server"           },
        { "etcd://[::1/x",        "not a server"           },
        { "etcd://me:secret@a/x", "--store-password-file"  },
        { "etcd://m e@a/x",       "user"                   },
        { "etcd://a/x y",         "prefix"                 },
    };
    struct etcd_url url;
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK(t, etcd_url_parse(wrong[i].url, &url, &err) < 0);
        CHECK_HAS(t, err.text, wrong[i].part);
        CHECK(t, !strstr(err.text, "secret"));
    }
out:;
}
