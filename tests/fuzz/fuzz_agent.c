/*
 * Any bytes as the output of an agent program: neither a crash nor a leak, and what is made of it is
 * strict JSON that says either a verdict or a class.
 * Parts: agent
 *
 * Input: one byte that chooses the program, one that is its exit status (255: a signal), then lines.
 */
#include "common/base/text.h"
#include "common/base/limits.h"
#include "common/record/json.h"
#include "worker/agent/agent.h"

#include <stdlib.h>
#include <string.h>

static void insist(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool has(const struct json_value *root, const char *name)
{
    return json_member(root, name) != NULL;
}

static void check_object(const struct buf *object, enum agent_source source, bool success)
{
    struct json_doc *doc = NULL;
    struct baton_error err;
    enum failure failure;
    size_t len;
    if (object->len == 0) {
        insist(source == AGENT_SOURCE_none && !success);
        return;
    }
    insist(json_parse(object->data, object->len, LIMIT_RESULT, LIMIT_JSON_DEPTH, &doc, &err) ==
           BATON_OK);
    const struct json_value *root = json_root(doc);
    insist(has(root, "verdict") != has(root, "class"));
    insist(has(root, "verdict") == (source != AGENT_SOURCE_none));
    const char *word = json_member_text(root, "class", &len);
    insist(!has(root, "class") || failure_parse(word, len, &failure));
    json_free(doc);
}

static void read_lines(struct agent_reading *reading, const char *data, size_t size)
{
    struct buf said = BUF_INIT;
    struct buf doing = BUF_INIT;
    for (size_t at = 0; at < size;) {
        const char *newline = memchr(data + at, '\n', size - at);
        size_t n = newline != NULL ? (size_t)(newline - data) - at : size - at;
        agent_line(reading, data + at, n, &said, &doing);
        at += n + 1;
    }
    insist(text_utf8_valid(said.data, said.len) && text_utf8_valid(doing.data, doing.len));
    buf_done(&said);
    buf_done(&doing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const programs[] = {"claude", "codex", "gemini"};
    struct agent_reading reading;
    struct buf object = BUF_INIT;
    if (size < 2) {
        return 0;
    }
    const char *bytes = (const char *)data + 2;
    struct agent_end end = {.signaled = data[1] == 255,
                            .value = data[1] == 255 ? 9 : data[1],
                            .error = bytes,
                            .error_len = size - 2 < 200 ? size - 2 : 200,
                            .now = {1795962044000}};
    agent_reading_init(&reading, agent_find(programs[data[0] % 3]));
    read_lines(&reading, bytes, size - 2);
    enum agent_source source = agent_judge(&reading, &end, &object);
    check_object(&object, source, data[1] == 0);
    insist(source == AGENT_SOURCE_none || (reading.done && !reading.failed));
    struct usage usage = agent_usage(&reading, source);
    char *text = usage_text(&usage);
    insist(text != NULL && strlen(text) <= USAGE_TEXT_MAX && usage_parse(text, &usage));
    insist(reading.last.len <= AGENT_TEXT_MAX && reading.message.len <= AGENT_MESSAGE_MAX);
    free(text);
    agent_reading_done(&reading);
    buf_done(&object);
    return 0;
}
