/*
 * test_agent_input.c: the lines of options that a driver writes to the standard input of an agent,
 * with the host's key, and what is said when they do not fit.
 */
#include "driver/io/agent_input.h"

#include "base/time.h"
#include "tests/lib/test.h"

#include <string.h>

TEST(is_lines_of_options)
{
    static char path[] = "PATH=/bin", id[] = "AWS_ACCESS_KEY_ID=me", odd[] = "AWS_X",
                secret[] = "AWS_SECRET_ACCESS_KEY=a\"b/+=";
    char *const env[] = { path, id, odd, secret, NULL };
    struct core_config core;
    uint8_t key[32];
    struct agent_input input = { .core = &core,
                                 .job_id = "0011223344556677",
                                 .key = key,
                                 .epoch = 3,
                                 .host = "n1",
                                 .driver = "[::1]:80",
                                 .stall_warning_us = TIME_MIN,
                                 .stall_shutdown_us = TIME_NEVER,
                                 .log_file = "/a \"b\"\\\n",
                                 .storage_env = env };
    struct buf out;

    memset(key, 0xa5, sizeof(key));
    core_config_init(&core);
    core.job = "j";
    core.min_np = 2;
    core.max_np = 3;
    buf_init(&out, 4096);
    CHECK_OK(t, agent_input_write(&input, &out));
    CHECK_HAS(t, buf_text(&out),
              "job = \"j\"\nhost = \"n1\"\njob-id = \"0011223344556677\"\ndrivers = "
              "\"[::1]:80\"\nkey = a5a5");
    CHECK_HAS(t, buf_text(&out), "a5\nepoch = 3\nmin-np = 2\nmax-np = 3\nbeat = 1s\nlease = 10s\n");
    CHECK_HAS(t, buf_text(&out), "driver-grace = 1m\n"); /* until it is welcomed */
    CHECK_HAS(t, buf_text(&out), "stall-warning = 1m\nstall-shutdown = never\n");
    CHECK(t, !strstr(buf_text(&out), "preemption"));
    CHECK_HAS(t, buf_text(&out), "log-file = \"/a \\\"b\\\"\\\\\\x0a\"\n");
    /* Only the variables of S3, and all of them. */
    CHECK_HAS(t, buf_text(&out),
              "\nstorage-env = \"AWS_ACCESS_KEY_ID=me\"\nstorage-env = "
              "\"AWS_SECRET_ACCESS_KEY=a\\\"b/+=\"\nlog-file");
    CHECK(t, !strstr(buf_text(&out), "PATH"));
    buf_release(&out);
    input.storage_env = NULL;
    input.preemption = "aws,command:a \"b\"";
    buf_init(&out, 4096);
    CHECK_OK(t, agent_input_write(&input, &out));
    CHECK(t, !strstr(buf_text(&out), "AWS_"));
    CHECK_HAS(t, buf_text(&out), "\npreemption = \"aws,command:a \\\"b\\\"\"\n");
out:
    buf_release(&out);
}

TEST_FLAGS(says_when_the_input_does_not_fit, TEST_NO_TORTURE)
{
    struct core_config core;
    uint8_t key[32] = { 0 };
    struct agent_input input = {
        .core = &core, .job_id = "1", .key = key, .host = "n1", .driver = "1.2.3.4:5"
    };
    struct buf out;

    core_config_init(&core);
    core.job = "j";
    for (size_t max = 0; max < 200; max += 7) {
        buf_init(&out, max);
        CHECK_CODE(t, agent_input_write(&input, &out), HVD_E_LIMIT);
        buf_release(&out);
    }
    buf_init(&out, 1);
out:
    buf_release(&out);
}
