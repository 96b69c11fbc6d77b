/* test_s3_text.c: what is read of S3's answers, addresses and credentials files, and what is
 * refused. */
#include "state/remote/s3_address.h"
#include "state/remote/s3_metadata.h"
#include "state/remote/s3_profile.h"
#include "state/remote/s3_text.h"

#include "base/mem.h"
#include "tests/lib/test.h"

#include <string.h>

static struct span span_of(const char *text)
{
    return (struct span){ text, strlen(text) };
}

TEST(elements_come_in_order_with_their_depth)
{
    static const char page[] =
        "<?xml version='1.0'?>\n<!-- a > b --><List xmlns=\"http://x/\"><Prefix>p/</Prefix><Empty/>"
        "<Contents><Key>p/a&amp;b</Key><Size>1</Size></Contents></List>";
    static const struct {
        const char *name, *text;
        unsigned depth;
    } expected[] = {
        {"List",      "",          1},
        { "Prefix",   "p/",        2},
        { "Empty",    "",          2},
        { "Contents", "",          2},
        { "Key",      "p/a&amp;b", 3},
        { "Size",     "1",         3}
    };
    struct s3_reader reader = { .rest = span_of(page) };
    struct s3_element element;
    struct span text;
    char key[16];

    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        CHECK(t, s3_text_next(&reader, &element));
        CHECK(t, span_is(element.name, expected[i].name));
        CHECK(t, span_is(element.text, expected[i].text));
        CHECK_INT(t, element.depth, ==, expected[i].depth);
    }
    CHECK(t, !s3_text_next(&reader, &element));
    CHECK(t, s3_text_find(span_of(page), "Key", 3, &text));
    CHECK(t, s3_text_decode(text, key, sizeof(key)));
    CHECK_TEXT(t, key, "p/a&b");
    CHECK(t, !s3_text_find(span_of(page), "Key", 2, &text));
    CHECK(t, !s3_text_find(span_of("<html>no end"), "Error", 1, &text));
out:;
}

TEST(entities_are_decoded_or_refused)
{
    static const struct {
        const char *text, *decoded; /* NULL: refused */
    } rows[] = {
        {"&lt;&gt;&quot;&apos;", "<>\"'"          },
        { "a&#10;b&#x41;",       "a\nbA"          },
        { "&#228;&#8364;",       "\u00e4\u20ac"   },
        { "&#x1F600;",           "\U0001f600"     },
        { "&#0;",                NULL             },
        { "&#xd800;",            NULL             },
        { "&#1114112;",          NULL             },
        { "&#;",                 NULL             },
        { "&#x;",                NULL             },
        { "&#12a;",              NULL             },
        { "&nbsp;",              NULL             },
        { "& ",                  NULL             },
        { "0123456789abcde",     "0123456789abcde"},
        { "0123456789abcdef",    NULL             },
    };
    char into[16];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_INT(t, s3_text_decode(span_of(rows[i].text), into, sizeof(into)), ==,
                  rows[i].decoded != NULL);
        if (rows[i].decoded)
            CHECK_TEXT(t, into, rows[i].decoded);
    }
    CHECK(t, !s3_text_decode((struct span){ "a\0b", 3 }, into, sizeof(into)));
out:;
}

TEST(an_address_names_bucket_and_prefix)
{
    static const char *const wrong[] = { "s3://",         "s3:///a",     "s3://ab/x",
                                         "s3://a b/x",    "s3://-ab/",   "s3://abc/../x",
                                         "s3://abc/a//b", "s3://abc/./a" };
    struct s3_address address;
    struct hvd_err err;

    CHECK_OK(t, s3_address_parse("s3://abc", &address, NULL));
    CHECK_TEXT(t, address.bucket, "abc");
    CHECK_TEXT(t, address.prefix, "");
    CHECK_OK(t, s3_address_parse("s3://a.b-c/some/where//", &address, NULL));
    CHECK_TEXT(t, address.bucket, "a.b-c");
    CHECK_TEXT(t, address.prefix, "some/where/");
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CHECK_CODE(t, s3_address_parse(wrong[i], &address, &err), HVD_E_INVAL);
        CHECK(t, !strncmp(err.text, wrong[i], strlen(wrong[i])));
    }
out:;
}

