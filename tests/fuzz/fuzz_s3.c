/*
 * fuzz_s3.c: text that comes from servers and users of S3. The first byte says how the rest is
 * read: 'p': as a credentials file; 'a': as an address; 'm': as the JSON of the metadata service;
 * anything else: as the XML of an answer.
 *
 * Each element lies in the answer and comes after the one before. A decoded text is no longer than
 * its source. An address that is taken gives a URL of plain characters.
 */
#include "base/mem.h"
#include "base/panic.h"
#include "state/remote/s3_address.h"
#include "state/remote/s3_metadata.h"
#include "state/remote/s3_profile.h"
#include "state/remote/s3_text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_answer(const char *text, size_t length)
{
    struct s3_reader reader = {
        .rest = {text, length}
    };
    const char *before = text;
    struct s3_element element;

    while (s3_text_next(&reader, &element)) {
        char *decoded = mem_alloc(element.text.length + 1);

        ASSERT(decoded && element.depth > 0 && element.name.at > before);
        ASSERT(element.text.at + element.text.length <= text + length);
        before = element.name.at;
        if (s3_text_decode(element.text, decoded, element.text.length + 1))
            ASSERT(strlen(decoded) <= element.text.length);
        mem_free(decoded);
    }
}

static void read_profile(struct span text)
{
    struct s3_profile *profile = mem_zalloc(sizeof(*profile));
    struct hvd_err err = { .code = 0 };

    ASSERT(profile);
    if (s3_profile_read("fuzz", text, "default", profile, &err))
        ASSERT(err.code < 0 && !strncmp(err.text, "fuzz:", 5));
    else
        ASSERT(profile->found || (!*profile->id && !*profile->secret));
    mem_free(profile);
}

static void read_address(const char *text)
{
    struct s3_address address;
    struct buf url;

    if (strncmp(text, S3_SCHEME, strlen(S3_SCHEME)) != 0 || s3_address_parse(text, &address, NULL))
        return;
    buf_init(&url, 16384);
    ASSERT(!s3_url(&address, NULL, "r", "k", NULL, &url));
    for (size_t i = 0; i < url.length; i++)
        ASSERT(url.data[i] > ' ' && url.data[i] < 0x7f);
    ASSERT(!strstr(buf_text(&url) + 8, "//") && !strstr(buf_text(&url), "/../"));
    buf_release(&url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct s3_profile *profile;
    char *copy; /* a block of its own, so that the sanitizer sees a read past its end */

    if (size < 1)
        return 0;
    copy = mem_strndup((const char *)data + 1, size - 1);
    profile = mem_zalloc(sizeof(*profile));
    ASSERT(copy && profile);
    if (data[0] == 'p')
        read_profile((struct span){ copy, size - 1 });
    else if (data[0] == 'a')
        read_address(copy);
    else if (data[0] == 'm')
        (void)!s3_metadata_read(copy, size - 1, profile, NULL);
    else
        read_answer(copy, size - 1);
    mem_free(profile);
    mem_free(copy);
    return 0;
}
