/*
 * test_horovod.c: driver/horovod: what was written for Horovod or mpirun (variables, YAML, words of
 * command lines), read by the options of hvd-elastic.
 */
#include "base/limits.h"
#include "base/opt_show.h"
#include "base/time.h"
#include "driver/horovod/yaml.h"
#include "driver/options.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <string.h>

#define WORDS_MAX 40

static struct driver_options options;
static struct hvd_err err;
static struct buf shown;
static struct buf unused;

/* Words and variables between single blanks. */
static char texts[2][1024];
static char *words[2][WORDS_MAX + 1];

static int split(size_t which, const char *first, const char *text)
{
    char *rest = texts[which];
    int count = 0;

    snprintf(texts[which], sizeof(texts[which]), "%s%s", first, text);
    while (rest && *rest && count < WORDS_MAX)
        words[which][count++] = strsep(&rest, " ");
    words[which][count] = NULL;
    return count;
}

MUST_CHECK static int read_with(const char *line, const char *variables)
{
    int count = split(0, "hvd-elastic ", line);
    int rc;

    split(1, "", variables);
    options_release(&options);
    err = (struct hvd_err){ 0 };
    rc = options_init(&options);
    return rc ? rc : options_read(&options, count, words[0], words[1], &err);
}

/* Reads a YAML file into fresh options. */
MUST_CHECK static int read_yaml(const char *text)
{
    int rc;

    options_release(&options);
    buf_release(&unused);
    buf_init(&unused, LIMIT_UNUSED_TEXT_BYTES);
    err = (struct hvd_err){ 0 };
    rc = options_init(&options);
    return rc ? rc
              : horovod_yaml(&options.set, "f.yaml", (struct span){ text, strlen(text) }, &unused,
                             &err);
}

MUST_CHECK static int show(void)
{
    buf_release(&shown);
    buf_init(&shown, LIMIT_CONFIG_TEXT_BYTES);
    return opt_show_config(&options.set, true, &shown);
}

static void end_case(struct test *t)
{
    (void)t;
    buf_release(&shown);
    buf_release(&unused);
    options_release(&options);
}
FIXTURE(NULL, end_case)

/* ---- variables ------------------------------------------------------------------------------- */

TEST(variables_are_read_in_their_units)
{
    CHECK_OK(t,
             read_with("-np 1 x", "HOROVOD_ELASTIC_TIMEOUT=3 HOROVOD_START_TIMEOUT=45 "
                                  "HOROVOD_FUSION_THRESHOLD=33554432 HOROVOD_TIMELINE=t.json "
                                  "HOROVOD_STALL_CHECK_TIME_SECONDS=7 "
                                  "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=9 HOROVOD_LOG_LEVEL=DEBUG "
                                  "HOROVOD_LOG_HIDE_TIME=1 HOROVOD_GLOO_IFACE=eth0,eth1 "
                                  "HOROVOD_CPU_OPERATIONS=GLOO HOROVOD_THREAD_AFFINITY=0,4 "
                                  "HOROVOD_DISABLE_NVTX_RANGES=1"));
    CHECK(t, options.disable_nvtx_ranges);
    CHECK_INT(t, options.elastic_timeout_us, ==, 3 * TIME_S);
    CHECK_INT(t, options.start_timeout_us, ==, 45 * TIME_S);
    CHECK_INT(t, options.fusion_threshold_mb, ==, 32);
    CHECK_TEXT(t, options.timeline, "t.json");
    CHECK_INT(t, options.stall_warning_us, ==, 7 * TIME_S);
    CHECK_INT(t, options.stall_shutdown_us, ==, 9 * TIME_S);
    CHECK_TEXT(t, options.log_level, "DEBUG");
    CHECK(t, !options.log_timestamps);
    CHECK_TEXT(t, buf_text(&options.interfaces), "eth0,eth1");
    CHECK_TEXT(t, options_operations[options.cpu_operations], "gloo");
    CHECK_TEXT(t, options.thread_affinity, "0,4");
    CHECK_TEXT(t, buf_text(&options.unused_variables), "");
    CHECK_OK(t, read_with("-np 1 x", "HOROVOD_STALL_CHECK_DISABLE=1"));
    CHECK(t, options.stall_warning_us == TIME_NEVER && !options.stall_check);
    CHECK_OK(t, read_with("-np 1 x", "HOROVOD_STALL_CHECK_DISABLE=0"));
    CHECK(t, options.stall_check);
}