TEST(a_url_is_encoded_once)
{
    struct s3_address plain, dotted;
    struct buf url;

    buf_init(&url, 4096);
    CHECK_OK(t, s3_address_parse("s3://abc/a b/\u00e4+", &plain, NULL));
    CHECK_OK(t, s3_address_parse("s3://a.bc", &dotted, NULL));
    CHECK_OK(t, s3_url(&plain, NULL, "eu-west-1", "f/g=h", "x=1", &url));
    CHECK_TEXT(t, buf_text(&url),
               "https://abc.s3.eu-west-1.amazonaws.com/a%20b/%C3%A4%2B/f/g%3Dh?x=1");
    buf_clear(&url);
    CHECK_OK(t, s3_url(&dotted, NULL, "cn-north-1", NULL, NULL, &url));
    CHECK_TEXT(t, buf_text(&url), "https://s3.cn-north-1.amazonaws.com.cn/a.bc");
    buf_clear(&url);
    CHECK_OK(t, s3_url(&plain, "http://h:1/", "r", "f", NULL, &url));
    CHECK_TEXT(t, buf_text(&url), "http://h:1/abc/a%20b/%C3%A4%2B/f");
    CHECK_OK(t, s3_endpoint_check("E", "https://h/x", NULL));
    CHECK_CODE(t, s3_endpoint_check("E", "h:80", NULL), HVD_E_INVAL);
    CHECK_CODE(t, s3_endpoint_check("E", "http://", NULL), HVD_E_INVAL);
    CHECK_CODE(t, s3_endpoint_check("E", "http://u@h", NULL), HVD_E_INVAL);
out:
    buf_release(&url);
}

TEST(a_profile_is_read_and_the_others_are_not)
{
    static const char file[] = "# mine\r\n[default]\naws_access_key_id=AK0\n"
                               "[profile  big one]\n aws_access_key_id = nested\n"
                               "aws_access_key_id = AK1\r\naws_secret_access_key= s/+=1 \n"
                               "s3 =\n  region = no\nregion=eu-west-1\nno value\n"
                               "[big one]\naws_access_key_id = later\n";
    struct s3_profile *profile = mem_zalloc(sizeof(*profile));
    char longer[700] = "[x]\nregion=";
    struct hvd_err err;

    CHECK(t, profile);
    CHECK_OK(t, s3_profile_read("f", span_of(file), "big one", profile, NULL));
    CHECK(t, profile->found);
    CHECK_TEXT(t, profile->id, "AK1");
    CHECK_TEXT(t, profile->secret, "s/+=1");
    CHECK_TEXT(t, profile->region, "eu-west-1");
    CHECK_TEXT(t, profile->token, "");
    memset(profile, 0, sizeof(*profile));
    CHECK_OK(t, s3_profile_read("f", span_of(file), "none", profile, NULL));
    CHECK(t, !profile->found && !*profile->id);
    memset(longer + strlen(longer), 'r', S3_REGION_MAX);
    CHECK_CODE(t, s3_profile_read("f", span_of(longer), "x", profile, &err), HVD_E_LIMIT);
    CHECK_HAS(t, err.text, "f:2: the value of region is longer than 63 bytes");
out:
    mem_free(profile);
}

TEST(credentials_of_the_metadata_service_are_checked)
{
    static const char good[] = "{\"Code\":\"Success\",\"AccessKeyId\":\"AK\",\"SecretAccessKey\":"
                               "\"s\",\"Token\":\"t\",\"Expiration\":\"2026-11-23T12:00:00Z\"}";
    struct s3_profile *profile = mem_zalloc(sizeof(*profile));
    struct hvd_err err = { .text = "" };

    CHECK(t, profile);
    CHECK_OK(t, s3_metadata_read(good, strlen(good), profile, NULL));
    CHECK_TEXT(t, profile->id, "AK");
    CHECK_TEXT(t, profile->token, "t");
    CHECK_CODE(t, s3_metadata_read("[]", 2, profile, NULL), HVD_E_PROTO);
    CHECK_CODE(t, s3_metadata_read("{\"AccessKeyId\":1}", 17, profile, &err), HVD_E_PROTO);
    CHECK_TEXT(t, err.text, "its answer with the credentials has no text AccessKeyId");
out:
    mem_free(profile);
}
