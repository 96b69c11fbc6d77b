/*
 * yaml.h: Horovod's config file: YAML with sections (params, autotune, timeline, stall_check,
 * library_options, logging). --config-file accepts such a file, or a file with lines of "name =
 * value".
 */
#ifndef DRIVER_HOROVOD_YAML_H
#define DRIVER_HOROVOD_YAML_H

#include "base/buf.h"
#include "base/opt.h"
#include "base/text.h"

/* True: the text of a config file is meant as YAML, and not as lines of "name = value". The first
 * line that is neither empty nor a comment decides. */
bool horovod_yaml_is(struct span text);

/* Reads the keys of Horovod's config file into the options of `set`, which count as much as those
 * of a config file of hvd-elastic. Only Horovod's own keys are known, with underscores or with
 * dashes; keys without effect are appended to *unused, separated by ", ". `path` is only for error
 * texts. Fails with HVD_E_INVAL or another code; the error begins with path and line. */
int horovod_yaml(struct opt_set *set, const char *path, struct span text, struct buf *unused,
                 struct hvd_err *err) MUST_CHECK;

#endif