TEST(variables_rank_below_every_other_source)
{
    CHECK_OK(t, read_with("-np 1 --elastic-timeout 5 x",
                          "HOROVOD_ELASTIC_TIMEOUT=3 HOROVOD_TIMELINE=theirs "
                          "HVD_TIMELINE_FILENAME=ours HOROVOD_START_TIMEOUT=45"));
    CHECK_INT(t, options.elastic_timeout_us, ==, 5 * TIME_S);
    CHECK_TEXT(t, options.timeline, "ours");
    CHECK_OK(t, show());
    CHECK_HAS(t, buf_text(&shown),
              "elastic-timeout = 5s # command line, not HOROVOD_ELASTIC_TIMEOUT\n");
    CHECK_HAS(t, buf_text(&shown),
              "timeline-filename = ours # HVD_TIMELINE_FILENAME, not HOROVOD_TIMELINE\n");
    CHECK_HAS(t, buf_text(&shown), "start-timeout = 45s # HOROVOD_START_TIMEOUT\n");
    buf_clear(&shown);
    CHECK_OK(t, opt_show_notes(&options.set, &shown));
    CHECK_TEXT(t, buf_text(&shown),
               "--elastic-timeout: 5s of the command line counts, not 3s of "
               "HOROVOD_ELASTIC_TIMEOUT\n"
               "--timeline-filename: ours of HVD_TIMELINE_FILENAME counts, not theirs of "
               "HOROVOD_TIMELINE\n");
}

TEST(variables_without_a_counterpart_are_named_once)
{
    /* the variables that an agent sets for its workers, like HOROVOD_RANK, are not named */
    CHECK_OK(t, read_with("-np 1 x",
                          "HOROVOD_CYCLE_TIME=5 HOROVOD_RANK=0 HOROVOD_HOSTNAME=h "
                          "HOROVOD_ELASTIC=1 HOROVOD_CACHE_CAPACITY= HOROVOD_MPI_THREADS_DISABLE=1 "
                          "HOROVOD_CPU_OPERATIONS=MPI HOROVOD_CYCLE_TIME=7 "
                          "HOROVOD_TORUS_ALLREDUCE=0 HOROVOD_HIERARCHICAL_ALLREDUCE=0 "
                          "HOROVOD_CONTROLLER=gloo HOROVOD_TIMELINE=DYNAMIC HOROVOD_=x "
                          "HOROVOD_WITHOUT_MPI=1 HOROVOD_\x01=1"));
    CHECK_TEXT(t, buf_text(&options.unused_variables),
               "HOROVOD_CYCLE_TIME, HOROVOD_MPI_THREADS_DISABLE, HOROVOD_CPU_OPERATIONS, "
               "HOROVOD_HIERARCHICAL_ALLREDUCE, HOROVOD_TIMELINE, HOROVOD_, HOROVOD_WITHOUT_MPI, "
               "\"HOROVOD_\\x01\"");
    CHECK_OK(t, read_with("-np 1 x", "HOROVOD_AUTOTUNE=1 HOROVOD_AUTOTUNE_WARMUP_SAMPLES=5"));
    CHECK_TEXT(t, buf_text(&options.unused_variables), "");
    buf_init(&shown, LIMIT_CONFIG_TEXT_BYTES);
    CHECK_OK(t, opt_show_notes(&options.set, &shown));
    CHECK_HAS(t, buf_text(&shown), "HOROVOD_AUTOTUNE: changes nothing: each round measures");
}

