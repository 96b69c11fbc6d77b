/*
 * test_job_foreign.c: the job file with records that this project's code would never write: each
 * record is reported as damage.
 */
#include "driver/journal/job_file.h"

#include "tests/lib/testjob.h"

#include <stdio.h>
#include <unistd.h>

static struct testjob_seen seen;
static struct file_bytes before;

/* Runs sql on the file, as an operator could do with a program of SQLite. */
static int run_sql(const char *sql)
{
    static const struct db_schema same = { "job", 'J', NULL, 2 };
    struct db_stmt stmt;
    struct db *db;
    int rc = db_open(testdb_path, &same, &testdb_options, &db, NULL);

    if (rc)
        return rc;
    rc = db_prepare(&stmt, db, sql, NULL);
    if (!rc) {
        rc = db_run(&stmt, NULL);
        db_stmt_release(&stmt);
    }
    testdb_end(db);
    return rc;
}

static int make_three(struct test *t)
{
    struct store *file = NULL;
    int rc = testjob_begin(t, &file);

    for (uint64_t seed = 0; seed < 3 && !rc; seed++)
        rc = testjob_write(file, seed, NULL);
    testjob_end(&file);
    return rc;
}

/* Rows that were written by hand, without the checks of the tables. */
TEST_FLAGS(foreign_records_are_checked, TEST_NO_TORTURE)
{
    static const struct {
        const char *sql;
        const char *words;
    } rows[] = {
        {"kind = 0",                                              "does not know this kind of record"      },
        { "kind = 19",                                            "does not know this kind of record"      },
        { "kind = -1",                                            "kind is out of range"                   },
        { "kind = 4294967297",                                    "kind is out of range"                   },
        { "incarnation = -1",                                     "incarnation is out of range"            },
        { "incarnation = 16777217",                               "incarnation is out of range"            },
        { "cause = 3",                                            "cause is out of range"                  },
        { "slot = 4294967296",                                    "slot is out of range"                   },
        { "slot = -1",                                            "slot is out of range"                   },
        { "ended = 4",                                            "ended is out of range"                  },
        { "value = 2147483648",                                   "value is out of range"                  },
        { "code = -2147483649",                                   "code is out of range"                   },
        { "wall_us = -1",                                         "wall_us is out of range"                },
        { "host = 'a b'",                                         "a host name that no host can have"      },
        { "host = hex(zeroblob(200))",                            "the text in the column host is too long"},
        { "text = hex(zeroblob(200))",                            "the text in the column text is too long"},
        { "text = 'a' || char(0)",                                "the text in the column text holds a NUL"},
        { "addresses = 'x'",                                      "the addresses cannot be read"           },
        { "addresses = '1:a'",                                    "the addresses cannot be read"           },
        { "addresses = '2:a,'",                                   "the addresses cannot be read"           },
        { "addresses = '1:a,b'",                                  "the addresses cannot be read"           },
        { "addresses = '1:ab,'",                                  "the addresses cannot be read"           },
        { "addresses = '1:'",                                     "the addresses cannot be read"           },
        { "addresses = ':,'",                                     "the addresses cannot be read"           },
        { "addresses = '-1:a,'",                                  "the addresses cannot be read"           },
        { "addresses = '18446744073709551615:a,'",                "the addresses cannot be read"           },
        { "addresses = replace(hex(zeroblob(17)), '00', '0:,')",  "the addresses cannot be"                },
        { "addresses = hex(zeroblob(20000))",                     "column addresses is too long"           },
        { "members = 'x'",                                        "an id that no worker can have"          },
        { "members = ','",                                        "an id that no worker can have"          },
        { "members = '1,'",                                       "an id that no worker can have"          },
        { "members = '1,,2'",                                     "an id that no worker can have"          },
        { "members = '0'",                                        "an id that no worker can have"          },
        { "holders = '16777217'",                                 "an id that no worker can have"          },
        { "holders = '18446744073709551617'",                     "an id that no worker can have"          },
        { "members = replace(hex(zeroblob(131073)), '00', '1,')", "more ids than"                          },
        { "members = hex(zeroblob(1000000))",                     "column members is too long"             },
        { "id = 7",                                               "the record is missing"                  },
    };
    struct store *file = NULL;
    struct hvd_err err;
    char sql[256];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, make_three(t));
        snprintf(sql, sizeof(sql), "UPDATE journal SET %s WHERE id = 2", rows[i].sql);
        CHECK_OK(t, run_sql(sql));
        CHECK_OK(t, testjob_open(&file, NULL));
        CHECK_CODE(t, testjob_see(file, &seen, &err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, testdb_path);
        CHECK_HAS(t, err.text, "record 2 of the journal: ");
        CHECK_HAS(t, err.text, rows[i].words);
        CHECK_HAS(t, err.text, "; move the file and its -wal file aside");
        testjob_end(&file);
    }
