/*
 * yaml.c: reads Horovod's config file with libyaml. options.c calls it for the file of
 * --config-file. Either all values of the file are used or none. The file must be a mapping of
 * single values and of sections, and each section a mapping of single values: a list, an alias, a
 * tag or a second document is an error that names the line.
 */
#include "driver/horovod/yaml.h"

#include "base/limits.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#define PLACE_MAX 4096 /* the most bytes of "FILE:LINE", such as "job.yaml:3" */

enum yaml_kind {
    YAML_SAME,       /* the key's value is the option's value */
    YAML_YES_OR_NO,  /* the value is a flag, such as true or no */
    YAML_ENABLED,    /* the flag "enabled", which turns its whole section on or off */
    YAML_CONTROLLER, /* only the value "gloo" is accepted */
    YAML_NO_EFFECT   /* a key of old versions of Horovod, which is ignored */
};

/* clang-format off */
static const struct yaml_key {
    const char *section; /* "": a key outside the sections */
    const char *name;
    enum yaml_kind kind;
    const char *option; /* the option that the key sets; a refused option has no effect */
} keys[] = {
    { "", "controller", YAML_CONTROLLER, NULL },
    { "params", "fusion_threshold_mb", YAML_SAME, "fusion-threshold-mb" },
    { "params", "cycle_time_ms", YAML_SAME, "cycle-time-ms" },
    { "params", "cache_capacity", YAML_SAME, "cache-capacity" },
    { "params", "hierarchical_allreduce", YAML_YES_OR_NO, "hierarchical-allreduce" },
    { "params", "hierarchical_allgather", YAML_YES_OR_NO, "hierarchical-allgather" },
    { "params", "torus_allreduce", YAML_YES_OR_NO, "torus-allreduce" },
    { "autotune", "enabled", YAML_ENABLED, "autotune" },
    { "autotune", "log_file", YAML_SAME, "autotune-log-file" },
    { "autotune", "warmup_samples", YAML_SAME, "autotune-warmup-samples" },
    { "autotune", "steps_per_sample", YAML_SAME, "autotune-steps-per-sample" },
    { "autotune", "cycles_per_sample", YAML_NO_EFFECT, NULL },
    { "autotune", "bayes_opt_max_samples", YAML_SAME, "autotune-bayes-opt-max-samples" },
    { "autotune", "gaussian_process_noise", YAML_SAME, "autotune-gaussian-process-noise" },
    { "timeline", "enabled", YAML_ENABLED, NULL },
    { "timeline", "filename", YAML_SAME, "timeline-filename" },
    { "timeline", "mark_cycles", YAML_YES_OR_NO, "timeline-mark-cycles" },
    { "stall_check", "enabled", YAML_YES_OR_NO, "stall-check" },
    { "stall_check", "warning_time_seconds", YAML_SAME, "stall-warning" },
    { "stall_check", "shutdown_time_seconds", YAML_SAME, "stall-shutdown" },
    { "library_options", "mpi_threads_disable", YAML_YES_OR_NO, "mpi-threads-disable" },
    { "library_options", "mpi_threads_disabled", YAML_YES_OR_NO, "mpi-threads-disable" },
    { "library_options", "num_nccl_streams", YAML_SAME, "num-nccl-streams" },
    { "library_options", "thread_affinity", YAML_SAME, "thread-affinity" },
    { "library_options", "gloo_timeout_seconds", YAML_SAME, "gloo-timeout-seconds" },
    { "library_options", "ccl_bgt_affinity", YAML_NO_EFFECT, NULL },
    { "library_options", "mlsl_bgt_affinity", YAML_NO_EFFECT, NULL },
    { "logging", "level", YAML_SAME, "log-level" },
    { "logging", "with_timestamp", YAML_YES_OR_NO, "log-with-timestamp" },
    { "logging", "without_timestamp", YAML_YES_OR_NO, "log-without-timestamp" },
    { "logging", "hide_timestamp", YAML_YES_OR_NO, "log-without-timestamp" },
};
/* clang-format on */

/* One reading of a config file by libyaml. */
struct yaml_reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the part of the file that libyaml has read last */
    struct span text;
    const char *path;
    struct hvd_err *err;
    /* for each row of `keys`: where the file has this key, and its value */
    struct {
        /* the line where the section begins, only in the first row of the section; 0: the file does
         * not have the section */
        size_t section_line;
        size_t line; /* the line of the key; 0: the file does not have it */
        char *value; /* the value of the key; NULL: it has none */
    } found[ARRAY_SIZE(keys)];
};

