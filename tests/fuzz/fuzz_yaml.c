/*
 * Any bytes as a configuration: neither a crash nor a leak, and what is refused is told with a
 * place. Parts: base
 */
#include "common/base/config.h"
#include "common/base/text.h"

#include <stdlib.h>
#include <string.h>

static void insist(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config *config = NULL;
    struct buf findings = BUF_INIT;
    struct buf shown = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc =
        config_parse("/f/baton.yaml", (const char *)data, size, NULL, 0, &config, &findings, &err);
    if (rc == BATON_OK) {
        insist(config != NULL && findings.len == 0);
        config_show(config, true, &shown);
        config_show(config, false, &shown);
        insist(buf_ok(&shown) && text_utf8_valid(shown.data, shown.len));
        config_free(config);
    } else {
        insist(rc == BATON_E_bad_config && config == NULL && findings.len > 0);
        insist(strncmp(findings.data, "/f/baton.yaml", 13) == 0 && err.text[0] != '\0');
        for (size_t i = 0; i < findings.len; i++) { /* nothing of the file reaches a terminal raw */
            insist(findings.data[i] == '\n' ||
                   ((unsigned char)findings.data[i] >= 0x20 && findings.data[i] != 0x7f));
        }
    }
    buf_done(&findings);
    buf_done(&shown);
    return 0;
}
