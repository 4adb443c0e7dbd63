/* Writes and reads who wrote a note. See note_writer.h for who calls it. */
#include "common/record/note_writer.h"

#include <string.h>

void note_writer_encode(struct jsonw *w, const struct plain_id *worker, const struct boot_id *boot)
{
    jsonw_key_text(w, "worker", worker->s);
    jsonw_key_text(w, "boot", boot->s);
}

bool note_writer_read(const struct json_value *root, struct plain_id *ret_worker,
                      struct boot_id *ret_boot)
{
    size_t n;
    const char *text = json_member_text(root, "worker", &n);
    if (!plain_id_valid(text, n)) {
        return false;
    }
    *ret_worker = plain_id_of(text);
    text = json_member_text(root, "boot", &n);
    if (!hex_valid(text, n, sizeof(ret_boot->s) - 1)) {
        return false;
    }
    memcpy(ret_boot->s, text, n + 1);
    return true;
}