/* As guides of mpirun do: of -x and the environment -x counts, and no other source. */
TEST(variables_that_workers_are_given_are_read_too)
{
    CHECK_OK(t, read_with("-np 1 -x HOROVOD_FUSION_THRESHOLD=33554432 -x HOROVOD_CYCLE_TIME=3.5 "
                          "-x HOROVOD_TIMELINE -x HOROVOD_ELASTIC_TIMEOUT=3 --elastic-timeout 5 x",
                          "HOROVOD_FUSION_THRESHOLD=1048576 HOROVOD_TIMELINE=t.json"));
    CHECK_INT(t, options.fusion_threshold_mb, ==, 32);
    CHECK_INT(t, options.elastic_timeout_us, ==, 5 * TIME_S);
    CHECK_TEXT(t, options.timeline, "t.json");
    CHECK_TEXT(t, buf_text(&options.unused_variables), "HOROVOD_CYCLE_TIME");
    CHECK(t, read_with("-np 1 -x HOROVOD_FUSION_THRESHOLD=1 x", ""));
    CHECK_HAS(t, err.text, "HOROVOD_FUSION_THRESHOLD: 1 bytes are no whole number of MB");
}

TEST(wrong_variables_are_named)
{
    static const struct {
        const char *variable;
        const char *says;
    } wrongs[] = {
        {"HOROVOD_ELASTIC_TIMEOUT=soon",          "HOROVOD_ELASTIC_TIMEOUT: \"soon\": not a duration"},
        { "HOROVOD_FUSION_THRESHOLD=1000000",
         "HOROVOD_FUSION_THRESHOLD: 1000000 bytes are no whole number of MB; write 1048576 bytes, "
          "or give --fusion-threshold-mb 1"                                                          },
        { "HOROVOD_FUSION_THRESHOLD=64MB",
         "HOROVOD_FUSION_THRESHOLD: \"64MB\": the number of bytes"                                   },
        { "HOROVOD_FUSION_THRESHOLD=99999999999", "HOROVOD_FUSION_THRESHOLD: \"99999999999\""        },
        { "HOROVOD_STALL_CHECK_DISABLE=maybe",
         "HOROVOD_STALL_CHECK_DISABLE: \"maybe\": the flag, 0 or 1, must be"                         },
        { "HOROVOD_THREAD_AFFINITY=a",            "HOROVOD_THREAD_AFFINITY: \"a\""                   },
        { "HOROVOD_LOG_LEVEL=loud",               "HOROVOD_LOG_LEVEL: \"loud\""                      },
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrongs); i++) {
        CHECK(t, read_with("-np 1 x", wrongs[i].variable));
        CHECK_HAS(t, err.text, wrongs[i].says);
    }
}

/* ---- words of mpirun ------------------------------------------------------------------------- */

/* The command that guides of mpirun and Horovod begin with. */
TEST(takes_the_usual_line_of_mpirun)
{
    CHECK_OK(t, read_with("-np 4 -H a:2,b:2 --allow-run-as-root -bind-to none -map-by slot -x "
                          "NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl "
                          "^openib python train.py",
                          ""));
    CHECK_INT(t, options.np, ==, 4);
    CHECK_INT(t, options.exports.count, ==, 3);
    CHECK_TEXT(t, options.exports.items[0], "NCCL_DEBUG=INFO");
    CHECK_TEXT(t, options.command[0], "python");
    CHECK_OK(t, read_with("-np 1 --mca btl self,tcp --mca plm_rsh_no_tree_spawn 1 -xA=1 x", ""));
    CHECK_TEXT(t, options.exports.items[0], "A=1");
}

