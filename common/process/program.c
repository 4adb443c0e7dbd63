/*
 * Where programs are looked up. In: worker/executor/launch.c, producer/hook, deploy.  Out: the file system.
 */
#include "common/process/program.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool program_at(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *program_find(const char *name)
{
    char *path = NULL;
    if (name[0] == '/') {
        return program_at(name) ? strdup(name) : NULL;
    }
    if (strchr(name, '/') != NULL) {
        return NULL; /* relative to what? the configuration makes it absolute */
    }
    for (const char *at = PROGRAM_PATH; *at != '\0';) {
        size_t n = strcspn(at, ":");
        if (asprintf(&path, "%.*s/%s", (int)n, at, name) < 0) {
            return NULL;
        }
        if (program_at(path)) {
            return path;
        }
        free(path);
        at += n + (at[n] == ':' ? 1 : 0);
    }
    return NULL;
}
