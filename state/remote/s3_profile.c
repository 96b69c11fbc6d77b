/*
 * s3_profile.c: reads one profile out of the text of a credentials or config file. Called by
 * s3_keys.c. Invariant: no error quotes a value, because a value may be a secret.
 */
#include "state/remote/s3_profile.h"

#include <stdio.h>
#include <string.h>

/* true: the line is the heading of this profile, "[NAME]" or "[profile NAME]". */
static bool profile_is_heading(struct span line, const char *name)
{
    static const char word[] = "profile ";
    struct span inside = { line.at + 1, line.length - 1 };
    const char *end = inside.length ? memchr(inside.at, ']', inside.length) : NULL;

    if (!end)
        return false;
    inside = span_trim((struct span){ inside.at, (size_t)(end - inside.at) });
    if (span_is(inside, name))
        return true;
    if (inside.length < sizeof(word) - 1 || memcmp(inside.at, word, sizeof(word) - 1) != 0)
        return false;
    inside.at += sizeof(word) - 1;
    inside.length -= sizeof(word) - 1;
    return span_is(span_trim(inside), name);
}

/* Reads the settings of the profile `name`. A setting that *profile has already stays, so the file
 * that is read first counts. */
int s3_profile_read(const char *path, struct span text, const char *name,
                    struct s3_profile *profile, struct hvd_err *err)
{
    const struct {
        const char *name;
        char *into;
        size_t size;
    } settings[] = {
        {"aws_access_key_id",      profile->id,       sizeof(profile->id)      },
        { "aws_secret_access_key", profile->secret,   sizeof(profile->secret)  },
        { "aws_session_token",     profile->token,    sizeof(profile->token)   },
        { "region",                profile->region,   sizeof(profile->region)  },
        { "endpoint_url",          profile->endpoint, sizeof(profile->endpoint)},
    };
    bool inside = false;
    struct span line;

    for (size_t number = 1; span_next(&text, '\n', &line); number++) {
        bool indented = line.length && (*line.at == ' ' || *line.at == '\t');
        struct span setting = { line.at, 0 }, value = line;

        line = span_trim(line);
        if (!line.length || *line.at == '#' || *line.at == ';' || indented)
            continue;
        if (*line.at == '[') {
            inside = profile_is_heading(line, name);
            profile->found = profile->found || inside;
            continue;
        }
        if (!inside || !span_next(&value, '=', &setting) || setting.length == line.length)
            continue;
        setting = span_trim(setting);
        value = span_trim(value);
        for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
            if (!span_is(setting, settings[i].name) || *settings[i].into)
                continue;
            if (value.length >= settings[i].size || !text_is_clean(value.at, value.length))
                return err_set(err, HVD_E_LIMIT,
                               "%s:%zu: the value of %s is longer than %zu bytes, or is not plain "
                               "text; correct the value",
                               path, number, settings[i].name, settings[i].size - 1);
            snprintf(settings[i].into, settings[i].size, "%.*s", (int)value.length, value.at);
        }
    }
    return 0;
}