/* Returns the line of the event that was read last; the first is 1. */
static size_t event_line(const struct yaml_reader *reader)
{
    return reader->event.start_mark.line + 1;
}

/* Sets an error that names `culprit`, a wrong text in the file, and the line of the event that was
 * read last. Returns HVD_E_INVAL. */
static int yaml_refuse(const struct yaml_reader *reader, struct span culprit, const char *why)
{
    char quoted[TEXT_QUOTE_MAX];

    return err_set(reader->err, HVD_E_INVAL, "%s:%zu: %s: %s", reader->path, event_line(reader),
                   text_quote(culprit.at, culprit.length, quoted), why);
}

/* Frees the present event of libyaml, and reads the next one. A tag at a value or mapping, such as
 * !!int, is an error. */
static int yaml_next(struct yaml_reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const yaml_event_t *event = &reader->event;
    const yaml_char_t *tag = NULL;
    size_t line;

    yaml_event_delete(&reader->event);
    if (yaml_parser_parse(&reader->parser, &reader->event)) {
        if (event->type == YAML_SCALAR_EVENT)
            tag = event->data.scalar.tag;
        else if (event->type == YAML_MAPPING_START_EVENT)
            tag = event->data.mapping_start.tag;
        return tag ? err_set(reader->err, HVD_E_INVAL,
                             "%s:%zu: the value has a tag; write the value without a tag",
                             reader->path, event_line(reader))
                   : 0;
    }
    memset(&reader->event, 0, sizeof(reader->event));
    if (parser->error == YAML_MEMORY_ERROR)
        return err_set(reader->err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    line = parser->problem_mark.line + 1;
    if (parser->error == YAML_READER_ERROR) {
        /* The text has a byte that is not UTF-8. libyaml gives only its offset in the file, so its
         * line is counted here. */
        line = 1;
        for (size_t i = 0; i < parser->problem_offset && i < reader->text.length; i++)
            line += reader->text.at[i] == '\n';
    }
    return err_set(reader->err, HVD_E_INVAL, "%s:%zu: not YAML: %s; mend this line", reader->path,
                   line, parser->problem ? parser->problem : "it cannot be read");
}

/* Reads the next event, which must have this type. `else_why` is the error text for an event of
 * another type. */
static int yaml_expect(struct yaml_reader *reader, yaml_event_type_t type, const char *else_why)
{
    int rc = yaml_next(reader);

    if (rc || reader->event.type == type)
        return rc;
    return err_set(reader->err, HVD_E_INVAL, "%s:%zu: %s", reader->path, event_line(reader),
                   else_why);
}

/* Returns the text of the scalar that was read last. */
static struct span scalar(const struct yaml_reader *reader)
{
    return (struct span){ (const char *)reader->event.data.scalar.value,
                          reader->event.data.scalar.length };
}

/* True: `key` of the file is equal to `name`, or has dashes in place of its underscores. */
static bool is_key(struct span key, const char *name)
{
    if (key.length != strlen(name))
        return false;
    for (size_t i = 0; i < key.length; i++) {
        if ((key.at[i] == '-' ? '_' : key.at[i]) != name[i])
            return false;
    }
    return true;
}

/* Sets *line to the line of the key or section `name`. Fails if *line is set already: the file has
 * this key twice. */
static int note_line(const struct yaml_reader *reader, const char *name, size_t *line)
{
    if (*line)
        return err_set(reader->err, HVD_E_INVAL,
                       "%s:%zu: %s: line %zu has this key, too; keep one of the two lines",
                       reader->path, event_line(reader), name, *line);
    *line = event_line(reader);
    return 0;
}

/* Reads the value of a key into reader->found[key], where `key` is the index of its row in `keys`.
 * An empty value, null and ~ without quotes count as no value (NULL). */
static int read_value(struct yaml_reader *reader, size_t key)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };
    enum yaml_kind kind = keys[key].kind;
    char *value, quoted[TEXT_QUOTE_MAX];
    struct span text;
    int rc = note_line(reader, keys[key].name, &reader->found[key].line);

    if (rc)
        return rc;
    rc = yaml_expect(reader, YAML_SCALAR_EVENT, "a single value must stand here; write key: value");
    if (rc)
        return rc;
    text = scalar(reader);
    if (memchr(text.at, '\0', text.length))
        return yaml_refuse(reader, text, "a NUL byte; write text only");
    if (reader->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
        (!text.length || span_is(text, "~") || span_is(text, "null") || span_is(text, "Null") ||
         span_is(text, "NULL")))
        return 0;
    value = mem_strndup(text.at, text.length);
    if (!value)
        return err_set(reader->err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    /* YAML also allows True and YES for true, so the value is changed to lower case. */
    for (char *at = value; kind != YAML_SAME && *at; at++)
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    reader->found[key].value = value;
    if (kind != YAML_YES_OR_NO && kind != YAML_ENABLED)
        return 0;
    /* A flag must be one of the words that base/opt_value.c accepts. All flags are checked here,
     * because a flag whose row has no option, or an option that is refused, is checked nowhere
     * else. */
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (!strcmp(value, words[i]))
            return 0;
    return err_set(reader->err, HVD_E_INVAL, "%s:%zu: %s: %s: must be true or false", reader->path,
                   event_line(reader), keys[key].name, text_quote(value, strlen(value), quoted));
}