TEST(parameters_of_mpirun_become_options)
{
    CHECK_OK(t, read_with("-np 1 -mca btl_tcp_if_include eth0,eth1 -mca oob_tcp_if_include ib0 x",
                          "HOROVOD_GLOO_IFACE=lo"));
    CHECK_TEXT(t, buf_text(&options.interfaces), "eth0,eth1,ib0");
    CHECK_OK(t, read_with("-np 1 -mca btl_tcp_if_exclude lo,docker0 x", ""));
    CHECK_TEXT(t, buf_text(&options.interfaces), "^lo,docker0");
    split(0, "", "hvd-elastic -np 1 -mca plm_rsh_args -p@12345 x");
    *strchr(words[0][5], '@') = ' ';
    options_release(&options);
    CHECK_OK(t, options_init(&options));
    CHECK_OK(t, options_read(&options, 7, words[0], words[1], &err));
    CHECK_TEXT(t, options.ssh_args.items[0], "-p 12345");
    CHECK_TEXT(t, options.launcher, "ssh");
    CHECK_OK(t, read_with("-np 1 -mca plm_rsh_agent ./kubexec.sh x", ""));
    CHECK_TEXT(t, options.launcher, "./kubexec.sh");
}

TEST(other_words_of_mpirun_are_refused)
{
    static const struct {
        const char *line;
        const char *says;
    } wrongs[] = {
        {"-np 1 -bind-to core x",
         "--bind-to \"core\": not supported here: workers are not bound"                                                               },
        { "-np 1 -map-by ppr:2:node x",
         "--map-by \"ppr:2:node\": not supported here: the slots of"                                                                   },
        { "-np 1 -mca pml ucx x",                                        "--mca \"pml ucx\": not supported here: nothing of MPI runs"  },
        { "-np 1 -mca btl tcp,openib x",                                 "--mca \"btl tcp,openib\": not supported here"                },
        { "-np 1 -mca btl_openib_if_include mlx5 x",                     "not supported here: nothing of MPI runs"                     },
        { "-np 1 -mca pml",                                              "--mca: this option takes two values; write --mca NAME VALUE" },
        { "-np 1 --mca=pml",                                             "--mca: this option takes two values; write --mca NAME VALUE" },
        { "-np 1 --network-interface a -mca btl_tcp_if_include b x",
         "--network-interface and --mca btl_tcp_if_include: both options set the same; leave one "
          "out"                                                                                                                        },
        { "-np 1 -mca btl_tcp_if_include a -mca oob_tcp_if_exclude b x", "another list is a"                                           },
        { "-np 1 --host a x",                                            "--host: not supported here: write the hosts with their slots"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrongs); i++) {
        CHECK(t, read_with(wrongs[i].line, ""));
        CHECK_HAS(t, err.text, wrongs[i].says);
    }
}

/* ---- YAML ------------------------------------------------------------------------------------ */

TEST(reads_a_file_of_horovod)
{
    CHECK_OK(t, read_yaml("controller: gloo\n"
                          "params:\n"
                          "  fusion_threshold_mb: 32 # MB\n"
                          "  cycle_time_ms: 10\n"
                          "  cache-capacity: 2048\n"
                          "  hierarchical_allreduce: true\n"
                          "  hierarchical_allgather: true\n"
                          "  torus-allreduce: False\n"
                          "autotune: {enabled: true, warmup_samples: 5}\n"
                          "timeline:\n"
                          "  filename: 'a b.json'\n"
                          "  mark_cycles: YES\n"
                          "stall_check:\n"
                          "  enabled: true\n"
                          "  warning_time_seconds: 120\n"
                          "  shutdown-time-seconds: 240\n"
                          "library_options:\n"
                          "  thread_affinity: 1\n"
                          "  gloo_timeout_seconds: 60\n"
                          "  ccl_bgt_affinity: 1\n"
                          "logging:\n"
                          "  level: WARNING\n"
                          "  hide_timestamp: true\n"));
    CHECK_INT(t, options.fusion_threshold_mb, ==, 32);
    CHECK_TEXT(t, options.timeline, "a b.json");
    CHECK_INT(t, options.stall_warning_us, ==, 2 * TIME_MIN);
    CHECK_INT(t, options.stall_shutdown_us, ==, 4 * TIME_MIN);
    CHECK_TEXT(t, options.thread_affinity, "1");
    CHECK_TEXT(t, options.log_level, "WARNING");
    CHECK(t, options.log_without_timestamp);
    CHECK_TEXT(t, buf_text(&unused),
               "f.yaml:4: cycle_time_ms, f.yaml:5: cache_capacity, f.yaml:12: mark_cycles, "
               "f.yaml:19: gloo_timeout_seconds, f.yaml:20: ccl_bgt_affinity");
    CHECK_OK(t, show());
    CHECK_HAS(t, buf_text(&shown), "fusion-threshold-mb = 32 # f.yaml:3\n");
    CHECK(t, opt_source(&options.set, "autotune") == OPT_FILE);
}

