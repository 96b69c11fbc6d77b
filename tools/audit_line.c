/*
 * audit_line.c: parses a line of a sample log. hvd_audit.c calls it for each line. All numbers of
 * an accepted line are within their bounds, so audit.c can use them as indexes.
 */
#include "tools/audit.h"

#include "base/limits.h"

/* The numbers of a line, in the order of the line. They stand after the name of the sampler and
 * before the colon. `what` names a number in an error; `at` is its offset in struct audit_line. */
struct word {
    const char *what;
    uint64_t min, max;
    size_t at;
};

static const struct word words[] = {
    {"the epoch",                           0, UINT64_MAX,    offsetof(struct audit_line, epoch)  },
    { "the place in the epoch",             0, LIMIT_SAMPLES, offsetof(struct audit_line, first)  },
    { "the number of samples in the batch", 1, LIMIT_SAMPLES, offsetof(struct audit_line, total)  },
    { "the round",                          0, UINT64_MAX,    offsetof(struct audit_line, round)  },
    { "the rank",                           0, LIMIT_WORKERS, offsetof(struct audit_line, rank)   },
    { "the size",                           1, LIMIT_WORKERS, offsetof(struct audit_line, size)   },
    { "the number of samples in an epoch",  1, LIMIT_SAMPLES, offsetof(struct audit_line, samples)},
};

/* Takes the next sample off the numbers of a line that audit_line_read has accepted. false: no
 * sample is left. */
bool audit_line_next(struct span *numbers, uint64_t *ret_number)
{
    struct span part;

    return span_next(numbers, ' ', &part) &&
           text_parse_u64(part, 0, UINT64_MAX, "", ret_number, NULL) == 0;
}

/* Parses one line of a sample log: "batch NAME", the numbers of `words`, a colon, and the samples.
 * HVD_E_INVAL: the line differs from that form, or a number is out of its bounds. */
int audit_line_read(struct span text, struct audit_line *ret_line, struct hvd_err *err)
{
    struct audit_line line = { .count = 0 };
    struct span head;
    struct span rest;
    struct span part;
    uint64_t number;

    if (!span_next(&text, ':', &head) || !text.at)
        return err_set(err, HVD_E_INVAL, "the line has no \":\"; it is no line of a sample log");
    if (text.length && text.at[0] != ' ')
        return err_set(
            err, HVD_E_INVAL,
            "there is no blank after the \":\"; this is no sample log, or a damaged one");

    /* Reads the word "batch", the name of the sampler and the numbers. The code is HVD_E_INVAL also
     * for a number out of its bounds, because such a number breaks no limit of hvd-elastic. */
    if (!span_next(&head, ' ', &part) || !span_is(part, "batch"))
        return err_set(
            err, HVD_E_INVAL,
            "the line does not begin with \"batch\"; this is no sample log, or a damaged one");
    if (!span_next(&head, ' ', &line.name) || line.name.length == 0)
        return err_set(err, HVD_E_INVAL,
                       "there is no name after \"batch\"; this is no sample log, or a damaged one");
    if (line.name.length > 3 * (size_t)LIMIT_MANIFEST_NAME_BYTES ||
        !text_is_clean(line.name.at, line.name.length))
        return err_set(
            err, HVD_E_INVAL,
            "the name of the sampler is not valid; this is no sample log, or a damaged one");
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (!span_next(&head, ' ', &part))
            return err_set(err, HVD_E_INVAL,
                           "%s is missing; this is no sample log, or a damaged one", words[i].what);
        /* Every field is a uint64_t at its offset in the line. */
        if (text_parse_u64(part, words[i].min, words[i].max, words[i].what,
                           (uint64_t *)(void *)((char *)&line + words[i].at), err))
            return HVD_E_INVAL;
    }
    if (head.at)
        return err_set(
            err, HVD_E_INVAL,
            "there are too many words before the \":\"; this is no sample log, or a damaged one");
    if (line.rank >= line.size)
        return err_set(
            err, HVD_E_INVAL,
            "the rank is not below the size of the round; this is no sample log, or a damaged one");
    if (line.total > line.samples || line.first > line.samples - line.total)
        return err_set(
            err, HVD_E_INVAL,
            "the batch goes past the end of the epoch; this is no sample log, or a damaged one");

    if (text.length)
        line.numbers = (struct span){ text.at + 1, text.length - 1 };
    rest = line.numbers;
    while (span_next(&rest, ' ', &part)) {
        if (text_parse_u64(part, 0, line.samples - 1, "a sample", &number, err))
            return HVD_E_INVAL;
        if (++line.count > line.total)
            return err_set(err, HVD_E_INVAL,
                           "the line has more samples than the batch; this is no sample log, or a "
                           "damaged one");
    }
    *ret_line = line;
    return 0;
}
