/*
 * bench_gpu_job: a training program without training, for `run`: it measures what hvd makes of a
 * device, and writes that down.
 *
 *     bench_gpu_job reduce|commit [--way WORDS] [--mib N] [--times N] [--table FILE] [--json FILE]
 *
 * reduce is for a job of several, and rank 0 writes; commit is for one, started by itself or by
 * hvd-elastic. The compared settings come from outside (HVD_COMMIT_TO, HVD_GPU_OPERATIONS); --way
 * names them.
 */
#include "bench/gpu/job.h"

#include "hvd/hvd.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct program {
    struct job job;
    bool reduces;
    const char *table, *json;
};

int64_t job_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void job_must(int code, const char *what)
{
    if (!code)
        return;
    fprintf(stderr, "bench_gpu_job: %s: %s: %s\n", what, hvd_strerror(code), hvd_last_error());
    exit(1);
}

void job_must_cuda(const struct job *job, int code, const char *what)
{
    struct hvd_err err = { .text = "" };

    if (!cuda_judge(job->cuda, code, what, &err))
        return;
    fprintf(stderr, "bench_gpu_job: %s\n", err.text);
    exit(1);
}

static int train(hvd_state *state, void *arg)
{
    struct program *program = arg;

    return program->reduces ? job_reduce(&program->job) : job_commit(&program->job, state);
}

static void open_device(struct job *job)
{
    struct hvd_err err = { .text = "" };
    cuda_address at = 0;
    int count = 0;

    if (cuda_open(&job->cuda, &err) || job->cuda->device_count(&count) ||
        gpu_device_get(hvd_slot() % (count ? count : 1), &job->device, &err) ||
        gpu_enter(job->device, &err)) {
        fprintf(stderr, "bench_gpu_job: %s\n", err.text);
        exit(1);
    }
    job_must_cuda(job, job->cuda->stream_create(&job->stream, CUDA_STREAM_NON_BLOCKING, 0),
                  "a stream");
    job_must_cuda(job, job->cuda->memory_alloc(&at, job->mib * JOB_MIB), "device memory");
    job_must_cuda(job, job->cuda->fill(at, 0, job->mib * JOB_MIB, job->stream), "device memory");
    job_must_cuda(job, job->cuda->stream_sync(job->stream), "device memory");
    job->data = (float *)(uintptr_t)at;
}

static bool write_to(const char *path, const struct program *program,
                     void (*write)(const struct program *program, FILE *file))
{
    FILE *file = path ? fopen(path, "w") : NULL;

    if (file)
        write(program, file);
    if (path && (!file || fclose(file))) {
        perror(path);
        return false;
    }
    return true;
}

static void write_table(const struct program *program, FILE *file)
{
    figures_table(program->job.figures, program->reduces ? "reduce" : "commit", file);
}

static void write_json(const struct program *program, FILE *file)
{
    figures_json(program->job.figures, file);
}

static bool read_words(int argc, char **argv, struct program *program)
{
    if (argc < 2 || (strcmp(argv[1], "reduce") != 0 && strcmp(argv[1], "commit") != 0))
        return false;
    program->reduces = !strcmp(argv[1], "reduce");
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--way"))
            program->job.way = argv[i + 1];
        else if (!strcmp(argv[i], "--table"))
            program->table = argv[i + 1];
        else if (!strcmp(argv[i], "--json"))
            program->json = argv[i + 1];
        else if (!strcmp(argv[i], "--mib"))
            program->job.mib = strtoul(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--times"))
            program->job.times = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        else
            return false;
    }
    return argc % 2 == 0 && program->job.mib > 0 && program->job.times > 0;
}

int main(int argc, char **argv)
{
    static struct figures figures = { .lock = ATOMIC_FLAG_INIT };
    struct program program = {
        .job = {.figures = &figures, .way = "as it comes", .mib = 128, .times = 7}
    };
    hvd_state *state;
    int code;

    if (!read_words(argc, argv, &program)) {
        fprintf(stderr, "usage: bench_gpu_job reduce|commit [--way WORDS] [--mib N] [--times N]\n"
                        "           [--table FILE] [--json FILE]\n");
        return 2;
    }
    job_must(hvd_init(), "hvd_init");
    open_device(&program.job);
    state = hvd_state_create();
    if (!state)
        job_must(HVD_E_NOMEM, "hvd_state_create");
    job_must(hvd_set_stream(program.job.stream), "hvd_set_stream");
    if (!program.reduces)
        job_must(hvd_state_add(state, "data", program.job.data, program.job.mib * JOB_MIB),
                 "hvd_state_add");
    code = hvd_elastic_run(state, train, &program);
    if (code < 0)
        job_must(code, "hvd_elastic_run");
    if (hvd_rank() == 0 && (!write_to(program.table, &program, write_table) ||
                            !write_to(program.json, &program, write_json)))
        return 1;
    hvd_state_free(state);
    hvd_shutdown();
    return 0;
}