/* Reads one pair of the file; its key is the present event. `section` is the section in which the
 * pair stands; "": the pair is outside the sections, and its key may name a section. *ret_section
 * is the section that begins with this pair; NULL: none does. */
static int read_pair(struct yaml_reader *reader, const char *section, const char **ret_section)
{
    const char *names[ARRAY_SIZE(keys)], *nearest = NULL;
    char text[OPT_NAME_MAX + 1] = "", why[200];
    size_t count = 0;
    struct span key;
    int rc;

    *ret_section = NULL;
    if (reader->event.type != YAML_SCALAR_EVENT)
        return err_set(reader->err, HVD_E_INVAL, "%s:%zu: the line has no key; write key: value",
                       reader->path, event_line(reader));
    key = scalar(reader);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!strcmp(keys[i].section, section) && is_key(key, keys[i].name))
            return read_value(reader, i);
        if (*section || !*keys[i].section || !is_key(key, keys[i].section))
            continue;
        rc = note_line(reader, keys[i].section, &reader->found[i].section_line);
        if (!rc)
            rc = yaml_next(reader);
        if (rc)
            return rc;
        if (reader->event.type == YAML_MAPPING_START_EVENT)
            *ret_section = keys[i].section;
        /* A section without keys has an empty value. */
        else if (reader->event.type != YAML_SCALAR_EVENT || scalar(reader).length)
            return err_set(reader->err, HVD_E_INVAL,
                           "%s:%zu: %s: this key is a section; write the keys of the section "
                           "below, each with a value",
                           reader->path, event_line(reader), keys[i].section);
        return 0;
    }

    /* The key is unknown: the error proposes the nearest name that is known in this section. */
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!*section && *keys[i].section)
            names[count++] = keys[i].section;
        else if (!strcmp(keys[i].section, section))
            names[count++] = keys[i].name;
    }
    if (key.length <= OPT_NAME_MAX && !memchr(key.at, '\0', key.length)) {
        snprintf(text, sizeof(text), "%.*s", (int)key.length, key.at);
        nearest = text_nearest(text, names, count);
    }
    if (nearest)
        snprintf(why, sizeof(why), "unknown key; did you mean \"%s\"?", nearest);
    else
        snprintf(why, sizeof(why),
                 "Horovod's %s%s has no such key; write options of hvd-elastic into a file of "
                 "lines \"name = value\"",
                 *section ? "section " : "config file", section);
    return yaml_refuse(reader, key, why);
}

/* Sets the options from the values that were found in the file: all values, or none if one is wrong
 * (opt_take). `off` is true for a value whose section is turned off by the section's key "enabled".
 * `unused` gets the keys without effect. */
static int take_found(struct yaml_reader *reader, struct opt_set *set, struct buf *unused)
{
    struct opt_given given[ARRAY_SIZE(keys)];
    struct buf places[ARRAY_SIZE(keys)];
    size_t count = 0;
    int rc = 0;

    for (size_t i = 0; i < ARRAY_SIZE(keys) && !rc; i++) {
        const char *value = reader->found[i].value;
        const struct opt *row = keys[i].option ? opt_find(set, keys[i].option) : NULL;
        const char *on;
        bool off = false;

        /* A section whose key "enabled" is false does not count. The section autotune, whose row
         * for "enabled" has an option, also does not count without this key, as in Horovod. */
        for (size_t k = 0; k < ARRAY_SIZE(keys) && value; k++) {
            if (k == i || keys[k].kind != YAML_ENABLED ||
                strcmp(keys[k].section, keys[i].section) != 0)
                continue;
            on = reader->found[k].value;
            off = on ? !strcmp(on, "false") || !strcmp(on, "no") || !strcmp(on, "off") ||
                           !strcmp(on, "0")
                     : keys[k].option != NULL;
            break;
        }
        if (!value || off)
            continue;
        if (keys[i].kind == YAML_CONTROLLER && strcmp(value, "gloo") != 0)
            rc = err_set(reader->err, HVD_E_UNSUPPORTED,
                         "%s:%zu: controller: not supported here: agents start the workers, "
                         "without MPI; write gloo, or leave it out",
                         reader->path, reader->found[i].line);
        else if (keys[i].kind == YAML_NO_EFFECT || (row && opt_refuses(row, value))) {
            rc = buf_printf(unused, "%s%s:%zu: %s", unused->length ? ", " : "", reader->path,
                            reader->found[i].line, keys[i].name);
            if (rc == HVD_E_LIMIT) /* `unused` is full; the list is only shown to the user, for whom
                                      its beginning is enough */
                rc = 0;
        } else if (row && row->kind != OPT_REFUSED) {
            buf_init(&places[count], PLACE_MAX);
            rc = buf_printf(&places[count], "%s:%zu", reader->path, reader->found[i].line);
            given[count] =
                (struct opt_given){ keys[i].option, value, buf_text(&places[count]), keys[i].name };
            count++;
        }
    }
    if (rc == HVD_E_NOMEM)
        err_set(reader->err, rc, "%s", err_text(rc));
    if (!rc)
        rc = opt_take(set, OPT_FILE, given, count, reader->err);
    while (count)
        buf_release(&places[--count]);
    return rc;
}