out:
    testjob_end(&file);
}

TEST_FLAGS(foreign_facts_are_checked, TEST_NO_TORTURE)
{
    static const struct {
        const char *sql;
        const char *words;
    } rows[] = {
        {"DELETE FROM fact",                              "the row of facts about the job is missing"},
        { "UPDATE fact SET job = '../x'",                 "the name of the job is not valid"         },
        { "UPDATE fact SET job = ''",                     "the name of the job is not valid"         },
        { "UPDATE fact SET job = hex(zeroblob(40))",      "column job is too long"                   },
        { "UPDATE fact SET key = 'ab'",                   "the key of the job is not valid"          },
        { "UPDATE fact SET key = replace(key, '0', 'g')", "the key of the job is not valid"          },
        { "UPDATE fact SET key = key || 'a'",             "column key is too long"                   },
        { "UPDATE fact SET port = 65536",                 "column port is out of range"              },
        { "UPDATE fact SET ended = 2",                    "column ended is out of range"             },
        { "UPDATE fact SET code = 1 << 40",               "column code is out of range"              },
        { "UPDATE fact SET text = hex(zeroblob(200))",    "column text is too long"                  },
    };
    struct store *file = NULL;
    struct hvd_err err;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(t, make_three(t));
        CHECK_OK(t, run_sql(rows[i].sql));
        CHECK_CODE(t, testjob_open(&file, &err), HVD_E_CORRUPT);
        CHECK_HAS(t, err.text, testdb_path);
        CHECK_HAS(t, err.text, rows[i].words);
    }
out:
    testjob_end(&file);
}

TEST(an_impossible_owner_is_damage)
{
    struct store *file = NULL;
    struct hvd_err err;

    CHECK_OK(t, testjob_begin(t, &file));
    CHECK_OK(t, run_sql("UPDATE owner SET who = hex(zeroblob(200))"));
    CHECK_CODE(t, store_check(file, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "the owner: the text in the column who is too long");
    CHECK_OK(t, run_sql("DELETE FROM owner"));
    CHECK_CODE(t, store_check(file, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "the row of the job's owner is missing");
    CHECK_CODE(t, testjob_write(file, 0, NULL), HVD_E_CORRUPT);
out:
    testjob_end(&file);
}

TEST(files_of_another_version_or_program_are_refused)
{
    struct store *file = NULL;
    struct hvd_err err;

    CHECK_OK(t, make_three(t));
    files_patch(testdb_path, TESTDB_AT_VERSION, "\0\0\0\3", 4);
    files_read(testdb_path, &before);
    CHECK_CODE(t, testjob_open(&file, &err), HVD_E_VERSION);
    CHECK(t, files_hold(testdb_path, &before));
    files_patch(testdb_path, TESTDB_AT_APPLICATION, "hvdB", 4);
    CHECK_CODE(t, testjob_open(&file, &err), HVD_E_INVAL);
    files_write(testdb_path, "", 0);
    CHECK_CODE(t, testjob_open(&file, &err), HVD_E_CORRUPT);
    CHECK_HAS(t, err.text, "the file is empty, but was not when it was made");
    CHECK_INT(t, unlink(testdb_path), ==, 0);
    snprintf(testdb_path, sizeof(testdb_path), "%s/nowhere/x.db", test_dir(t));
    CHECK_CODE(t, testjob_open(&file, &err), HVD_E_NOTFOUND);
out:
    testjob_end(&file);
}
