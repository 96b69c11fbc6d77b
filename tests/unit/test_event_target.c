/*
 * test_event_target.c: which URLs and headers --on-event-url takes, what is shown of them, and each
 * refusal, which quotes neither.
 */
#include "driver/control/event_target.h"

#include "os/file.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char path[400];

/* Writes the file of headers. */
static bool put(struct test *t, const char *text, mode_t mode)
{
    FILE *file;

    snprintf(path, sizeof(path), "%s/headers", test_dir(t));
    file = fopen(path, "w");
    return file && fputs(text, file) >= 0 && !fclose(file) && !chmod(path, mode);
}

TEST(only_the_server_of_a_url_is_shown)
{
    static const char *const urls[][2] = {
        {"http://a",                            "http://a"                  },
        { "https://a.example:8443/x?k=v#f",     "https://a.example:8443"    },
        { "HTTPS://u:p@a/x@y",                  "HTTPS://a"                 },
        { "http://token@10.0.0.7?k=v:9/@",      "http://10.0.0.7"           },
        { "http://u:p%40@[fd00::1%25eth0]:80/", "http://[fd00::1%25eth0]:80"},
        { "http://[::1]",                       "http://[::1]"              },
        { "http://a_b-c.d:65535/\xc3\xa9",      "http://a_b-c.d:65535"      },
    };
    char name[EVENT_TARGET_NAME_MAX];

    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        CHECK_OK(t, event_target_name(urls[i][0], name, NULL));
        CHECK_TEXT(t, name, urls[i][1]);
    }
out:;
}

TEST(a_wrong_url_is_refused_and_not_quoted)
{
    static const char *const urls[] = {
        "",
        "k3y",
        "k3y.example/x",
        "ftp://k3y/",
        "http:/k3y",
        "http://",
        "http:///k3y",
        "http://k3y@/x",
        "http://u:k3y@b@a/",
        "http://u:k/3y@a/", /* the server is "u", and "k" is no port */
        "http://u:k?3y@a/",
        "http://a:/k3y",
        "http://a:0/k3y",
        "http://a:65536/k3y",
        "http://a:8o/k3y",
        "http://[::1/k3y",
        "http://[::1]80/k3y",
        "http://[]/k3y",
        "http://a b/k3y",
        "http://a/k3y x",
        "http://a/k3y\r\nX-Evil: 1",
        "http://a\x7f/k3y",
        "http://\xc3\xa9/k3y",
    };
    static char url[LIMIT_OPTION_TEXT_BYTES + 100], host[400];
    char name[EVENT_TARGET_NAME_MAX] = "untouched";
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        CHECK_CODE(t, event_target_name(urls[i], name, &err), HVD_E_INVAL);
        CHECK_HAS(t, err.text, "--on-event-url: ");
        CHECK(t, !strstr(err.text, "k3y"));
    }
    memset(url, 'x', sizeof(url) - 1);
    snprintf(url, sizeof(url), "http://a/");
    url[9] = 'x';
    CHECK_CODE(t, event_target_name(url, name, &err), HVD_E_LIMIT);
    memset(host, 'x', sizeof(host) - 1);
    snprintf(host, sizeof(host), "http://");
    host[7] = 'x';
    CHECK_CODE(t, event_target_name(host, name, &err), HVD_E_INVAL);
    host[7 + LIMIT_HOST_NAME_BYTES] = '\0';
    CHECK_TEXT(t, name, "untouched");
    CHECK_OK(t, event_target_name(host, name, &err));
    CHECK_TEXT(t, name, host);
out:;
}

TEST(headers_are_read_line_by_line)
{
    struct event_target target = { .header_count = 0 };

    CHECK(t,
          put(t, "# secret\r\n\n  Authorization: Bearer t0ken \r\nX-Job:j1\n\t\nX-B:\tb: \xc3\xa9",
              0640));
    CHECK_OK(t, event_target_init(&target, "http://a/", path, NULL));
    CHECK_INT(t, target.header_count, ==, 3);
    CHECK_TEXT(t, target.headers[0], "Authorization: Bearer t0ken");
    CHECK_TEXT(t, target.headers[1], "X-Job:j1");
    CHECK_TEXT(t, target.headers[2], "X-B:\tb: \xc3\xa9");
    CHECK_TEXT(t, buf_text(&target.url), "http://a/");
    CHECK_TEXT(t, target.name, "http://a");
out:
    event_target_release(&target);
}

TEST(a_wrong_header_is_refused_and_not_quoted)
{
    static const char *const texts[][2] = {
        {"",                          "headers: the file has no header"                          },
        { "# k3y\n",                  "headers: the file has no header"                          },
        { "A: b\nk3y\n",              "headers:2: the line is no header"                         },
        { "k3y:\n",                   "headers:1: the line is no header"                         },
        { ": k3y\n",                  "headers:1: the line is no header"                         },
        { "A B: k3y\n",               "headers:1: the line is no header"                         },
        { "A : k3y\n",                "headers:1: the line is no header"                         },
        { "A: b\n\nB: k3y\x01\n",     "headers:3: the line is no header"                         },
        { "A:\rk3y\n",                "headers:1: the line is no header"                         },
        { "A: k3y\rB: c\n",           "headers:1: the line is no header"                         },
        { "\xef\xbb\xbf\x41: k3y\n",  "headers:1: the line is no header"                         },
        { "content-type: k3y\n",      "headers:1: the driver itself sets the header Content-Type"},
        { "CONTENT-LENGTH: k3y\n",    "the driver itself sets the header Content-Length"         },
        { "Transfer-Encoding: k3y\n", "sets the header Transfer-Encoding; remove this line"      },
    };
    struct event_target target = { .header_count = 0 };
    char text[8 * (LIMIT_HOOK_HEADERS + 1) + 1] = "";
    struct hvd_err err;
    static char huge[LIMIT_OPTION_TEXT_BYTES + 2];

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CHECK(t, put(t, texts[i][0], 0600));
        CHECK_CODE(t, event_target_init(&target, "http://a/", path, &err), HVD_E_INVAL);
        CHECK_HAS(t, err.text, "--on-event-url-header-file: ");
        CHECK_HAS(t, err.text, texts[i][1]);
        CHECK(t, !strstr(err.text, "k3y"));
    }
    for (int i = 0; i <= LIMIT_HOOK_HEADERS; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "X: k3y\n");
    CHECK(t, put(t, text, 0600));
    CHECK_CODE(t, event_target_init(&target, "http://a/", path, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "headers:33: more than 32 headers (LIMIT_HOOK_HEADERS)");
    memset(huge, '#', sizeof(huge) - 1);
    CHECK(t, put(t, huge, 0600));
    CHECK_CODE(t, event_target_init(&target, "http://a/", path, &err), HVD_E_LIMIT);
    CHECK(t, put(t, "A: k3y\n", 0644));
    CHECK_CODE(t, event_target_init(&target, "http://a/", path, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "other users can read or change this file");
    CHECK_CODE(t, event_target_init(&target, "http://a/", "/dev/null", &err), HVD_E_INVAL);
    CHECK_CODE(t, event_target_init(&target, "http://a/", "/no/such", &err), HVD_E_NOTFOUND);
out:
    event_target_release(&target);
}
