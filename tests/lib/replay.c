/*
 * replay.c: runs a fuzzer's function over every file of its corpus, without libFuzzer. An empty
 * corpus is an error: it would test nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long size = 0;

    if (file && !fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0) {
        rewind(file);
        /* one byte more, so that malloc never returns NULL; the sanitizer still sees reads past
         * size */
        data = malloc((size_t)size + 1);
    }
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    if (size > 0) {
        uint8_t *exact = realloc(data, (size_t)size);

        data = exact ? exact : data;
    }
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

int main(int argc, char **argv)
{
    size_t replayed = 0;
    struct dirent *entry;
    DIR *dir;

    if (argc != 2 || !(dir = opendir(argv[1]))) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    while ((entry = readdir(dir))) {
        char path[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        replay(path);
        replayed++;
    }
    closedir(dir);
    printf("%zu inputs replayed\n", replayed);
    return replayed ? 0 : 1;
}
