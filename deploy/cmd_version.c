/* `baton version`. Listed by deploy/baton.c. */
#include "deploy/verbs.h"

#include "common/base/jsonw.h"

#include <gnu/libc-version.h>

static const char features[] =
#ifdef BATON_FAULTS
    "faults";
#else
    "";
#endif

static int run(struct command *cmd)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "version", BATON_VERSION);
        jsonw_key(&w, "drivers");
        jsonw_begin_array(&w);
        jsonw_text(&w, "local");
        jsonw_text(&w, "kafka");
        jsonw_end(&w);
        jsonw_key_bool(&w, "faults", features[0] != '\0');
        jsonw_key_text(&w, "libc", gnu_get_libc_version());
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "baton %s (logs: local, kafka%s%s)\n", BATON_VERSION,
                   features[0] != '\0' ? "; built with " : "", features);
    }
    command_print(cmd, &out);
    buf_done(&out);
    return 0;
}

const struct baton_command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "[--json]",
    .description = "The version of this program, and what it was built with.",
    .examples = "baton version\n",
    .run = run,
};
