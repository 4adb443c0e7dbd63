/*
 * Passphrases: asked on the terminal only, and only of a person. Whether one is there: neither
 * BATON_MODE=unattended nor CI, and no mark of an agent in the environment. Main thread.
 */
#ifndef BATON_RECORD_PASSPHRASE_H
#define BATON_RECORD_PASSPHRASE_H

#include "baton/code.h"

#include <stdbool.h>
#include <stddef.h>

#define PASSPHRASE_MAX 256

/*
 * Prompts on /dev/tty without echo. twice: asks again and compares, for a new one; it must have 8
 * characters at least. Codes: unattended_denied, person_required (an agent's mark), bad_mode,
 * invalid_request (empty, too long, not the same twice). The caller cleanses ret_text.
 */
baton_code passphrase_ask(const char *prompt, bool twice, char ret_text[PASSPHRASE_MAX + 1],
                          struct baton_error *err);

#endif