/* True: the config file looks like YAML. Its first line that is neither empty nor a comment
 * decides: it begins as YAML does, or has a name and a colon. In a file of hvd-elastic this line is
 * "name = value". */
bool horovod_yaml_is(struct span text)
{
    static const char mark[] = "\xef\xbb\xbf"; /* the byte order mark */
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    struct span line;

    if (text.length >= strlen(mark) && !memcmp(text.at, mark, strlen(mark)))
        text = (struct span){ text.at + strlen(mark), text.length - strlen(mark) };
    while (span_next(&text, '\n', &line)) {
        size_t length = 0;

        line = span_trim(line);
        if (!line.length || line.at[0] == '#')
            continue;
        if (strchr("%{\"'", line.at[0]) || (line.length >= 3 && !memcmp(line.at, "---", 3)))
            /* strchr also finds a NUL, which is no beginning of YAML. */
            return line.at[0] != '\0';
        while (length < line.length && line.at[length] && strchr(name, line.at[length]))
            length++;
        line = span_trim((struct span){ line.at + length, line.length - length });
        return line.length && line.at[0] == ':';
    }
    return false;
}

/* Reads `text`, the contents of the YAML file `path`, into options. `unused` gets the keys without
 * effect. */
int horovod_yaml(struct opt_set *set, const char *path, struct span text, struct buf *unused,
                 struct hvd_err *err)
{
    struct yaml_reader reader = { .text = text, .path = path, .err = err };
    const char *section = "";
    char quoted[TEXT_QUOTE_MAX];
    int rc;

    /* errors show a long or unclean path in quotes, and cut */
    if (strlen(path) >= PLACE_MAX / 2 || !text_is_clean(path, strlen(path)) || strchr(path, '\n'))
        reader.path = text_quote(path, strlen(path), quoted);
    if (text.length > LIMIT_CONFIG_TEXT_BYTES)
        return err_set(err, HVD_E_LIMIT, "%s: the file is longer than %d bytes; shorten it",
                       reader.path, LIMIT_CONFIG_TEXT_BYTES);
    if (!yaml_parser_initialize(&reader.parser))
        return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text.at, text.length);
    rc = yaml_expect(&reader, YAML_STREAM_START_EVENT, "no YAML");
    if (!rc)
        rc = yaml_expect(&reader, YAML_DOCUMENT_START_EVENT,
                         "there are no keys; leave the file out");
    if (!rc)
        rc = yaml_expect(&reader, YAML_MAPPING_START_EVENT,
                         "keys with values must stand here; write key: value");
    /* `section` is "" outside the sections, and NULL after the last key of the file. */
    while (!rc && section) {
        const char *begun = NULL;

        rc = yaml_next(&reader);
        if (!rc && reader.event.type == YAML_MAPPING_END_EVENT)
            section = *section ? "" : NULL;
        else if (!rc)
            rc = read_pair(&reader, section, &begun);
        if (begun)
            section = begun;
    }
    if (!rc)
        rc = yaml_expect(&reader, YAML_DOCUMENT_END_EVENT, "no end of the document");
    if (!rc)
        rc = yaml_expect(&reader, YAML_STREAM_END_EVENT,
                         "a second document begins here; keep one of the two");
    if (!rc)
        rc = take_found(&reader, set, unused);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        mem_free(reader.found[i].value);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    return rc;
}