TEST(sections_can_be_empty_or_off)
{
    CHECK_OK(t, read_yaml("---\nparams:\nautotune:\n  log_file: log\ntimeline:\n  enabled: no\n"
                          "  filename: t.json\nlogging:\n  level:\n  hide_timestamp: ~\n...\n"));
    CHECK(t, !options.timeline);
    CHECK_TEXT(t, buf_text(&unused), "");
    CHECK(t, opt_source(&options.set, "autotune") == OPT_UNSET);
    CHECK(t, opt_source(&options.set, "log-level") == OPT_DEFAULT);
    /* what holds in any case is not named, in any spelling */
    CHECK_OK(t, read_yaml("params:\n  torus_allreduce: off\n  hierarchical_allreduce: Off\n"
                          "library_options:\n  mpi_threads_disable: 0\n"
                          "timeline:\n  mark_cycles: 1\nautotune: {enabled: 0, log_file: log}\n"));
    CHECK(t, opt_source(&options.set, "autotune-log-file") == OPT_UNSET);
    CHECK_TEXT(t, buf_text(&unused), "f.yaml:3: hierarchical_allreduce, f.yaml:7: mark_cycles");
    CHECK_OK(t, read_yaml("timeline:\n  filename: ''\n") ? 0 : HVD_E_INVAL); /* empty, in quotes */
    CHECK_HAS(t, err.text, "f.yaml:2: filename: FILE must not be empty");
}

