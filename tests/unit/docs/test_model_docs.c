/*
 * Goal: docs/STATES.md and docs/LIMITS.md say what the code does.
 * Method: each is rendered from the model's tables and held against the file;
 * with TOC_WRITE_DOCS=1 it is written.
 */
#include "common/base/buf.h"
#include "common/base/config.h"
#include "common/model/limits.h"
#include "common/model/task.h"
#include "tests/support/toc_check.h"

#include <stdio.h>
#include <string.h>

static void
render_states(struct toc_buf *out)
{
    toc_buf_text(out, "| state | number | meaning |\n|---|---|---|\n");
#define X(name, number, text) \
    toc_buf_text(out, "| " #name " | " #number " | " text " |\n");
    TOC_STATE_MAP(X)
#undef X
}

static void
render_edges(struct toc_buf *out)
{
    toc_buf_text(out, "| from | to | by | when |\n|---|---|---|---|\n");
#define X(from, to, by, text) \
    toc_buf_text(out, "| " #from " | " #to " | " by " | " text " |\n");
    TOC_EDGE_MAP(X)
#undef X
}

static void
render_results(struct toc_buf *out)
{
    toc_buf_text(out, "| result | number | meaning |\n|---|---|---|\n");
#define X(name, number, text) \
    toc_buf_text(out, "| " #name " | " #number " | " text " |\n");
    TOC_RESULT_MAP(X)
#undef X
}

static void
render(struct toc_buf *out)
{
    toc_buf_text(
        out, "# States of a task\n\n"
             "Written from the tables in common/model/task.h by a test "
             "(`TOC_WRITE_DOCS=1` writes it anew).\n\n"
             "Numbers are as stored. From SUCCESS on a task has ended.\n\n");
    render_states(out);
    toc_buf_text(
        out,
        "\n## Edges\n\nEach is made by compare-and-set on the row. What is not "
        "here does not happen: every other pair is refused, and tested.\n\n");
    render_edges(out);
    toc_buf_text(out, "\n## How an attempt ends\n\n");
    render_results(out);
}

static const struct {
    const char *what;
    int64_t max;
    const char *unit, *note;
} limits[] = {
    {"key.biz_type", TOC_BIZ_TYPE_MAX, "bytes", "UTF-8, no control characters"},
    {"key.biz_id", TOC_BIZ_ID_MAX, "bytes", "UTF-8, no control characters"},
    {"key.name", TOC_NAME_MAX, "bytes", "UTF-8, no control characters"},
    {"target.url", TOC_TARGET_MAX, "bytes", ""},
    {"payload", TOC_PAYLOAD_DEFAULT_MAX, "bytes",
     "the scheduler's payload_max, up to 1 MiB"},
    {"headers", TOC_HEADERS_MAX, "headers", ""},
    {"a header's name, its value", TOC_HEADER_BYTES_MAX, "bytes", "each"},
    {"target, policy and headers together", TOC_SPEC_MAX, "bytes", "as stored"},
    {"items of a batch", TOC_BATCH_MAX, "items", ""},
    {"reason of a command", TOC_REASON_MAX, "bytes", ""},
    {"call_timeout", TOC_CALL_TIMEOUT_MS_MAX, "ms",
     "at least 1 ms; 10,000 ms unless given"},
    {"retry_policy.max_retries", TOC_RETRIES_MAX, "retries", "10 unless given"},
    {"retry_policy.ladder", TOC_LADDER_MAX, "steps", ""},
    {"a retry's delay", TOC_RETRY_DELAY_MS_MAX, "ms", "30 days"},
    {"due_time", TOC_DUE_MS_MAX, "ms since 1970",
     "9999-12-31T23:59:59.999Z; from 0001-01-01"},
    {"error text kept of an attempt", TOC_ERROR_MAX, "bytes", "cut"},
    {"times a lock is lost before the task is dead", TOC_CLAIMS_MAX, "times",
     ""},
};

static void
render_limits(struct toc_buf *out)
{
    toc_buf_text(
        out,
        "# Limits\n\nWritten from common/model/limits.h by a test "
        "(`TOC_WRITE_DOCS=1` writes it anew). What is larger is refused with "
        "INVALID_ARGUMENT, naming the field, before anything is written.\n\n"
        "| what | at most | unit | |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        toc_buf_printf(out, "| %s | %lld | %s | %s |\n", limits[i].what,
                       (long long)limits[i].max, limits[i].unit,
                       limits[i].note);
}

static const char *
path_of(const char *name)
{
    const char *root = toc_env("TOC_TEST_ROOT");
    static char text[512];

    toc_format(text, sizeof text, "%s/docs/%s", root ? root : ".", name);
    return text;
}

static void
write_file(const char *name, const struct toc_buf *text)
{
    FILE *file = fopen(path_of(name), "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text->data, 1, text->len, file), text->len);
    ck_assert_int_eq(fclose(file), 0);
}

static void
check_document(const char *name, void (*render_it)(struct toc_buf *))
{
    struct toc_buf want = {0};
    static char have[65536];
    FILE *file;
    size_t len;

    render_it(&want);
    if (toc_env("TOC_WRITE_DOCS"))
        write_file(name, &want);
    file = fopen(path_of(name), "r");
    ck_assert_msg(file != NULL, "%s is not there", path_of(name));
    len = fread(have, 1, sizeof have, file);
    fclose(file);
    ck_assert_msg(len == want.len && memcmp(have, want.data, len) == 0,
                  "docs/%s is not what the code says; write it with "
                  "TOC_WRITE_DOCS=1",
                  name);
    toc_buf_done(&want);
}

START_TEST(states_are_true)
{
    check_document("STATES.md", render);
}
END_TEST

START_TEST(limits_are_true)
{
    check_document("LIMITS.md", render_limits);
}
END_TEST

TOC_CHECK_MAIN("model_docs", states_are_true, limits_are_true)
