#include "tools/audit_line.h"

#include "base/limits.h"

/* The words before the numbers: in this order, behind "batch NAME". */
struct word {
    const char *what;
    uint64_t min, max;
    size_t at;
};

static const struct word words[] = {
    {"the epoch",                 0, UINT64_MAX,    offsetof(struct audit_line, epoch)  },
    { "the place in the epoch",   0, LIMIT_SAMPLES, offsetof(struct audit_line, first)  },
    { "the samples of the batch", 1, LIMIT_SAMPLES, offsetof(struct audit_line, total)  },
    { "the round",                0, UINT64_MAX,    offsetof(struct audit_line, round)  },
    { "the rank",                 0, LIMIT_WORKERS, offsetof(struct audit_line, rank)   },
    { "the size",                 1, LIMIT_WORKERS, offsetof(struct audit_line, size)   },
    { "the samples of an epoch",  1, LIMIT_SAMPLES, offsetof(struct audit_line, samples)},
};

static int read_head(struct span head, struct audit_line *line, struct hvd_err *err)
{
    struct span part;
    int rc = 0;

    if (!span_next(&head, ' ', &part) || !span_is(part, "batch"))
        return err_set(err, HVD_E_INVAL, "it does not begin with \"batch\"");
    if (!span_next(&head, ' ', &line->name) || line->name.length == 0)
        return err_set(err, HVD_E_INVAL, "no name behind \"batch\"");
    if (line->name.length > 3 * (size_t)LIMIT_MANIFEST_NAME_BYTES ||
        !text_is_clean(line->name.at, line->name.length))
        return err_set(err, HVD_E_INVAL, "no sampler has such a name");
    for (size_t i = 0; !rc && i < ARRAY_SIZE(words); i++) {
        if (!span_next(&head, ' ', &part))
            return err_set(err, HVD_E_INVAL, "%s is missing", words[i].what);
        rc = text_parse_u64(part, words[i].min, words[i].max, words[i].what,
                            (uint64_t *)(void *)((char *)line + words[i].at), err);
    }
    if (!rc && head.at)
        return err_set(err, HVD_E_INVAL, "more words than there should be before the \":\"");
    return rc;
}

static int check_head(const struct audit_line *line, struct hvd_err *err)
{
    if (line->rank >= line->size)
        return err_set(err, HVD_E_INVAL, "the rank is not below the size");
    if (line->total > line->samples || line->first > line->samples - line->total)
        return err_set(err, HVD_E_INVAL, "the batch goes past the end of the epoch");
    return 0;
}

bool audit_line_next(struct span *numbers, uint64_t *ret_number)
{
    struct span part;

    return span_next(numbers, ' ', &part) &&
           text_parse_u64(part, 0, UINT64_MAX, "", ret_number, NULL) == 0;
}

static int check_numbers(struct audit_line *line, struct hvd_err *err)
{
    struct span rest = line->numbers;
    struct span part;
    uint64_t number;
    int rc = 0;

    while (!rc && span_next(&rest, ' ', &part)) {
        rc = text_parse_u64(part, 0, line->samples - 1, "a sample", &number, err);
        if (!rc && ++line->count > line->total)
            return err_set(err, HVD_E_INVAL, "more samples than the batch has");
    }
    return rc;
}

int audit_line_read(struct span text, struct audit_line *ret_line, struct hvd_err *err)
{
    struct audit_line line = { .count = 0 };
    struct span head;
    int rc;

    if (!span_next(&text, ':', &head) || !text.at)
        return err_set(err, HVD_E_INVAL, "no \":\" in it; this is no line of a sample log");
    if (text.length && text.at[0] != ' ')
        return err_set(err, HVD_E_INVAL, "no blank behind the \":\"");
    line.numbers =
        text.length ? (struct span){ text.at + 1, text.length - 1 } : (struct span){ NULL, 0 };
    rc = read_head(head, &line, err);
    if (!rc)
        rc = check_head(&line, err);
    if (!rc)
        rc = check_numbers(&line, err);
    if (rc)
        return HVD_E_INVAL; /* a number out of its bounds is no limit of ours */
    *ret_line = line;
    return 0;
}