TEST(a_wrong_file_names_the_line)
{
    static const struct {
        const char *text;
        const char *says;
    } wrongs[] = {
        {"params:\n  fusion_treshold_mb: 3\n",
         "f.yaml:2: \"fusion_treshold_mb\": unknown key; did you mean \"fusion_threshold_mb\"?"                                                                },
        { "np: 4\n",                                                                "f.yaml:1: \"np\": Horovod's config file has no such key; write options of"},
        { "timelines:\n  filename: x\n",                                            "f.yaml:1: \"timelines\": unknown key; did you mean"                       },
        { "timeline:\n  level: x\n",
         "f.yaml:2: \"level\": Horovod's section timeline has no such"                                                                                         },
        { "controller: mpi\n",                                                      "f.yaml:1: controller: not supported here: agents start"                   },
        { "timeline: x\n",
         "f.yaml:1: timeline: this key is a section; write the keys of the section below"                                                                      },
        { "timeline: [a, b]\n",                                                     "f.yaml:1: timeline: this key is a section"                                },
        { "timeline:\n  filename: [a]\n",                                           "f.yaml:2: a single value must stand here"                                 },
        { "timeline:\n  filename:\n    deep: x\n",                                  "f.yaml:3: a single value must stand here"                                 },
        { "timeline:\n  filename: !!binary eA==\n",
         "f.yaml:2: the value has a tag; write the value without a tag"                                                                                        },
        { "timeline: !x\n  filename: x\n",
         "f.yaml:1: the value has a tag; write the value without a tag"                                                                                        },
        { "timeline:\n  filename: *x\n",                                            "f.yaml:2: "                                                               },
        { "timeline:\n  ? [a]\n  : b\n",                                            "f.yaml:2: the line has no key; write key: value"                          },
        { "timeline:\n  filename: a\n  filename: b\n",
         "f.yaml:3: filename: line 2 has this key, too; keep one of the two"                                                                                   },
        { "params:\n  fusion_threshold_mb: 1\n  fusion-threshold-mb: 2\n",
         "f.yaml:3: fusion_threshold_mb: line 2 has this key, too"                                                                                             },
        { "params:\n  fusion_threshold_mb: many\n",
         "f.yaml:2: fusion_threshold_mb: \"many\": N must be"                                                                                                  },
        { "params:\n  hierarchical_allgather: true\n  fusion_threshold_mb: 9999\n",
         "f.yaml:3: fusion_threshold_mb: \"9999\": N must be"                                                                                                  },
        { "timeline:\n\tfilename: x\n",                                             "f.yaml:2: not YAML: "                                                     },
        { "timeline:\n  filename: \"x\n",                                           "not YAML: "                                                               },
        { "timeline:\n  filename: \"a\\0b\"\n",                                     "f.yaml:2: \"a\\x00b\": a NUL byte"                                        },
        { "timeline:\n  filename: \xff\n",                                          "f.yaml:2: not YAML: "                                                     },
        { "timeline:\n---\nparams:\n",                                              "f.yaml:2: a second document begins here"                                  },
        { "- a\n",                                                                  "f.yaml:1: keys with values must stand here"                               },
        { "",                                                                       "f.yaml:1: there are no keys"                                              },
        { "timeline:\n  enabled: maybe\n  filename: x\n",
         "f.yaml:2: enabled: \"maybe\": must be true or false"                                                                                                 },
        { "autotune:\n  enabled: Maybe\n",                                          "f.yaml:2: enabled: \"maybe\": must be true or false"                      },
        { "params:\n  hierarchical_allgather: 7\n",
         "f.yaml:2: hierarchical_allgather: \"7\": must be true or false"                                                                                      },
        { "params:\n  torus_allreduce: no no\n",
         "f.yaml:2: torus_allreduce: \"no no\": must be true or false"                                                                                         },
        { "params:\n  cycle_time_ms: 3\ntimeline:\nparams:\n",
         "f.yaml:4: params: line 1 has this key, too; keep one"                                                                                                },
        { "stall_check:\n  enabled: perhaps\n",                                     "f.yaml:2: enabled: \"perhaps\": must be true"                             },
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrongs); i++) {
        int rc = read_yaml(wrongs[i].text);

        CHECK_HAS(t, err.text, wrongs[i].says);
        CHECK(t, rc && rc == err.code);
        /* nothing of the file counts */
        CHECK_INT(t, options.fusion_threshold_mb, ==, OPTIONS_FUSION_MB);
        CHECK(t, !options.timeline);
    }
}

TEST(the_first_line_says_which_kind_a_file_is)
{
    static const struct {
        const char *text;
        bool yaml;
    } rows[] = {
        {"np = 3\n",                                   false},
        { "# x: y\n\n  np=3\nparams:\n",               false},
        { "timeline = a:b\n",                          false},
        { "",                                          false},
        { "# nothing\n",                               false},
        { "np\n",                                      false},
        { "=\n",                                       false},
        { "params:\n",                                 true },
        { "\xef\xbb\xbf# x\r\n\r\ncontroller : a=b\n", true },
        { "---\n",                                     true },
        { "%YAML 1.1\n",                               true },
        { "{timeline: {filename: \"a=b\"}}\n",         true },
        { "\"params\":\n",                             true },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct span text = { rows[i].text, strlen(rows[i].text) };

        CHECK_INT(t, horovod_yaml_is(text), ==, rows[i].yaml);
    }
    CHECK(t, !horovod_yaml_is((struct span){ "\0a:", 3 }));
}
