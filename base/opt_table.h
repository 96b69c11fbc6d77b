/*
 * opt_table.h: one row of a table of options (opt.h): the kinds of values, the flags, the macros
 * that write a row.
 */
#ifndef BASE_OPT_TABLE_H
#define BASE_OPT_TABLE_H

#include "base/base.h"

#define OPT_NAME_MAX 40

/* The kind of a value, with the type of its field and the value of an unset field. */
enum opt_kind {
    OPT_FLAG,     /* field bool, unset: false; --name or --no-name; in files true or false */
    OPT_NUMBER,   /* field uint64_t, unset: 0 */
    OPT_DURATION, /* field int64_t in microseconds, unset: 0; "90s" or "1m30s" (base/time.h) */
    OPT_RANGE,   /* field struct opt_range, unset: 0 0; two durations, "10s,10m", the lower first */
    OPT_TEXT,    /* field char *, unset: NULL */
    OPT_CHOICE,  /* field unsigned or an enum, unset: 0; the index of the word in `choices` */
    OPT_LIST,    /* field struct opt_list, unset: empty; each mention appends, "" empties it */
    OPT_REFUSED, /* no field: the option is refused, and the help text says why */
    OPT_ACCEPTED /* no field: the option changes nothing, and the help text says why */
};

struct opt_range {
    int64_t low_us;
    int64_t high_us;
};

struct opt_list {
    char **items;
    size_t count;
    size_t capacity;
};

#define OPT_ARGV_ONLY 0x1u  /* allowed on the command line only, such as --help */
#define OPT_TEST_ONLY 0x2u  /* shown in a group of its own at the end of the help */
#define OPT_NEVER     0x4u  /* a duration may be "never" */
#define OPT_NO_ENV    0x8u  /* no HVD_* variable, because that variable has another meaning */
#define OPT_TWO_WORDS 0x10u /* an item of a list has two words, "NAME VALUE" */
/* --name (ON) or --no-name (OFF) of an OPT_REFUSED asks only for what the program does anyway, and
 * is not refused. */
#define OPT_ON_HOLDS  0x20u
#define OPT_OFF_HOLDS 0x40u
#define OPT_UNLIMITED 0x80u /* a number may be "unlimited", which is UINT64_MAX */
/* A number of bytes, which may end in K, M, G or T, or in KiB and so on: powers of 1024. */
#define OPT_SIZE   0x100u
#define OPT_SECRET 0x200u /* the value may hold a secret: notes for the log leave it out */

struct opt {
    const char *name;
    const char *alias; /* a second name, or NULL */
    char key;          /* the short option -k; 0: none */
    enum opt_kind kind;
    unsigned flags;             /* OPT_ARGV_ONLY and so on */
    const char *arg;            /* the name of the value in the help: "N", "FILE", "LOW HIGH" */
    const char *preset;         /* the default as text; NULL: unset, or false for a flag */
    uint64_t min;               /* least number or duration; texts and lists: > 0 forbids "" */
    uint64_t max;               /* greatest number or duration; 0: the greatest of the kind */
    const char *const *choices; /* the words of an OPT_CHOICE; ends in NULL */
    size_t offset;              /* of the field for the value, in the program's config */
    const char *group;          /* the heading under which the help shows the option */
    const char *help;
};

/* One row of a table. The kind follows from the field's type, so both always agree. */
/* clang-format off */
#define OPT(type, field, ...)                                                      \
    { .kind = _Generic(((type *)NULL)->field,                                      \
                       bool: OPT_FLAG, uint64_t: OPT_NUMBER,                       \
                       int64_t: OPT_DURATION, struct opt_range: OPT_RANGE,         \
                       char *: OPT_TEXT, unsigned: OPT_CHOICE,                     \
                       struct opt_list: OPT_LIST),                                 \
      .offset = offsetof(type, field), __VA_ARGS__ }
#define OPT_REFUSE(...) { .kind = OPT_REFUSED, __VA_ARGS__ }
#define OPT_ACCEPT(...) { .kind = OPT_ACCEPTED, __VA_ARGS__ }
/* clang-format on */

#endif
